"""Procedure 1 and Algorithm 1 against figures worked out by hand and a numeric optimiser."""

import numpy as np
import pytest
from scipy import optimize

import dpbn
from dpbn.graph import Dag
from dpbn.learners.consistency import intersections, make_consistent
from dpbn.learners.icml2020 import children_sensitivity, node_weights, optimal_shares, parameter_error
from dpbn.learners.procedure1 import Parameters, normalised, normalised_rows
from dpbn.margins import project
from dpbn.network import BayesianNetwork, Structure


def example(seed: int = 0) -> BayesianNetwork:
    """The paper's 6-node graph A, B -> C -> D, E; D, E -> F, with C of three states and the rest of two."""
    dag = Dag(tuple("ABCDEF"), {"C": ("A", "B"), "D": ("C",), "E": ("C",), "F": ("D", "E")})
    schema = dpbn.Schema(tuple(dpbn.Variable(n, ("0", "1", "2")[: 3 if n == "C" else 2]) for n in "ABCDEF"))
    structure = Structure(schema, dag)
    random = np.random.default_rng(seed)
    return BayesianNetwork(structure, {n: normalised_rows(random.random(structure.shape(n))) for n in dag.nodes})


def joint(network: BayesianNetwork, cpts: dict) -> np.ndarray:
    letters = {n: n.lower() for n in network.nodes}
    terms = ["".join(letters[x] for x in network.structure.family(n).names) for n in network.nodes]
    return np.einsum(",".join(terms) + "->abcdef", *[cpts[n] for n in network.nodes])


def test_sensitivity_and_weights_by_hand():
    # Mean over rows of P(pa) is 1/rows; times 1/|child|. A: 1/1 * 1/3. C: 1/4 * (1/2 + 1/2)/2. D: 1/3 * 1/2.
    effects = children_sensitivity(example())
    assert effects == pytest.approx({"A": 1 / 3, "B": 1 / 3, "C": 1 / 8, "D": 1 / 6, "E": 1 / 6, "F": 0.0})
    weights = node_weights(example().structure, effects)
    by_hand = {
        "A": 4 * 2 * 4 / 3,
        "B": 4 * 2 * 4 / 3,
        "C": 3 * 3 * 9 / 8,
        "D": 2 * 2 * 7 / 6,
        "E": 2 * 2 * 7 / 6,
        "F": 1,
    }
    assert weights == pytest.approx(by_hand)


def test_printed_sensitivity_is_the_derivative():
    network = example(3)
    for node, child, axis in [("A", "C", 2), ("C", "D", 3), ("D", "F", 5)]:
        cpt = network.cpt(node)
        total = 0.0
        for cell in np.ndindex(cpt.shape):
            moved = dict(network.cpts)
            moved[node] = np.array(cpt)
            moved[node][cell] += 1e-6  # parameters move on their own, as in Eq. 6
            change = joint(network, moved) - joint(network, dict(network.cpts))
            others = tuple(a for a in range(6) if a != axis)
            total += change.sum(axis=others).sum() / 1e-6 / len(network.states(child))
        hand = total / cpt.size
        only = {"A": 1 / 3, "C": 1 / 8, "D": 1 / 6}[node]
        assert hand == pytest.approx(only, rel=1e-4)


def test_closed_form_equals_numeric_optimiser():
    random = np.random.default_rng(1)
    costs = {str(i): float(c) for i, c in enumerate(random.exponential(size=7) ** 3)}
    shares = optimal_shares(costs, 0.9)
    cost = np.array(list(costs.values()))
    found = optimize.minimize(
        lambda z: float(np.sum(cost / (0.9 * np.exp(z) / np.exp(z).sum()))), np.zeros(7), options={"gtol": 1e-10}
    )
    numeric = 0.9 * np.exp(found.x) / np.exp(found.x).sum()
    assert np.array(list(shares.values())) == pytest.approx(numeric, rel=1e-3)
    assert sum(shares.values()) == pytest.approx(0.9)


def test_parameter_error_by_hand():
    counts = np.array([[3.0, 1.0], [0.0, 0.0]])
    parameters = Parameters({"x": np.array([[0.75, 0.25], [0.5, 0.5]])}, {"x": counts}, {"x": np.array([4.0, 0.0])})
    cells = [0.75 * np.hypot(1 / 4, 1 / 3), 0.25 * np.hypot(1 / 4, 1), 0.5 * np.sqrt(2), 0.5 * np.sqrt(2)]
    assert parameter_error(parameters, "x", 1.0) == pytest.approx(np.mean(cells))


@pytest.mark.parametrize("name", ["asia", "child", "alarm"])
def test_consistency_leaves_every_shared_marginal_equal(name):
    structure = dpbn.load_network(name).structure
    random = np.random.default_rng(2)
    tables = {n: (structure.family(n).names, normalised(random.random(structure.shape(n)))) for n in structure.nodes}
    weights = {n: float(random.random() + 0.1) for n in structure.nodes}
    consistent = make_consistent(tables, weights)
    for a in structure.nodes:
        for b in structure.nodes:
            shared = tuple(sorted(set(tables[a][0]) & set(tables[b][0])))
            left, right = (project(consistent[n], tables[n][0], shared) for n in (a, b))
            np.testing.assert_allclose(left, right, atol=1e-9)


def test_consistency_weights_the_average():
    tables = {"a": (("a",), np.array([0.2, 0.8])), "b": (("a", "b"), np.array([[0.3, 0.3], [0.2, 0.2]]))}
    consistent = make_consistent(tables, {"a": 3.0, "b": 1.0})
    np.testing.assert_allclose(consistent["a"], [0.3, 0.7])
    np.testing.assert_allclose(consistent["b"], [[0.15, 0.15], [0.35, 0.35]])


def test_intersections_are_closed_and_sorted():
    closure = intersections(["abc", "bcd", "cde", "abc"])
    assert closure == [frozenset(), frozenset("c"), frozenset("bc"), frozenset("cd"), frozenset("abc")]
