"""What a workload says about where errors matter."""

import itertools
import math

import numpy as np
import pytest

from dpbn import load_network
from dpbn.learners import influence
from dpbn.learners.influence import FLOOR, influences
from dpbn.learners.optimized import learn_optimized
from dpbn.workload import Query
from tests.learners.runs import curator
from tests.structures import structure_of


def test_barren_nodes_do_not_matter_and_the_asked_node_does():
    structure = load_network("alarm").structure
    weights = influences(structure, (Query(("HISTORY",)), Query(("LVFAILURE",), {"HISTORY": "TRUE"})))
    assert weights["LVFAILURE"] > 0.05 and weights["HISTORY"] > 0.05
    assert all(weights[node] == FLOOR for node in structure.nodes if node not in ("LVFAILURE", "HISTORY"))
    assert weights == influences(structure, (Query(("HISTORY",)), Query(("LVFAILURE",), {"HISTORY": "TRUE"})))


@pytest.mark.parametrize("centre", ["BP", "SAO2"])
def test_a_workload_moves_the_budget_and_lowers_its_error(centre):
    network = load_network("alarm")
    child = network.structure.dag.children(centre)[0] if network.structure.dag.children(centre) else None
    workload = (Query((centre,)), *([Query((centre, child))] if child else []))
    errors = {}
    for name, asked in (("without", None), ("with", workload)):
        total = []
        for seed in range(3):
            holder = curator(network, 10_000, 1.0, seed=seed)
            learned = learn_optimized(network.structure, holder, prior={}, public_cpts={}, workload=asked)
            total.append(np.abs(learned.cpts[centre] - network.cpt(centre)).mean())
        errors[name] = np.mean(total)
    assert errors["with"] < 0.8 * errors["without"]


def spread(shares):
    """Summed deviations of shares whose cells have noise of deviation 1, once they are normalised again."""
    return np.sqrt((1 - shares) ** 2 + (len(shares) - 1) * shares**2).sum()


def test_weights_at_a_network_are_what_small_errors_do_to_the_answers():
    """In closed form: e on every family cell moves P(c) by (e - P sum e) summed over rows, through b by less."""
    structure = structure_of({"a": 4, "b": 2, "c": 2}, {"c": ("b",)})
    cpts = {"a": np.array([0.4, 0.3, 0.2, 0.1]), "b": np.array([0.7, 0.3]), "c": np.array([[0.9, 0.1], [0.3, 0.7]])}
    found = influences(structure, (Query(("a",)), Query(("c",)), Query(("c",))), cpts)
    of_rows = 2 * math.sqrt(sum(spread(row) ** 2 / 4 for row in cpts["c"]))
    wanted = {"a": spread(cpts["a"]) / 2, "b": 0.6 * spread(cpts["b"]), "c": of_rows}  # c is asked for twice
    wanted = {node: size / math.sqrt(structure.cells(node)) for node, size in wanted.items()}
    for node in structure.nodes:  # the mean of 133 or more simulated changes, three deviations of it
        assert found[node] == pytest.approx(wanted[node] / max(wanted.values()), rel=0.25)


def test_noise_that_would_make_a_probability_negative_is_cut():
    structure = structure_of({"a": 2}, {})
    assert influences(structure, (Query(("a",)),), {"a": np.array([0.0, 1.0])}) == {"a": 1.0}


def test_what_is_given_matters_as_well():
    structure = structure_of({"a": 2, "b": 2, "c": 2}, {"b": ("a",), "c": ("b",)})
    found = influences(structure, (Query(("a",), {"b": "1"}),))
    assert min(found["a"], found["b"]) > 0.05 and found["c"] == FLOOR


@pytest.mark.parametrize("reason", ["too large an answer", "too large a family", "impossible evidence"])
def test_where_nothing_can_be_simulated_all_that_can_matter_does(reason, monkeypatch):
    names = [f"x{i}" for i in range(30)]
    structure = structure_of(dict.fromkeys([*names, "z"], 2), {b: (a,) for a, b in itertools.pairwise(names)})
    around, workload = None, (Query(names),)
    if reason == "too large a family":
        monkeypatch.setattr(influence, "CHEAP_CELLS", 3)
        workload = (Query(("x3",)),)
    elif reason == "impossible evidence":
        around = {node: np.broadcast_to([1.0, 0.0], structure.shape(node)) for node in structure.nodes}
        workload = (Query(("x3",), {"x0": "1"}),)
    found = influences(structure, workload, around)
    assert found["x0"] == 1.0 and found["z"] == FLOOR
    assert found["x1"] == found["x3"] == pytest.approx(math.sqrt(2 / 4))
