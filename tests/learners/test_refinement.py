"""Margins under the model against ordinary inference, and the step towards the tables."""

import numpy as np
import pytest

from dpbn import Dag, Inference, Schema, Structure, Variable, load_network
from dpbn.learners import estimate as estimate_module
from dpbn.learners import refinement
from dpbn.learners.estimate import estimate_batch
from dpbn.learners.optimized import learn_optimized
from dpbn.learners.refinement import LEAST, ModelMargins, contradicts, expected_counts, over_states, resolution
from dpbn.learners.strategy import plan_tables
from dpbn.measurement import Moments
from tests.learners.runs import curator


@pytest.mark.parametrize("name", ["asia", "child"])
def test_model_margins_are_the_networks_joint_probabilities(name):
    network = load_network(name)
    tables = plan_tables(network.structure).tables
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


def test_networks_are_taken_several_at_a_time_and_the_last_few_too(monkeypatch):
    network, generator = load_network("asia"), np.random.default_rng(0)
    tables = plan_tables(network.structure).tables
    shapes = {node: (11, *cpt.shape) for node, cpt in network.cpts.items()}
    cpts = {node: generator.dirichlet(np.ones(shape[-1]), size=shape[:-1]) for node, shape in shapes.items()}
    factors = [generator.random((11, *network.structure.schema.shape(names))) for names in tables]
    whole = ModelMargins(network.structure, tables)
    monkeypatch.setattr(refinement, "CHUNK_CELLS", 1)
    for at_once, most_cells in ((1, 10**9), (4, 10**9), (4, 1)):
        monkeypatch.setattr(refinement, "AT_ONCE", at_once)
        monkeypatch.setattr(refinement, "MOST_CELLS", most_cells)
        parts = ModelMargins(network.structure, tables)
        for some, all_of_them in zip(parts(cpts), whole(cpts), strict=True):
            np.testing.assert_allclose(some, all_of_them, rtol=1e-12)
        slopes = whole.by_cpts(cpts, factors)
        for node, slope in parts.by_cpts(cpts, factors).items():
            np.testing.assert_allclose(slope, slopes[node], rtol=1e-12)


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


@pytest.mark.parametrize("side", [6, 50])
def test_a_table_contradicts_beyond_three_deviations_of_its_mean_square(side):
    """A squared unit Laplace variable has mean 1 and variance 6 - 1; a count of 50 varies by 50 more than its noise."""
    limit = 1 + 3 * ((6 - 1) / side**2) ** 0.5
    expected = np.full((3, side, side), 50.0)
    signs = 1.0 - 2.0 * (np.indices((side, side)).sum(axis=0) % 2)
    for part, wonder in ((0.99, False), (1.01, True)):
        off = signs * (part * limit * (50.0 + 200.0)) ** 0.5
        assert (contradicts(expected, expected + off, 200.0) == wonder).all()


def test_pseudo_counts_are_even_where_cells_are_resolved_and_like_the_margin_where_not():
    expected = np.full((2, 5, 3), 40.0)
    assert resolution(expected, 0.0) == pytest.approx(1.0)
    assert resolution(expected, 120.0) == pytest.approx(0.25)
    assert resolution(np.array([[90.0, 10.0]]), 10.0) == pytest.approx(0.86)  # 0.9 for nine records of ten, else 0.5
    family = np.broadcast_to([6.0, 3.0, 1.0], (3, 4, 2, 3))
    spread = over_states(family, np.array([1.0, 0.0, 0.5]))
    assert spread.shape == (3, 1, 1, 3)
    assert spread[0].ravel() == pytest.approx([1.0, 1.0, 1.0])
    assert spread[1].ravel() == pytest.approx([1.8, 0.9, 0.3])
    assert spread[2].ravel() == pytest.approx([1.4, 0.95, 0.65])


def test_a_margin_survives_the_steps_in_a_large_even_table():
    """A child of four even parents: no cell stands out of the noise, its margin does."""
    parents = ("a", "b", "c", "d")
    schema = Schema((*(Variable(p, tuple("1234")) for p in parents), Variable("x", ("rare", "common"))))
    structure = Structure(schema, Dag((*parents, "x"), {"x": parents}))
    generator = np.random.default_rng(0)
    counts = np.broadcast_to(np.array([0.2, 0.8]) * 10_000 / 256, (30, 4, 4, 4, 4, 2))
    noisy = counts + np.round(generator.laplace(0, 12, counts.shape))
    learned = estimate_batch(structure, [schema.names], [noisy], [Moments.alone(2 * 12.0**2)], prior={}, public_cpts={})
    (margin,) = ModelMargins(structure, [("x",)])(learned)
    assert margin[:, 0].mean() == pytest.approx(0.2, abs=0.05)


def test_a_wrong_graph_costs_no_more_than_no_refinement(monkeypatch):
    """Records from CHILD, learned over CHILD without two arcs into its hub's children."""
    truth = load_network("child")
    parents = {n: truth.parents(n) for n in truth.nodes} | {"LungParench": (), "HypDistrib": ("DuctFlow",)}
    structure = Structure(truth.structure.schema, Dag(truth.nodes, parents))
    ask = Inference(truth)
    errors = {}
    for steps in (0, estimate_module.TURNS):
        monkeypatch.setattr(estimate_module, "TURNS", steps)
        errors[steps] = 0.0
        for seed in range(4):
            holder = curator(truth, 10_000, 1.0, seed=seed)
            cpts = learn_optimized(structure, holder, prior={}, public_cpts={}).cpts
            for node in structure.nodes:
                joint = ask.query(list(structure.family(node).names)).values
                best = joint / joint.sum(axis=-1, keepdims=True)
                errors[steps] += float((np.abs(cpts[node] - best) * joint.sum(axis=-1, keepdims=True)).sum())
    assert errors[estimate_module.TURNS] < 1.02 * errors[0]
