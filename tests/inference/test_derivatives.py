"""Derivatives by every parameter against finite differences, each CPT cell moved on its own."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpbn
from dpbn import BayesianNetwork, Dag, Inference, Schema, Structure, Variable
from dpbn.errors import ImpossibleEvidenceError, QueryError, TooLargeError
from tests.inference.oracles import joint_table, networks, random_evidence, with_evidence

STEP = 1e-6


def moved(network, node, cell, step):
    """What the oracle reads of a network; one CPT cell is moved and its row no longer sums to one."""
    cpts = {n: np.array(network.cpt(n)) for n in network.nodes}
    cpts[node][cell] += step
    return SimpleNamespace(nodes=network.nodes, states=network.states, parents=network.parents, cpt=cpts.__getitem__)


def answer(network, targets, evidence):
    joint = with_evidence(network, joint_table(network), evidence)
    axes = [network.nodes.index(t) for t in targets]
    summed = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in axes))
    return summed.transpose(np.argsort(np.argsort(axes))) / summed.sum()


@settings(deadline=None, max_examples=20)
@given(networks(max_nodes=5), st.integers(0, 1000), st.integers(0, 2), st.integers(0, 1))
def test_derivatives_agree_with_finite_differences(network, seed, hard, soft):
    generator = np.random.default_rng(seed)
    evidence = random_evidence(network, seed, hard, soft)
    free = [n for n in network.nodes if not isinstance(evidence.get(n), str)]
    assume(free)
    targets = free[: int(generator.integers(1, min(2, len(free)) + 1))]
    assume(with_evidence(network, joint_table(network), evidence).sum() > 1e-3)
    found = Inference(network).derivatives(targets, evidence)
    for node in network.nodes:
        for cell in np.ndindex(network.cpt(node).shape):
            high, low = (answer(moved(network, node, cell, step), targets, evidence) for step in (STEP, -STEP))
            slope = (high - low) / (2 * STEP)
            mine = found[node][(slice(None),) * len(targets) + cell]
            np.testing.assert_allclose(mine, slope, atol=1e-4 * (1 + np.abs(slope).max()) ** 2)


def test_without_evidence_they_are_those_of_equation_6():
    """dP[y]/dtheta[x|pa] = P(y | x, pa) P(pa), less what the sum over y moves by, of which y has the part P(y)."""
    network = dpbn.load_network("asia")
    ask = Inference(network)
    for node, child in (("bronc", "dysp"), ("lung", "either")):
        parents = list(network.parents(node))
        joint = ask.query([*parents, node, child]).values
        expected = joint / joint.sum(axis=-1, keepdims=True) - ask.query([child]).values
        expected = expected * ask.query(parents).values[..., None, None]
        np.testing.assert_allclose(ask.derivatives(child)[node], np.moveaxis(expected, -1, 0), atol=1e-12)


def test_axes_are_those_of_the_targets_as_asked_then_those_of_the_cpt():
    network = dpbn.load_network("child")
    ask = Inference(network)
    found = ask.derivatives(["Disease", "LungFlow"], {"Age": network.states("Age")[0]})
    for node in network.nodes:
        assert found[node].shape == (6, 3, *network.cpt(node).shape)
    swapped = ask.derivatives(["LungFlow", "Disease"], {"Age": network.states("Age")[0]})
    np.testing.assert_allclose(swapped["Sick"], found["Sick"].swapaxes(0, 1))


def test_what_cannot_be_asked():
    network = dpbn.load_network("asia")
    ask = Inference(network)
    with pytest.raises(ImpossibleEvidenceError, match="either"):
        ask.derivatives(["xray"], {"either": "no", "lung": "yes"})
    with pytest.raises(QueryError, match="targets must not be evidence as well"):
        ask.derivatives(["xray"], {"xray": "yes"})
    with pytest.raises(TooLargeError, match="must fit in 10 cells"):
        Inference(network, limit=10).derivatives("xray")


def binary(first, second):
    schema = Schema(tuple(Variable(name, ("s0", "s1")) for name in "ab"))
    structure = Structure(schema, Dag(("a", "b"), {"a": (), "b": ("a",)}))
    return BayesianNetwork(structure, {"a": np.array(first), "b": np.array(second)})


def test_faint_answers_and_derivatives_that_no_float_holds():
    faint = binary([0.25, 0.75], [[1 - 1e-250, 1e-250], [1 - 1e-250, 1e-250]])
    found = Inference(faint).derivatives("a", {"b": "s1"})
    np.testing.assert_allclose(found["a"], [[0.75, -0.25], [-0.75, 0.25]])
    np.testing.assert_allclose(found["b"][0, :, 1], [0.1875e250, -0.1875e250])
    deep = binary([1 - 1e-250, 1e-250], [[1.0, 0.0], [1 - 1e-250, 1e-250]])
    with pytest.raises(QueryError, match="numbers that a float can hold"):
        Inference(deep).derivatives("a", {"b": "s1"})
