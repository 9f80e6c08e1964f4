"""Nodes that share a CPT: found by their noisy tables, used as far as the data want it, and nobody else's loss."""

import numpy as np
import pytest

from dpbn import Dag, Schema, Structure, Variable, load_network
from dpbn.evaluate import metrics
from dpbn.learners import estimate as estimate_module
from dpbn.learners import twins
from dpbn.learners.optimized import learn_optimized
from dpbn.learners.stein import Rows, probed
from dpbn.learners.twins import _Alike, _chance, shared
from dpbn.measurement import Moments
from dpbn.network import BayesianNetwork

VARIANCE = 900.0
PEDIGREE = np.array([[[0.9, 0.08, 0.02], [0.5, 0.4, 0.1]], [[0.1, 0.5, 0.4], [0.0, 0.3, 0.7]]])


def rows_of(truth, records, repetitions, name, laplace=False):
    """What an estimator sees of one CPT: noisy counts, cut at 1 and normalised."""
    generator = np.random.default_rng(sum(map(ord, name)))
    counts = records * truth
    draw = generator.laplace if laplace else generator.normal
    noisy = counts + draw(0, (VARIANCE / (2 if laplace else 1)) ** 0.5, (repetitions, *counts.shape))
    (seen,) = probed([noisy], [Moments.alone(VARIANCE)], [(name,)])
    cut = np.maximum(seen, 1.0)
    return Rows(cut / cut.sum(-1, keepdims=True), seen, cut.sum(-1), VARIANCE, np.full(cut.shape, VARIANCE))


def error(found, truths):
    half = len(next(iter(found.values()))) // 2
    return np.mean([np.abs(found[name][:half] - truth).sum(-1).mean() for name, truth in truths.items()])


def alone(cpts):
    return {name: rows.probabilities for name, rows in cpts.items()}


@pytest.mark.parametrize("laplace", [False, True])
def test_many_nodes_with_one_cpt_are_learned_as_one(laplace):
    truths = {f"x{i}": PEDIGREE for i in range(40)}
    cpts = {name: rows_of(truth, 100.0, 6, name, laplace) for name, truth in truths.items()}
    found = shared(cpts)
    assert all(found[name].shape == rows.probabilities.shape for name, rows in cpts.items())
    assert all(cpt.sum(-1) == pytest.approx(1.0) for cpt in found.values())
    assert error(found, truths) < 0.45 * error(alone(cpts), truths)


@pytest.mark.parametrize("records", [10.0, 40.0, 100.0, 1_000.0])
def test_strangers_lose_next_to_nothing(records):
    generator = np.random.default_rng(8)
    truths = {f"x{i}": generator.dirichlet(np.full(3, 0.5), size=(2, 2)) for i in range(20)}
    cpts = {name: rows_of(truth, records, 10, name) for name, truth in truths.items()}
    assert error(shared(cpts), truths) < 1.02 * error(alone(cpts), truths)


def test_kinds_are_told_apart_within_one_shape():
    other = PEDIGREE[::-1, ::-1, ::-1]
    truths = {f"x{i}": PEDIGREE if i % 3 else other for i in range(30)}
    cpts = {name: rows_of(truth, 200.0, 6, name) for name, truth in truths.items()}
    assert error(shared(cpts), truths) < 0.7 * error(alone(cpts), truths)


def test_a_shape_of_its_own_is_left_alone():
    cpts = {f"x{i}": rows_of(PEDIGREE, 100.0, 2, f"x{i}") for i in range(6)}
    cpts["single"] = rows_of(np.full((3, 2), 0.5), 100.0, 2, "single")
    assert shared(cpts)["single"] is cpts["single"].probabilities
    only = {"single": cpts["single"]}
    assert shared(only) == alone(only)


def test_nodes_known_well_stay_as_they_are():
    generator = np.random.default_rng(3)
    truths = {f"x{i}": PEDIGREE + generator.normal(0, 1e-4, PEDIGREE.shape) for i in range(8)}
    cpts = {name: rows_of(np.abs(truth), 1e7, 2, name) for name, truth in truths.items()}
    for name, cpt in shared(cpts).items():
        assert cpt == pytest.approx(cpts[name].probabilities, abs=1e-5)


