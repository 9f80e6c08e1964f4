"""The measures of error, against enumeration by hand."""

import itertools
import math

import numpy as np
import pytest

from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable, load_network
from dpbn.errors import InputError, QueryError
from dpbn.evaluate import metrics
from dpbn.workload import Query, checked_workload

STRUCTURE = Structure(
    Schema((Variable("a", ("0", "1")), Variable("b", ("0", "1", "2")))), Dag(("a", "b"), {"a": (), "b": ("a",)})
)
TRUTH = BayesianNetwork(STRUCTURE, {"a": [0.25, 0.75], "b": [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]})
LEARNED = BayesianNetwork(STRUCTURE, {"a": [0.5, 0.5], "b": [[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]]})
PARENTS = {"a": np.ones(()), "b": np.array([0.25, 0.75])}


def test_row_and_weighted_by_hand():
    assert metrics.row(TRUTH, LEARNED) == pytest.approx((0.5 + (0.5 + 0.2) / 2) / 2)
    assert metrics.weighted(TRUTH, LEARNED, PARENTS) == pytest.approx((0.5 + 0.25 * 0.5 + 0.75 * 0.2) / 2)


def test_joint_kl_is_the_kl_of_the_enumerated_joint():
    mixed = {node: 0.9 * LEARNED.cpt(node) + 0.1 / LEARNED.cpt(node).shape[-1] for node in LEARNED.nodes}
    expected = 0.0
    for a, b in itertools.product(range(2), range(3)):
        true = TRUTH.cpt("a")[a] * TRUTH.cpt("b")[a, b]
        if true:
            expected += true * math.log(true / (mixed["a"][a] * mixed["b"][a, b]))
    assert metrics.joint_kl(TRUTH, LEARNED, PARENTS, mixture=0.1) == pytest.approx(expected)


def test_no_error_against_itself_and_finite_where_learned_is_zero():
    for measured in (metrics.row(TRUTH, TRUTH), metrics.weighted(TRUTH, TRUTH, PARENTS)):
        assert measured == 0.0
    assert metrics.joint_kl(LEARNED, TRUTH, PARENTS) > 0.3  # TRUTH has a zero where LEARNED does not
    assert math.isfinite(metrics.row_kl(LEARNED, TRUTH))


def test_networks_must_share_their_structure():
    with pytest.raises(InputError, match="share one structure"):
        metrics.row(TRUTH, load_network("asia"))


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
