"""Ancestral sampling: the law is the network's, zeros are never drawn, a seed repeats."""

import numpy as np
import pytest
from scipy import stats

import dpbn
from dpbn.errors import InputError
from dpbn.sampling import BLOCK_ROWS, sample_codes

ROWS = 60_000


def single(*probabilities: float) -> dpbn.BayesianNetwork:
    variable = dpbn.Variable("a", tuple(f"s{i}" for i in range(len(probabilities))))
    return dpbn.BayesianNetwork(
        dpbn.Structure(dpbn.Schema((variable,)), dpbn.Dag(("a",), {})), {"a": np.array(probabilities)}
    )


def family_p_values(network: dpbn.BayesianNetwork, claimed: dpbn.BayesianNetwork, seed: int) -> list[float]:
    """Chi-square p-values of each CPT row of `claimed` against rows sampled from `network`."""
    codes = sample_codes(network, ROWS, seed)
    found = []
    for node in network.nodes:
        family = network.structure.family(node).names
        shape = network.structure.shape(node)
        flat = np.ravel_multi_index([codes[name] for name in family], shape)
        counts = np.bincount(flat, minlength=int(np.prod(shape))).reshape(-1, shape[-1])
        for row, probabilities in zip(counts, claimed.cpt(node).reshape(-1, shape[-1]), strict=True):
            possible = probabilities > 0
            assert row[~possible].sum() == 0
            if row.sum() * probabilities[possible].min() > 5 and possible.sum() > 1:
                expected = row.sum() * probabilities[possible] / probabilities[possible].sum()
                found.append(float(stats.chisquare(row[possible], expected).pvalue))
    return found


@pytest.mark.parametrize("name", ["asia", "child", "alarm"])
def test_every_row_follows_its_law(name):
    network = dpbn.load_network(name)
    p_values = family_p_values(network, network, seed=1)
    assert len(p_values) > 10
    assert min(p_values) > 1e-3 / len(p_values)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4


def test_another_law_is_rejected():
    network = dpbn.load_network("child")
    cpts = {node: 0.9 * network.cpt(node) + 0.1 / network.cpt(node).shape[-1] for node in network.nodes}
    smoothed = dpbn.BayesianNetwork(network.structure, cpts)
    assert min(family_p_values(network, smoothed, seed=1)) < 1e-12


def test_a_thousand_states_under_a_parent():
    generator = np.random.default_rng(0)
    child = generator.dirichlet(np.ones(1000), size=3)
    child[:, ::7] = 0
    child /= child.sum(axis=1, keepdims=True)
    variables = (dpbn.Variable("a", ("x", "y", "z")), dpbn.Variable("b", tuple(map(str, range(1000)))))
    structure = dpbn.Structure(dpbn.Schema(variables), dpbn.Dag(("a", "b"), {"b": ("a",)}))
    network = dpbn.BayesianNetwork(structure, {"a": [0.2, 0.3, 0.5], "b": child})
    codes = sample_codes(network, 400_000, seed=3)
    counts = np.zeros((3, 1000))
    np.add.at(counts, (codes["a"], codes["b"]), 1)
    assert counts[:, ::7].sum() == 0
    assert codes["b"].max() == 999
    expected = child * counts.sum(axis=1, keepdims=True)
    likely = expected > 10
    score = ((counts - expected)[likely] / np.sqrt(expected[likely])) ** 2
    assert score.mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    "probabilities", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.5, 0.0, 0.5, 0.0), (0.1,) * 10, (1.0,), (0.3, 0.7 - 1e-7, 0.0)]
)
def test_impossible_states_are_never_drawn(probabilities):
    counts = np.bincount(sample_codes(single(*probabilities), 50_000, seed=2)["a"], minlength=len(probabilities))
    assert (counts[np.array(probabilities) == 0] == 0).all()
    assert counts / 50_000 == pytest.approx(probabilities, abs=0.02)


def test_the_frame_has_the_labels_and_a_seed_repeats():
    network = dpbn.load_network("alarm")
    frame = network.sample(BLOCK_ROWS + 7, seed=5)
    assert tuple(frame.columns) == network.nodes
    assert len(frame) == BLOCK_ROWS + 7
    assert all(tuple(frame[node].cat.categories) == network.states(node) for node in network.nodes)
    assert frame.equals(network.sample(BLOCK_ROWS + 7, seed=5))
    assert not frame.equals(network.sample(BLOCK_ROWS + 7, seed=6))
    assert len(network.sample(0)) == 0


@pytest.mark.parametrize(("rows", "seed"), [(-1, 0), (1.5, 0), (True, 0), ("3", 0), (3, -1), (3, "x"), (3, 0.5)])
def test_bad_arguments(rows, seed):
    with pytest.raises(InputError):
        dpbn.load_network("asia").sample(rows, seed)
