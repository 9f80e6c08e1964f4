"""The measures of error, against enumeration by hand."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable, load_network
from dpbn.errors import InputError, QueryError
from dpbn.evaluate import metrics
from dpbn.evaluate.metrics import error_bounds, joint_kl, row, row_kl, weighted
from dpbn.graph import treewidth
from dpbn.workload import Query, checked_workload
from tests.structures import structure_of

STRUCTURE = Structure(
    Schema((Variable("a", ("0", "1")), Variable("b", ("0", "1", "2")))), Dag(("a", "b"), {"a": (), "b": ("a",)})
)
TRUTH = BayesianNetwork(STRUCTURE, {"a": [0.25, 0.75], "b": [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]})
LEARNED = BayesianNetwork(STRUCTURE, {"a": [0.5, 0.5], "b": [[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]]})
PARENTS = {"a": np.ones(()), "b": np.array([0.25, 0.75])}


def test_row_and_weighted_by_hand():
    assert row(TRUTH, LEARNED) == pytest.approx((0.5 + (0.5 + 0.2) / 2) / 2)
    assert weighted(TRUTH, LEARNED, PARENTS) == pytest.approx((0.5 + 0.25 * 0.5 + 0.75 * 0.2) / 2)


def test_joint_kl_is_the_kl_of_the_enumerated_joint(monkeypatch):
    monkeypatch.setattr(metrics, "MIXTURE", 0.1)
    mixed = {node: 0.9 * LEARNED.cpt(node) + 0.1 / LEARNED.cpt(node).shape[-1] for node in LEARNED.nodes}
    expected = 0.0
    for a, b in itertools.product(range(2), range(3)):
        true = TRUTH.cpt("a")[a] * TRUTH.cpt("b")[a, b]
        if true:
            expected += true * math.log(true / (mixed["a"][a] * mixed["b"][a, b]))
    assert joint_kl(TRUTH, LEARNED, PARENTS) == pytest.approx(expected)


def test_no_error_against_itself_and_finite_where_learned_is_zero():
    for measured in (row(TRUTH, TRUTH), weighted(TRUTH, TRUTH, PARENTS)):
        assert measured == 0.0
    assert joint_kl(LEARNED, TRUTH, PARENTS) > 0.3  # TRUTH has a zero where LEARNED does not
    assert math.isfinite(row_kl(LEARNED, TRUTH))


def test_networks_must_share_their_structure():
    with pytest.raises(InputError, match="share one structure"):
        row(TRUTH, load_network("asia"))


def test_bounds_of_the_paper_by_hand():
    true = load_network("asia")
    cpts = {n: np.array(true.cpt(n)) for n in true.nodes}
    cpts["smoke"] = [0.4, 0.6]
    released = BayesianNetwork(true.structure, cpts)
    bounds = error_bounds(true, released)
    assert (bounds.eta, bounds.kappa, bounds.exact, bounds.d) == (5, 2, True, 2)  # either: 2 in, 2 out
    assert bounds.lower == 0 and bounds.upper == pytest.approx(2 * 5 * 2**2 * 0.1)
    assert bounds.mu(0.2) == pytest.approx(0.05)
    assert error_bounds(true, true).mu(0.0) == 0
    with pytest.raises(InputError, match="one structure"):
        error_bounds(true, load_network("cancer"))


def test_a_lower_bound_above_zero():
    structure = structure_of(dict.fromkeys("abc", 2), {"b": ("a",), "c": ("b",)})
    row = [[0.5, 0.5], [0.25, 0.75]]
    moved = [[0.4, 0.6], [0.3, 0.7]]
    true = BayesianNetwork(structure, {"a": [0.5, 0.5], "b": row, "c": row})
    released = BayesianNetwork(structure, {"a": [0.6, 0.4], "b": moved, "c": moved})
    bounds = error_bounds(true, released)
    assert bounds.lower == pytest.approx(2**0.5 * 0.05 * 0.25)
    assert bounds.upper == pytest.approx(2 * 3 * 2 * 0.1)


def test_bounds_of_a_network_without_arcs_and_of_one_whose_width_is_not_known(monkeypatch):
    apart = structure_of({"a": 2, "b": 2}, {})
    true = BayesianNetwork(apart, {"a": [0.0, 1.0], "b": [0.5, 0.5]})
    released = BayesianNetwork(apart, {"a": [0.1, 0.9], "b": [0.4, 0.6]})
    bounds = error_bounds(true, released)
    assert (bounds.eta, bounds.kappa, bounds.lower, bounds.upper) == (1, 0, 0.0, pytest.approx(2 * 0.1))

    side = 6
    parents = {
        f"{row}{column}": (
            *((f"{row - 1}{column}",) if row else ()),
            *((f"{row}{column - 1}",) if column else ()),
        )
        for row in range(side)
        for column in range(side)
    }
    structure = structure_of(dict.fromkeys(parents, 2), parents)
    grid = BayesianNetwork(structure, {n: np.full((2,) * (len(parents[n]) + 1), 0.5) for n in parents})
    moved = BayesianNetwork(
        structure, {n: np.stack([grid.cpt(n)[..., 0] - 0.1, grid.cpt(n)[..., 1] + 0.1], -1) for n in parents}
    )
    low, high = treewidth(structure.dag, effort=0)
    assert low < high
    monkeypatch.setattr(metrics, "treewidth", partial(treewidth, effort=0))
    bounds = error_bounds(grid, moved)
    assert (bounds.kappa, bounds.exact, bounds.upper) == (high, False, pytest.approx(2 * 5 * 2**high * 0.1))


@pytest.mark.parametrize(
    "bad", [((), {}), (("a",), {"a": "0"}), ("ab",), (None,), (([],),), ((3,),), (("a",), None), (("a",), ["b"])]
)
def test_malformed_queries_are_refused(bad):
    with pytest.raises(QueryError):
        Query(*bad)


def test_a_workload_must_fit_the_structure():
    for question in (Query(("x",)), Query(("a",), {"b": "7"})):
        with pytest.raises(QueryError):
            checked_workload(STRUCTURE, [question])


def test_evidence_of_a_workload_may_be_a_number_as_it_may_be_in_a_question():
    age = Variable("age", ["young", "old"], cut_points=[65])
    structure = Structure(Schema([age, Variable("b", ["0", "1"])]), Dag(["age", "b"], {}))
    asked = [Query(("b",), {"age": value}) for value in (70, "64.5", "old")]
    assert [query.evidence["age"] for query in checked_workload(structure, asked)] == ["old", "young", "old"]
    with pytest.raises(QueryError, match="a number or one of"):
        checked_workload(structure, [Query(("b",), {"age": None})])
