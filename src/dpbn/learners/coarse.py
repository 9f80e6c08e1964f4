"""CPTs that are told apart by some of their parents only, where noise would drown the whole family.

A family of many cells and few records is lost in its noise: hardly a row of it can be told from any other. A table
with fewer of the parents has the same noise on fewer, fuller cells. So parents are left out, the one with the most
states first, while r, the noise on a cell of the family over its average count, is beyond a limit. The rows of such a
CPT that differ only in a parent left out are the same.

Beyond HOPELESS nothing is to be hoped for. Below, it depends on how the records are spread over the cells: where most
are in few, these stand out of the noise. So where families lie between DOUBTFUL and HOPELESS, a small part of epsilon
buys one number: how many of their records stand out, which is what a cell holds beyond one deviation of its noise. The
part that noise drowns, the rest, is taken to follow r / (r + b) with one b for the network, and parents are left out
where that is beyond DROWNED. A node keeps its last parent longer, up to LAST: without any it is
independent of all that comes before it.

Which parents those are can be read off the tables of a release: those that no table holds together with the node.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbn.graph import Dag
from dpbn.learners.strategy import holders_of, holding
from dpbn.margins import Names
from dpbn.measurement import Look
from dpbn.network import Structure
from dpbn.privacy.noise import LARGEST_COUNT

Array = NDArray[np.float64]

HOPELESS = 32.0  # deviations of the noise on a cell, as a part of an average count
DOUBTFUL = 3.0  # the least of these that a family is looked at for
CLEAR = 1.0  # the least that costs a parent, whatever is seen
LAST = 8.0  # the least that costs a node its last parent
DROWNED = 0.75  # of a family's records: then it is better told with fewer parents
ROUNDS = 8  # of leaving out and planning again: others get what a large family leaves

Plan = TypeVar("Plan")
Planner = Callable[[Structure], tuple[Plan, Mapping[str, float]]]  # what to measure, and r of every node


def noise_to_signal(structure: Structure, noise: Mapping[frozenset[str], float], records: float) -> dict[str, float]:
    """Per node r, the noise on a cell of its family, as a part of an average count; infinite if not measured.

    `noise` holds the deviation of every table's cells, in the units in which there are so many records.
    """
    schema, holders = structure.schema, holders_of({names: names for names in noise})
    result = {}
    for node in structure.nodes:
        family = frozenset(structure.family(node).names)
        cells = schema.cells(family)
        summed = [noise[names] * math.sqrt(schema.cells(names) / cells) for names in holding(holders, family)]
        result[node] = min(summed, default=math.inf) * cells / records
    return result


@dataclass(frozen=True)
class Coarse(Generic[Plan]):
    """A plan for the families without the parents left out, and r of every node."""

    structure: Structure
    plan: Plan
    ratios: Mapping[str, float]  # r


def plan_coarse(
    structure: Structure, planner: Planner[Plan], fixed: Collection[str] = (), limit: float = math.inf
) -> Coarse[Plan]:
    """What `planner` makes of the families without the parents left out beyond HOPELESS, or beyond `limit`.

    Those of the nodes `fixed` keep theirs.
    """
    last = max(limit, LAST)
    for _ in range(ROUNDS):
        plan, ratios = planner(structure)
        shared = _shared_noise(structure, ratios)
        parents = {
            node: _without_largest(structure, node)
            for node, its in structure.dag.parents.items()
            if its and node not in fixed
            if ratios[node] > HOPELESS or shared[node] > (limit if len(its) > 1 else last)
        }
        if not parents:
            return Coarse(structure, plan, ratios)
        structure = _with_parents(structure, parents)
    return Coarse(structure, *planner(structure))


@dataclass(frozen=True)
class Doubt:
    """Families that may have parents too many."""

    families: tuple[Names, ...]
    cells: tuple[int, ...]
    ratios: tuple[float, ...]  # r

    def look(self, rows: float, scale: float) -> Look:
        """How many of the records stand out."""
        deviations = [ratio * rows / cells for ratio, cells in zip(self.ratios, self.cells, strict=True)]
        return Look(self.families, tuple(min(math.ceil(d), LARGEST_COUNT) for d in deviations), scale)

    def limit(self, out: float) -> float:
        """Of r, beyond which parents are left out, when the part `out` was seen to stand out."""
        low, high = 0.0, HOPELESS  # of b
        for _ in range(40):
            middle = 0.5 * (low + high)
            if sum(ratio / (ratio + middle) for ratio in self.ratios) > (1.0 - out) * len(self.ratios):
                low = middle
            else:
                high = middle
        return min(max(DROWNED / (1.0 - DROWNED) * high, CLEAR), HOPELESS)


def doubtful(found: Coarse[Plan], fixed: Collection[str] = ()) -> Doubt:
    """The families beyond DOUBTFUL."""
    told, shared = found.structure, _shared_noise(found.structure, found.ratios)
    nodes = [node for node in told.nodes if told.parents(node) and node not in fixed and shared[node] > DOUBTFUL]
    return Doubt(
        tuple(told.family(node).names for node in nodes),
        tuple(told.cells(node) for node in nodes),
        tuple(found.ratios[node] for node in nodes),
    )


def _shared_noise(structure: Structure, ratios: Mapping[str, float]) -> dict[str, float]:
    """r as it would be if a quarter of the nodes whose CPTs have one shape shared them (`twins`)."""
    shapes = {node: (structure.schema[node].size, *sorted(structure.shape(node)[:-1])) for node in structure.nodes}
    alike = Counter(shapes.values())
    return {node: ratios[node] / math.sqrt(max(alike[shape] / 4.0, 1.0)) for node, shape in shapes.items()}


def _without_largest(structure: Structure, node: str) -> Names:
    """The parents of a node but the one with the most states, the last of several."""
    parents = structure.parents(node)
    largest = max(parents, key=lambda name: (structure.schema[name].size, parents.index(name)))
    return tuple(name for name in parents if name != largest)


def as_told(structure: Structure, tables: Iterable[Names], nodes: Iterable[str]) -> Structure:
    """`structure` with the parents that `tables` tell apart: for each of `nodes` those of the table that holds most.

    Nodes that no table holds, and all others, keep theirs.
    """
    sets = [frozenset(names) for names in tables]
    holders = holders_of(dict(enumerate(sets)))
    parents = {}
    for node in nodes:
        its = structure.parents(node)
        found = {tuple(name for name in its if name in sets[index]) for index in holders.get(node, ())}
        if found and its not in found:
            parents[node] = max(found, key=lambda names: (structure.schema.cells(names), names))
    return _with_parents(structure, parents) if parents else structure


def widened(structure: Structure, coarse: Structure, cpts: Mapping[str, Array]) -> dict[str, Array]:
    """CPTs over `coarse` in the shapes of `structure`, equal along parents left out; any leading axis stays."""
    return {node: _widened(structure, coarse, node, cpt) for node, cpt in cpts.items()}


def narrowed(structure: Structure, coarse: Structure, prior: Mapping[str, Array]) -> dict[str, Array]:
    """Pseudo-counts of the CPTs of `structure` for those of `coarse`: the mean of the rows that become one."""
    result = {}
    for node, alpha in prior.items():
        its, kept = structure.parents(node), coarse.parents(node)
        gone = tuple(axis for axis, name in enumerate(its) if name not in kept)
        result[node] = np.broadcast_to(alpha, structure.shape(node)).mean(axis=gone) if gone else alpha
    return result


def _widened(structure: Structure, coarse: Structure, node: str, cpt: Array) -> Array:
    its, kept = structure.parents(node), coarse.parents(node)
    if its == kept:
        return cpt
    before = cpt.shape[: cpt.ndim - len(kept) - 1]
    sizes = structure.schema.shape(its)
    open_axes = [size if name in kept else 1 for name, size in zip(its, sizes, strict=True)]
    return np.broadcast_to(cpt.reshape(*before, *open_axes, cpt.shape[-1]), (*before, *sizes, cpt.shape[-1]))


def _with_parents(structure: Structure, parents: Mapping[str, Names]) -> Structure:
    dag = structure.dag
    return Structure(
        structure.schema, Dag(dag.nodes, {node: parents.get(node, dag.parents[node]) for node in dag.nodes})
    )
