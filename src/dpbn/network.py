"""Structure = Schema + Dag; BayesianNetwork = Structure + CPTs. Immutable, validated, no algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.errors import StructureError, TooLargeError, counted
from dpbn.graph import Dag, Family

if TYPE_CHECKING:
    import pandas

ROW_SUM_TOLERANCE = 1e-6
MAX_TABLE_CELLS = 10**7
MAX_TOTAL_CELLS = 10**8
MAX_TABLE_AXES = 32


@dataclass(frozen=True, slots=True, repr=False)
class Structure:
    """Everything public before learning: the variables with their states, and the graph."""

    schema: Schema
    dag: Dag

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema) or not isinstance(self.dag, Dag):
            got = f"{type(self.schema).__name__} and {type(self.dag).__name__}"
            raise StructureError(f"a structure must be made of a Schema and a Dag, got {got}")
        missing = sorted(set(self.dag.nodes) ^ set(self.schema.names))
        if missing:
            raise StructureError(f"graph and schema must have the same nodes, got {missing} in only one of them")
        if self.dag.nodes != self.schema.names:
            object.__setattr__(self, "schema", Schema(tuple(self.schema[node] for node in self.dag.nodes)))

    def __repr__(self) -> str:
        return f"Structure({counted(len(self.nodes), 'node')}, {counted(len(self.dag.arcs), 'arc')}, no probabilities)"

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.dag.nodes

    def states(self, node: str) -> tuple[str, ...]:
        return self.schema[node].states

    def parents(self, node: str) -> tuple[str, ...]:
        self.schema.position(node)
        return self.dag.parents[node]

    def family(self, node: str) -> Family:
        self.schema.position(node)
        return self.dag.family(node)

    def shape(self, node: str) -> tuple[int, ...]:
        """Shape of the CPT of `node`: parents in order, child last."""
        return self.schema.shape(self.family(node).names)

    def cells(self, node: str) -> int:
        return self.schema.cells(self.family(node).names)

    def _repr_svg_(self) -> str:
        from dpbn.display import graph_svg

        return graph_svg(self)


def check_cells(structure: Structure) -> None:
    """Refuse family tables over 10^7 cells, or 10^8 in all, before anything is allocated."""
    total = 0
    for node in structure.nodes:
        axes = len(structure.parents(node)) + 1
        if axes > MAX_TABLE_AXES:  # numpy's limit; only parents with a single state get past the one below
            raise TooLargeError(f"{node!r} must have fewer than {MAX_TABLE_AXES} parents, got {axes - 1}")
        cells = structure.cells(node)
        total += cells
        if cells > MAX_TABLE_CELLS:
            raise TooLargeError(
                f"the family table of {node!r} must have at most {MAX_TABLE_CELLS:,} cells, got {cells:,}: "
                "give it fewer parents or merge states"
            )
    if total > MAX_TOTAL_CELLS:
        raise TooLargeError(
            f"the family tables must have at most {MAX_TOTAL_CELLS:,} cells in all, got {total:,}: "
            "give the nodes fewer parents or merge states"
        )


@dataclass(frozen=True, eq=False)
class BayesianNetwork:
    """A structure with one CPT per node; CPT axes are parents in order, child last."""

    structure: Structure
    cpts: Mapping[str, NDArray[np.float64]]

    def __post_init__(self) -> None:
        if not isinstance(self.structure, Structure) or not isinstance(self.cpts, Mapping):
            got = f"{type(self.structure).__name__} and {type(self.cpts).__name__}"
            raise StructureError(f"a network must be made of a Structure and a mapping of nodes to CPTs, got {got}")
        wrong = sorted(set(self.cpts) ^ set(self.structure.nodes), key=str)
        if wrong:
            raise StructureError(
                f"CPTs must be given for exactly the nodes of the structure, got a mismatch at {wrong}"
            )
        checked = {node: checked_cpt(self.structure, node, self.cpts[node]) for node in self.structure.nodes}
        object.__setattr__(self, "cpts", checked)

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.structure.nodes

    def states(self, node: str) -> tuple[str, ...]:
        return self.structure.states(node)

    def parents(self, node: str) -> tuple[str, ...]:
        return self.structure.parents(node)

    def cpt(self, node: str) -> NDArray[np.float64]:
        self.structure.schema.position(node)
        return self.cpts[node]

    @property
    def free_parameters(self) -> int:
        return sum(cpt.size // cpt.shape[-1] * (cpt.shape[-1] - 1) for cpt in self.cpts.values())

    def sample(self, rows: int, seed: int | None = None) -> pandas.DataFrame:
        """Rows drawn by ancestral sampling, as a pandas DataFrame of categoricals."""
        from dpbn.sampling import sample

        return sample(self, rows, seed)

    def _repr_html_(self) -> str:
        from dpbn.display import network_html

        return network_html(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BayesianNetwork):
            return NotImplemented
        return self.structure == other.structure and all(
            np.array_equal(self.cpts[n], other.cpts[n]) for n in self.nodes
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        nodes, arcs = counted(len(self.nodes), "node"), counted(len(self.structure.dag.arcs), "arc")
        return f"BayesianNetwork({nodes}, {arcs}, {counted(self.free_parameters, 'free parameter')})"


def checked_cpt(structure: Structure, node: str, cpt: Any) -> NDArray[np.float64]:
    """A read-only float64 copy of `cpt`, or an error naming the node and what is wrong with it."""
    try:
        array = np.array(cpt, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise StructureError(f"CPT of {node!r} must be an array of numbers, got {type(cpt).__name__}") from None
    shape = structure.shape(node)
    if array.shape != shape:
        raise StructureError(
            f"CPT of {node!r} must have shape {shape} (parents in order, child last), got {array.shape}"
        )
    wrong = array[~(np.isfinite(array) & (array >= 0))]
    if wrong.size:
        raise StructureError(f"CPT of {node!r} must hold finite probabilities >= 0, got {float(wrong[0])!r}")
    sums = array.sum(axis=-1)
    worst = float(np.max(np.abs(sums - 1.0), initial=0.0))
    if worst > ROW_SUM_TOLERANCE:
        row = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.abs(sums - 1.0))), sums.shape))
        where = f" at row {row}" if row else ""
        raise StructureError(f"rows of the CPT of {node!r} must sum to 1, got {float(sums[row])!r}{where}")
    array.setflags(write=False)
    return array
