"""Derivatives by every parameter against finite differences, each CPT cell moved on its own."""

import gc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.errors import ImpossibleEvidenceError, QueryError
from dpbn.inference import derivatives, elimination, joint_derivatives, query_derivatives
from dpbn.inference.derivatives import Differentiator
from dpbn.inference.program import Program
from tests.inference.oracles import joint_table, networks, random_evidence, with_evidence


class Moved:
    """A network whose CPTs need not sum to one: only for the oracle."""

    def __init__(self, network, node=None, cell=None, step=0.0):
        self.nodes, self.states, self.parents = network.nodes, network.states, network.parents
        self._cpts = {n: np.array(network.cpt(n)) for n in network.nodes}
        if node is not None:
            self._cpts[node][cell] += step

    def cpt(self, node):
        return self._cpts[node]


def tables(network, targets, evidence):
    joint = with_evidence(network, joint_table(network), evidence)
    axes = [network.nodes.index(t) for t in targets]
    summed = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in axes))
    joint_values = summed.transpose(np.argsort(np.argsort(axes)))
    return joint_values, joint_values / joint_values.sum()


@settings(deadline=None, max_examples=20)
@given(networks(max_nodes=5), st.integers(0, 1000), st.integers(0, 2), st.integers(0, 1))
def test_derivatives_agree_with_finite_differences(network, seed, hard, soft):
    generator = np.random.default_rng(seed)
    evidence = random_evidence(network, seed, hard, soft)
    free = [n for n in network.nodes if n not in evidence]
    assume(free)
    targets = free[: int(generator.integers(1, min(2, len(free)) + 1))]
    assume(with_evidence(network, joint_table(network), evidence).sum() > 1e-6)
    joint, query = joint_derivatives(network, targets, evidence), query_derivatives(network, targets, evidence)
    base = tables(Moved(network), targets, evidence)
    np.testing.assert_allclose(joint.values, base[0], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(query.values, base[1], rtol=1e-9, atol=1e-14)
    for node in network.nodes:
        for cell in np.ndindex(network.cpt(node).shape):
            step = 1e-6
            high = tables(Moved(network, node, cell, step), targets, evidence)
            low = tables(Moved(network, node, cell, -step), targets, evidence)
            every = (slice(None),) * len(targets)
            np.testing.assert_allclose(joint.by[node][every + cell], (high[0] - low[0]) / (2 * step), atol=1e-7)
            slope = (high[1] - low[1]) / (2 * step)
            scale = 1 + np.abs(slope).max()
            np.testing.assert_allclose(query.by[node][every + cell], slope, atol=1e-4 * scale**2)


def test_the_sum_over_a_childs_states_is_the_parents_probability():
    """The paper's Eq. 6: Σ_y ∂P[Y=y]/∂Θ[x|pa] is P(pa), whatever the child."""
    network = dpbn.load_network("asia")
    found = joint_derivatives(network, ["dysp"]).by["bronc"].sum(axis=0)
    smoke = dpbn.Inference(network).query(["smoke"]).values
    np.testing.assert_allclose(found, np.repeat(smoke[:, None], 2, axis=1))


def test_derivative_of_the_evidence_alone_and_impossible_evidence():
    network = dpbn.load_network("asia")
    found = joint_derivatives(network, [], {"xray": "yes"})
    assert found.values == pytest.approx(dpbn.Inference(network).probability({"xray": "yes"}))
    assert found.by["xray"].shape == (2, 2)
    with pytest.raises(ImpossibleEvidenceError):
        query_derivatives(network, ["xray"], {"either": "no", "lung": "yes"})


def test_targets_are_read_once_and_must_be_names():
    network = dpbn.load_network("asia")
    once = query_derivatives(network, (name for name in ["dysp"]))
    assert once.variables == ("dysp",)
    np.testing.assert_allclose(once.values, query_derivatives(network, "dysp").values)
    with pytest.raises(QueryError, match="targets must be a name or a list of names, got int"):
        joint_derivatives(network, 5)


def test_a_differentiator_asked_again_answers_as_a_new_one():
    """The same targets, other nodes observed."""
    network = dpbn.load_network("asia")
    kept = Differentiator(network)
    for evidence in ({}, {"smoke": "yes"}, {"xray": "yes", "asia": [0.2, 0.9]}, {"smoke": "no"}):
        for found, new in (
            (kept.query("dysp", evidence), query_derivatives(network, "dysp", evidence)),
            (kept.joint("dysp", evidence), joint_derivatives(network, "dysp", evidence)),
        ):
            np.testing.assert_allclose(found.values, new.values, rtol=1e-12)
            for node in network.nodes:
                np.testing.assert_allclose(found.by[node], new.by[node], rtol=1e-12, atol=1e-15)


def test_what_a_differentiator_keeps_has_a_bound(monkeypatch):
    def programs():
        gc.collect()
        return sum(isinstance(kept, Program) for kept in gc.get_objects())

    for module in (derivatives, elimination):
        monkeypatch.setattr(module, "PLANS_KEPT", 2)
    network, before = dpbn.load_network("asia"), programs()
    asked = Differentiator(network)
    for node in network.nodes[:-1]:
        asked.query("dysp", {node: network.states(node)[1]})
    assert 0 < programs() - before <= 4
