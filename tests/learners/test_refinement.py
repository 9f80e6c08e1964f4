"""Margins under the model against ordinary inference, and the step towards the tables."""

import numpy as np
import pytest

from dpbn import Dag, Inference, Structure, load_network
from dpbn.learners import estimate as estimate_module
from dpbn.learners.optimized import learn_optimized
from dpbn.learners.refinement import LEAST, ModelMargins, contradicts, expected_counts
from dpbn.learners.strategy import plan_tables
from dpbn.privacy.guarantee import Budget, Sensitivity


@pytest.mark.parametrize("name", ["asia", "child"])
def test_model_margins_are_the_networks_joint_probabilities(name):
    network = load_network(name)
    tables = plan_tables(network.structure, Budget(1.0), Sensitivity()).tables
    generator = np.random.default_rng(0)
    other = {n: generator.dirichlet(np.ones(c.shape[-1]), size=c.shape[:-1]) for n, c in network.cpts.items()}
    margins = ModelMargins(network.structure, tables)(
        {node: np.stack([network.cpt(node), other[node]]) for node in network.nodes}
    )
    ask = Inference(network)
    for names, margin in zip(tables, margins, strict=True):
        assert margin.shape == (2, *network.structure.schema.shape(names))
        assert margin[0] == pytest.approx(ask.query(list(names)).values, abs=1e-9)
        assert margin[1].sum() == pytest.approx(1.0)


def test_a_step_believes_the_value_without_noise_and_the_model_without_signal():
    expected = np.array([[10.0, 200.0, 5.0]])
    value = np.array([[12.0, 150.0, -400.0]])
    assert expected_counts(expected, value, 0.0)[0, :2] == pytest.approx(value[0, :2])
    assert expected_counts(expected, value, 1e12) == pytest.approx(expected)
    assert expected_counts(expected, value, 1.0)[0, 2] == pytest.approx(LEAST * 5.0)


def test_a_table_contradicts_the_network_only_beyond_its_noise():
    generator = np.random.default_rng(0)
    expected = np.full((200, 6, 6), 50.0)
    noise = generator.laplace(0, 10, expected.shape)
    assert contradicts(expected, expected + noise, 200.0).mean() < 0.05
    wrong = expected + 40 * np.eye(6)[None] * 5
    assert contradicts(expected, wrong + noise, 200.0).mean() > 0.95


def test_a_wrong_graph_costs_no_more_than_no_refinement(make_curator, monkeypatch):
    """Records from CHILD, learned over CHILD without two arcs into its hub's children."""
    truth = load_network("child")
    parents = {n: truth.parents(n) for n in truth.nodes} | {"LungParench": (), "HypDistrib": ("DuctFlow",)}
    structure = Structure(truth.structure.schema, Dag(truth.nodes, parents))
    ask = Inference(truth)
    errors = {}
    for steps in (0, estimate_module.STEPS):
        monkeypatch.setattr(estimate_module, "STEPS", steps)
        errors[steps] = 0.0
        for seed in range(4):
            curator = make_curator(truth, 10_000, 1.0, seed)
            cpts = learn_optimized(structure, curator, prior={}, public_cpts={}).cpts
            for node in structure.nodes:
                joint = ask.query(list(structure.family(node).names)).values
                best = joint / joint.sum(axis=-1, keepdims=True)
                errors[steps] += float((np.abs(cpts[node] - best) * joint.sum(axis=-1, keepdims=True)).sum())
    assert errors[6] < 1.02 * errors[0]
