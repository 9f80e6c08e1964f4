"""What is audited: every private method on its real measurement path, and the whole of `learn`.

Tables are two neighbours over one family (a -> b, four cells) or over independent variables. A subject draws many
independent outcomes of one release. Mechanisms broken on purpose are in `broken`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpbn.audit.blackbox import repeated
from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.graph import Dag
from dpbn.learners.optimized import with_delta
from dpbn.learners.procedure1 import node_tables
from dpbn.learners.strategy import OF_PRECISION, plan_tables
from dpbn.learners.uniform import equal_shares
from dpbn.learning import learn
from dpbn.margins import Names
from dpbn.measure import Curator
from dpbn.measurement import Joint, Ladder, Look, Request, Table
from dpbn.network import Structure
from dpbn.privacy import accounting
from dpbn.privacy.guarantee import Budget, Neighbors, Sensitivity
from dpbn.privacy.noise import Noise, SecureNoise

EPSILON = 1.0  # of every release audited


def _structure(names: Sequence[str], parents: Mapping[str, Names], states: int = 2) -> Structure:
    labels = tuple(map(str, range(states)))
    return Structure(Schema(tuple(Variable(name, labels) for name in names)), Dag(tuple(names), parents))


def _with_more(table: pd.DataFrame, rows: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    return pd.concat([table, pd.DataFrame(rows)], ignore_index=True)


FAMILY: Names = ("a", "b")
STRUCTURE = _structure(FAMILY, {"b": ("a",)})
ROWS = pd.DataFrame({"a": ["0", "0", "1"], "b": ["0", "1", "0"]})
ONE_MORE = _with_more(ROWS, {"a": ["1"], "b": ["1"]})  # fills an empty cell
REPLACED = pd.DataFrame({"a": ["0", "0", "1"], "b": ["0", "1", "1"]})
APART = _structure(FAMILY, {})  # two tables to the planner: where to refine depends on the data
THREE = _structure("abc", {"b": ("a",), "c": ("a",)})
TRIPLES = ROWS.assign(c=["0", "1", "1"])
ONE_MORE_TRIPLE = ONE_MORE.assign(c=["0", "1", "1", "0"])  # fills an empty cell of every pair with a
STAR_NAMES = ("a", *(f"b{index}" for index in range(5)))
STAR = _structure(STAR_NAMES, dict.fromkeys(STAR_NAMES[1:], ("a",)))  # the noise of two tables is drawn together
STAR_ROWS = pd.DataFrame({name: ["0", "0", "1"] * 300 for name in STAR_NAMES})  # so many that the plan hardly varies
ONE_MORE_STAR = _with_more(STAR_ROWS, {name: ["1" if name == "a" else "0"] for name in STAR_NAMES})
_OTHER = ("false", "true", "other")
KINDS = Structure(  # a column of booleans to which one record of another kind comes first
    Schema(tuple(Variable(name, _OTHER, catch_all="other") for name in FAMILY)), Dag(FAMILY, {"b": ("a",)})
)
TRUTHS = pd.DataFrame({"a": [True, False, True], "b": [False, True, True]}, dtype=object)
ONE_NUMBER_MORE = pd.concat([pd.DataFrame({"a": [0.5], "b": [0.5]}, dtype=object), TRUTHS], ignore_index=True)
PEOPLE = ROWS.assign(person=[UUID(int=row) for row in range(3)])
ONE_PERSON_MORE = _with_more(  # with five records, of which one may count
    PEOPLE, {"a": ["1"] * 5, "b": ["1"] * 5, "person": [UUID(int=3)] * 5}
)
FAMILIES: tuple[Names, ...] = (("a", "b"), ("a", "c"))
_BATCH = 500

Matrix = NDArray[Any]
Draws = Callable[[pd.DataFrame, int], Any]


@dataclass(frozen=True)
class Subject:
    """One mechanism to audit: what it promises, and how to draw `runs` outcomes from a table."""

    name: str
    draws: Draws
    epsilon: float = EPSILON
    delta: float = 0.0
    table: pd.DataFrame = field(default_factory=lambda: ROWS)
    neighbour: pd.DataFrame = field(default_factory=lambda: ONE_MORE)


def independent(count: int, states: int = 2) -> tuple[Structure, pd.DataFrame, pd.DataFrame]:
    """`count` variables without edges, a table of three rows, and the same with one row more."""
    names = tuple(f"v{index}" for index in range(count))
    table = pd.DataFrame({name: ["0", "1", "0"] for name in names})
    return _structure(names, {}, states), table, _with_more(table, {name: ["1"] for name in names})


# -- measurement paths ----------------------------------------------------------------------------------------


def clean_subjects() -> list[Subject]:
    """Measurements of every kind, all with SecureNoise."""
    half = Fraction(1, 2)
    scale = accounting.laplace_scale(EPSILON, 1)
    family, families, apart = [Request(FAMILY, scale)], [Joint(FAMILIES, scale)], [Joint((("b",), ("c",)), scale)]
    triples = {"table": TRIPLES, "neighbour": ONE_MORE_TRIPLE}
    return [
        Subject("one family, Laplace", _family(Sensitivity())),
        Subject("one family, Laplace, in slices", sliced(STRUCTURE, family, Budget(EPSILON))),
        Subject("one family, replace", _family(Sensitivity(Neighbors.REPLACE)), neighbour=REPLACED),
        Subject("one family, sampled rows", _family(Sensitivity(), rate=half)),
        Subject("one family, thinned table", _family(Sensitivity(), rate=half, thinned=True)),
        Subject("two tables at half the budget", _together(_two_requests())),
        Subject("tables of uniform", _together(_uniform_requests())),
        Subject("coarse, then refined", _refined),
        Subject("joint noise, in slices", sliced(THREE, families, Budget(EPSILON)), **triples),
        Subject("joint noise, no common variable", _together(apart, THREE), **triples),
        Subject("a look at two tables", _looked),
    ]


class ThinnedSource:
    """An engine that returns counts only: the Curator thins them."""

    can_sample_rows = False

    def __init__(self, table: pd.DataFrame):
        self._source = open_source(table, STRUCTURE)

    def counts(self, sets: Sequence[Names]) -> Mapping[Names, Table]:
        return self._source.counts(sets)

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], Any]) -> Mapping[Names, Table]:
        raise NotImplementedError("an engine without rows cannot sample them")


def _family(sensitivity: Sensitivity, rate: Fraction = Fraction(1), thinned: bool = False) -> Draws:
    """Noisy tables of one family at EPSILON each, through Curator.measure with SecureNoise.

    Without sampling, _BATCH releases are asked for in one call: each is a request of its own with its own noise.
    With sampling every release is a call of its own, because one call draws one sample.
    """
    loss = accounting.before_sampling(EPSILON, rate)
    request = Request(FAMILY, accounting.laplace_scale(loss, sensitivity.l1))

    def draws(table: pd.DataFrame, runs: int) -> Matrix:
        source: Any = ThinnedSource(table) if thinned else open_source(table, STRUCTURE)
        result = np.empty((runs, 4), dtype=np.int64)
        batch = _BATCH if rate == 1 else 1
        for start in range(0, runs, batch):
            count = min(batch, runs - start)
            curator = Curator(source, SecureNoise(), Budget(EPSILON * count), sensitivity)
            made = curator.measure([request] * count, rate=rate)
            result[start : start + count] = [measurement.values.ravel() for measurement in made]
        return result

    return draws


def sliced(structure: Structure, asked: Sequence[Request | Joint], budget: Budget) -> Draws:
    """Releases of `asked`, _BATCH to a call: a public variable more says to which release a row belongs.

    The larger table holds `table` once per value of that variable. Every slice of its noisy tables is a release of
    `table` with noise of its own, so one call of the real path gives many releases.
    """
    variables = (Variable("slice", tuple(map(str, range(_BATCH)))), *structure.schema)
    wide = Structure(Schema(variables), Dag(tuple(v.name for v in variables), {}))
    wider = [
        Joint(tuple(("slice", *names) for names in request.tables), request.scale)
        if isinstance(request, Joint)
        else replace(request, names=("slice", *request.names))
        for request in asked
    ]

    def draws(table: pd.DataFrame, runs: int) -> Matrix:
        copies = pd.concat([table.assign(slice=str(index)) for index in range(_BATCH)], ignore_index=True)
        source = open_source(copies, wide)
        parts = []
        for _ in range(-(-runs // _BATCH)):
            made = Curator(source, SecureNoise(), budget, Sensitivity()).measure(wider)
            parts.append(np.hstack([measurement.values.reshape(_BATCH, -1) for measurement in made]))
        return np.vstack(parts)[:runs]

    return draws


def _two_requests() -> list[Request]:
    shares = accounting.split(EPSILON, [1.0, 1.0])
    return [
        Request(names, accounting.laplace_scale(share, 1))
        for names, share in zip([FAMILY, ("a",)], shares, strict=True)
    ]


def _uniform_requests() -> list[Request]:
    """What `uniform` asks for (Procedure 1, line 1), without the estimate that follows."""
    shares = equal_shares(STRUCTURE.nodes, EPSILON)
    tables = {node: node_tables(STRUCTURE, node) for node in STRUCTURE.nodes}
    return [
        Request(names, accounting.laplace_scale(shares[node] / len(tables[node]), 1))
        for node in STRUCTURE.nodes
        for names in tables[node]
    ]


def _together(asked: Sequence[Request | Joint], structure: Structure = STRUCTURE) -> Draws:
    """All of `asked` in one call within EPSILON: one release."""

    def draws(table: pd.DataFrame, runs: int) -> Matrix:
        source = open_source(table, structure)
        rows = []
        for _ in range(runs):
            made = Curator(source, SecureNoise(), Budget(EPSILON), Sensitivity()).measure(asked)
            rows.append(np.concatenate([measurement.values.ravel() for measurement in made]))
        return np.array(rows)

    return draws


def _refined(table: pd.DataFrame, runs: int) -> Matrix:
    """Both levels are shown: together they may cost the fine level only."""
    fine = accounting.laplace_scale(EPSILON, 1)
    ladder = Ladder(FAMILY, (3 * fine, 1.5 * fine, fine))
    source = open_source(table, STRUCTURE)
    rows = []
    for _ in range(runs):
        shown = Curator(source, SecureNoise(), Budget(EPSILON), Sensitivity()).gradual([ladder])
        coarse = shown.measurements[0].values
        rows.append(np.concatenate([coarse.ravel(), shown.refine({FAMILY: 2})[0].values.ravel()]))
    return np.array(rows)


LOOK: tuple[Names, ...] = (("a",), ("b",))
CAPS = (1, 1)  # the record more is beyond them in both tables


def _looked(table: pd.DataFrame, runs: int) -> Matrix:
    source = open_source(table, STRUCTURE)
    look = Look(LOOK, CAPS, accounting.laplace_scale(EPSILON, len(LOOK)))
    curators = [Curator(source, SecureNoise(), Budget(EPSILON), Sensitivity()) for _ in range(runs)]
    return np.array([[curator.look(look).value] for curator in curators])


def noisy_family(mechanism: str, scale: float, draws: int = 1) -> Draws:
    """One family with noise that is accounted for with delta."""
    return sliced(STRUCTURE, [Request(FAMILY, scale, mechanism, draws)], Budget(1e6, 1e-6))


def delta_plan(tables: int, states: int, delta: float) -> list[Request]:
    """What `optimized` asks for on independent variables where it draws noise apart."""
    strategy = plan_tables(independent(tables, states)[0], power=OF_PRECISION)
    return with_delta(strategy, Budget(EPSILON, delta), Sensitivity())


# -- the whole of learn ---------------------------------------------------------------------------------------


def whole_learn(method: str, structure: Structure = STRUCTURE, noise: Noise | None = None, **options: Any) -> Draws:
    """All of `learn`: names, shapes, errors and every number of the release count as output."""

    def release(table: pd.DataFrame) -> Any:
        made = learn(table, structure, EPSILON, method=method, noise=noise, **options)
        guarantee, tables = made.guarantee, made.measurements
        return {
            "measured": [m.values for m in tables],
            "looked": [looked.value for looked in made.looks],
            "looks": repr([(looked.look.tables, looked.look.caps) for looked in made.looks]),
            "names": repr([(m.stage, m.names, m.mechanism) for m in tables]),
            "public": repr((made.method, made.private, made.on_unknown, sorted(made.options), made.library)),
            "promised": repr((guarantee.delta, guarantee.neighbors, guarantee.unit, guarantee.max_contributions)),
            "epsilon": guarantee.epsilon,
            "scales": [*(m.scale for m in tables), *(looked.look.scale for looked in made.looks)],
            "losses": [*(m.loss for m in tables), *(looked.loss for looked in made.looks)],
            "allocation": dict(made.allocation),
            "learned": {node: made.network.cpt(node) for node in made.network.nodes},
            "weak": sum(int(rows.sum()) for rows in made.weak_rows.values()),
        }

    return repeated(release)


def learn_subjects() -> list[Subject]:
    """The whole of `learn`, by every private method."""
    return [
        Subject("uniform", whole_learn("uniform")),
        Subject("icml2020", whole_learn("icml2020")),
        Subject("optimized", whole_learn("optimized")),
        Subject("optimized, delta 1e-6", whole_learn("optimized", delta=1e-6), delta=1e-6),
        Subject("optimized, noise refined in stages", whole_learn("optimized", APART, stage_one=0.8)),
        Subject(
            "optimized, noise drawn together", whole_learn("optimized", STAR), table=STAR_ROWS, neighbour=ONE_MORE_STAR
        ),
        Subject(
            "uniform, a record of another kind",
            whole_learn("uniform", KINDS, on_unknown="other"),
            table=TRUTHS,
            neighbour=ONE_NUMBER_MORE,
        ),
        Subject(
            "uniform, a person with five records",
            whole_learn("uniform", unit="person"),
            table=PEOPLE,
            neighbour=ONE_PERSON_MORE,
        ),
    ]
