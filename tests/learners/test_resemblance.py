"""Rows that borrow from rows like them: where it helps, where it must not, and how far."""

import numpy as np
import pytest

from dpbn import Dag, Schema, Structure, Variable, load_network
from dpbn.evaluate import metrics
from dpbn.learners import estimate as estimate_module
from dpbn.learners import resemblance
from dpbn.learners.estimate import estimate_batch
from dpbn.learners.optimized import learn_optimized
from dpbn.learners.resemblance import Rows, blended, probed, resembling
from dpbn.network import BayesianNetwork

VARIANCE = 900.0


def rows_of(truth, records, repetitions, seed=0):
    """What an estimator sees of one CPT: noisy counts, cut at 1 and normalised."""
    generator = np.random.default_rng(seed)
    counts = records[..., None] * truth
    noisy = counts + generator.normal(0, VARIANCE**0.5, (repetitions, *counts.shape))
    (seen,) = probed([noisy], [VARIANCE])
    cut = np.maximum(seen, 1.0)
    return Rows(cut / cut.sum(-1, keepdims=True), seen, cut.sum(-1), VARIANCE)


def as_they_are(cpts):
    return {node: rows.probabilities for node, rows in cpts.items()}


def error(cpts, truth):
    return np.abs(cpts - truth).sum(-1).mean()


def test_weak_rows_that_are_alike_gain_much():
    truth = np.broadcast_to([0.7, 0.2, 0.1], (3, 3, 3, 3))
    rows = rows_of(truth, np.full((3, 3, 3), 100.0), 20)
    found = blended({"x": rows})["x"][:20]
    assert found.shape == (20, 3, 3, 3, 3)
    assert found.sum(-1) == pytest.approx(1.0)
    assert error(found, truth) < 0.65 * error(rows.probabilities[:20], truth)


def test_rows_that_are_nothing_alike_lose_next_to_nothing():
    truth = np.random.default_rng(5).dirichlet(np.full(3, 0.4), size=(3, 3, 3))
    rows = rows_of(truth, np.full((3, 3, 3), 100.0), 20)
    assert error(blended({"x": rows})["x"][:20], truth) < 1.02 * error(rows.probabilities[:20], truth)


def test_a_usual_row_says_nothing_about_rare_ones_if_the_data_deny_it():
    truth = np.tile([0.1, 0.9], (2, 2, 2, 2, 1)).astype(float)
    truth[0, 0, 0, 0] = 0.98, 0.02
    records = np.full((2, 2, 2, 2), 50.0)
    records[0, 0, 0, 0] = 5000.0
    cpts = {f"x{i}": rows_of(truth, records, 20, seed=i) for i in range(12)}
    found = np.mean([error(cpt[:20], truth) for cpt in blended(cpts).values()])
    assert found < np.mean([error(rows.probabilities[:20], truth) for rows in cpts.values()])


def test_rows_with_many_records_stay():
    truth = np.array([[0.3, 0.7], [0.5, 0.5], [0.6, 0.4]])
    rows = rows_of(truth, np.full(3, 1e6), 4)
    assert resembling(rows) == pytest.approx(rows.probabilities, abs=1e-3)


def test_the_step_is_the_one_with_the_least_squared_error():
    generator = np.random.default_rng(2)
    truth = generator.dirichlet(np.full(3, 0.2), size=(80, 80))
    records = generator.uniform(50, 300, (80, 80))
    rows = rows_of(truth, records, 2)
    step = resembling(rows)[:2] - rows.probabilities[:2]
    counts = rows.records[:2, ..., None]
    best = ((records[..., None] * truth - counts * rows.probabilities[:2]) * counts * step).sum()
    best /= np.square(counts * step).sum()
    taken = ((blended({"x": rows})["x"][:2] - rows.probabilities[:2]) * step).sum() / np.square(step).sum()
    assert 0.5 < best < 0.95
    assert taken == pytest.approx(best, abs=0.1)


def test_blocks_change_nothing(monkeypatch):
    truth = np.random.default_rng(1).dirichlet(np.ones(4), size=(5, 9))
    rows = rows_of(truth, np.full((5, 9), 80.0), 3)
    whole = resembling(rows)
    monkeypatch.setattr(resemblance, "CHUNK", 100)
    assert resembling(rows) == pytest.approx(whole)
    monkeypatch.setattr(resemblance, "CHUNK", 10_000)
    assert resembling(rows) == pytest.approx(whole)


@pytest.fixture
def measured(make_curator):
    network = load_network("child")
    curator = make_curator(network, 2000, 1.0, seed=1)
    learn_optimized(network.structure, curator, prior={}, public_cpts={})
    return network, curator.measurements


def test_a_repetition_does_not_depend_on_the_others(measured):
    network, measurements = measured
    tables, variances = [m.names for m in measurements], [m.variance for m in measurements]
    values = [np.stack([m.values, m.values[::-1] if m.values.ndim else m.values]).astype(float) for m in measurements]
    both = estimate_batch(network.structure, tables, values, variances, prior={}, public_cpts={})
    first = estimate_batch(network.structure, tables, [v[:1] for v in values], variances, prior={}, public_cpts={})
    for node in network.nodes:
        assert both[node][0] == pytest.approx(first[node][0], abs=1e-9)


def test_what_the_custodian_says_of_a_node_is_not_borrowed_away(measured):
    network, measurements = measured
    node = "LowerBodyO2"
    said = np.random.default_rng(0).dirichlet(np.ones(3), size=network.cpt(node).shape[:-1])
    cpts = estimate_module.estimate(network.structure, measurements, prior={node: 1e7 * said}, public_cpts={})
    assert cpts[node] == pytest.approx(said, abs=1e-3)


def noisy_or(nodes, parents, seed):
    """A network in which a row is what its parents add up to."""
    generator = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(nodes)]
    above = {name: tuple(generator.permutation(names[:i])[:parents]) for i, name in enumerate(names)}
    structure = Structure(Schema(tuple(Variable(name, ("no", "yes")) for name in names)), Dag(names, above))
    cpts = {}
    for name in names:
        fail = np.array(0.9)
        for strength in generator.uniform(0.1, 0.5, len(above[name])):
            fail = np.multiply.outer(fail, [1.0, 1.0 - strength])
        cpts[name] = np.stack([fail, 1.0 - fail], axis=-1)
    return BayesianNetwork(structure, cpts)


def test_learning_gains_where_rows_are_alike_and_loses_nothing_on_asia(make_curator, monkeypatch):
    alike = noisy_or(30, 6, seed=3)

    def row_error(network, runs):
        total = 0.0
        for seed in range(runs):
            curator = make_curator(network, 10_000, 1.0, seed=seed)
            learned = learn_optimized(network.structure, curator, prior={}, public_cpts={})
            total += metrics.row(network, BayesianNetwork(network.structure, learned.cpts))
        return total / runs

    gains, asia = row_error(alike, 2), row_error(load_network("asia"), 10)
    monkeypatch.setattr(estimate_module, "blended", as_they_are)
    assert gains < 0.8 * row_error(alike, 2)
    assert asia < 1.03 * row_error(load_network("asia"), 10)