def test_the_order_of_the_nodes_does_not_matter():
    cpts = {f"x{i}": rows_of(PEDIGREE, 100.0, 2, f"x{i}") for i in range(7)}
    back = shared(dict(reversed(cpts.items())))
    for name, cpt in shared(cpts).items():
        assert cpt == pytest.approx(back[name], abs=1e-9)


def test_repetitions_are_apart_in_blocks_of_any_size(monkeypatch):
    cpts = {f"x{i}": rows_of(PEDIGREE, 100.0, 5, f"x{i}") for i in range(6)}
    whole = shared(cpts)
    monkeypatch.setattr(twins, "CHUNK", 6 * 6 * 4 * 3)
    for name, cpt in shared(cpts).items():
        assert cpt == pytest.approx(whole[name], abs=1e-12)


def test_a_class_too_large_to_compare_at_once_is_cut(monkeypatch):
    truths = {f"x{i}": PEDIGREE for i in range(31)}
    cpts = {name: rows_of(truth, 100.0, 2, name) for name, truth in truths.items()}
    monkeypatch.setattr(twins, "CHUNK", 10 * 10 * 4)
    groups = list(twins._classes(cpts))
    assert [len(group) for group in groups] == [7, 8, 8, 8]
    assert sorted(name for group in groups for name in group) == sorted(cpts)
    assert error(shared(cpts), truths) < 0.6 * error(alone(cpts), truths)


def test_evidence_is_the_likelihood_ratio_against_the_group_without_the_node_itself():
    cpts = [rows_of(PEDIGREE, 150.0 + 20 * i, 1, f"x{i}") for i in range(4)]
    group = _Alike(cpts, slice(0, 1))
    part = np.random.default_rng(0).uniform(0.1, 0.9, (1, 4, 4))
    part[:, range(4), range(4)] = 1.0
    found = group.evidence(part)[0]
    seen, known, noise = group.seen[0], group.known[0], group.error[0]
    for i in range(4):
        for j in set(range(4)) - {i}:
            weight = sum(part[0, j, k] * known[k] for k in range(4) if k != i)
            mean = sum(part[0, j, k] * known[k][:, None] * seen[k] for k in range(4) if k != i) / weight[:, None]
            near = noise[i] + 1 / weight + group.near
            far = near + group.apart
            apart = np.square(seen[i] - mean).sum(-1) * 2 / 3  # two of three states are free
            ratio = -apart / 2 / near - np.log(near) + apart / 2 / far + np.log(far)
            assert found[i, j] == pytest.approx(ratio.sum())


def test_the_chance_of_twins_follows_the_pairs():
    sure, never, silent = np.full((1, 9, 9), 30.0), np.full((1, 9, 9), -30.0), np.zeros((1, 9, 9))
    assert _chance([sure])[0] > 1.5
    assert _chance([never])[0] < -2.0
    assert _chance([never])[0] < _chance([silent])[0] < 0.0  # nothing known: rather not
    assert _chance([sure, never])[0] == pytest.approx(0.0, abs=0.5)


def slices(nodes):
    """A process in time: every node hangs on the one before in the same way."""
    names = [f"t{i}" for i in range(nodes)]
    above = {name: tuple(names[max(0, i - 2) : i]) for i, name in enumerate(names)}
    structure = Structure(Schema(tuple(Variable(name, ("low", "mid", "high")) for name in names)), Dag(names, above))
    cpts = {}
    for name in names:
        parents = len(above[name])
        chance = 1.0 + 6.0 * (np.indices((3,) * (parents + 1))[-1] == np.indices((3,) * (parents + 1)).min(axis=0))
        cpts[name] = chance / chance.sum(-1, keepdims=True)
    return BayesianNetwork(structure, cpts)


def test_learning_gains_on_a_process_and_loses_nothing_on_asia(make_curator, monkeypatch):
    process = slices(40)

    def row_error(network, rows, runs):
        total = 0.0
        for seed in range(runs):
            curator = make_curator(network, rows, 1.0, seed=seed)
            learned = learn_optimized(network.structure, curator, prior={}, public_cpts={})
            total += metrics.row(network, BayesianNetwork(network.structure, learned.cpts))
        return total / runs

    gains, asia = row_error(process, 2_000, 2), row_error(load_network("asia"), 1_000, 10)
    monkeypatch.setattr(estimate_module, "shared", alone)
    assert gains < 0.8 * row_error(process, 2_000, 2)
    assert asia < 1.03 * row_error(load_network("asia"), 1_000, 10)
