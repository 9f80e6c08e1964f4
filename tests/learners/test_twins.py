"""Nodes that share a CPT: found by their noisy tables, used as far as the data want it, and nobody else's loss."""

from dataclasses import replace

import numpy as np
import pytest

from dpbn import load_network
from dpbn.learners import estimate as estimate_module
from dpbn.learners import twins
from dpbn.learners.stein import Rows, account, probed
from dpbn.learners.twins import DOUBT, LOG_ODDS, _Alike, _chance, _targets, shared
from dpbn.measurement import Moments
from dpbn.network import BayesianNetwork
from tests.learners.runs import row_error
from tests.structures import structure_of

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
            near = noise[i] + 1 / weight + twins.TWINS**2 * 2 / 3
            far = near + 2 * twins.STRANGERS**2 * 2 / 3  # both lie off the centre
            apart = np.square(seen[i] - mean).sum(-1) * 2 / 3  # two of three states are free
            ratio = -apart / 2 / near - np.log(near) + apart / 2 / far + np.log(far)
            assert found[i, j] == pytest.approx(ratio.sum())


def test_the_chance_of_twins_follows_the_pairs():
    sure, never, silent = np.full((1, 9, 9), 30.0), np.full((1, 9, 9), -30.0), np.zeros((1, 9, 9))
    assert _chance([sure])[0] > 1.5
    assert _chance([never])[0] < -2.0
    assert _chance([never])[0] < _chance([silent])[0] < 0.0  # nothing known: rather not
    assert _chance([sure, never])[0] == pytest.approx(0.0, abs=0.5)


def test_the_chance_is_the_mean_over_the_log_odds_that_pairs_make_likely():
    evidence = [np.random.default_rng(3).normal(0, 3, (2, nodes, nodes)) for nodes in (3, 5)]
    for which in range(2):
        likely = []
        for log_odds in LOG_ODDS:
            value = -DOUBT * np.logaddexp(0, log_odds)
            for some in evidence:
                nodes = some.shape[1]
                pairs = [some[which, i, j] for i in range(nodes) for j in range(nodes) if i != j]
                value += (nodes - 1) * np.mean([np.logaddexp(0, e + log_odds) for e in pairs])
                value -= (nodes - 1) * np.logaddexp(0, log_odds)
            likely.append(np.exp(value))
        assert _chance(evidence)[which] == pytest.approx(np.dot(likely, LOG_ODDS) / np.sum(likely))


def test_a_node_moves_by_no_more_than_the_chance_to_have_a_twin_and_stays_a_distribution():
    """Few records and much noise: many noisy counts are negative."""
    cpts = [rows_of(PEDIGREE, 20.0, 5, f"x{i}") for i in range(3)]
    group = _Alike(cpts, slice(None))
    assert (group.seen < 0).any()
    furthest = 0.0
    for chance in (0.0, 0.1, 1.0):
        twins = np.zeros((len(group.own), 3, 3))
        twins[:, 0, 1] = chance
        moved = group.moved(twins)
        assert (moved > 0).all() and moved.sum(-1) == pytest.approx(1.0)
        assert moved[:, 1:] == pytest.approx(group.own[:, 1:], abs=1e-12)
        far = np.abs(moved - group.own)[:, 0]
        assert (far <= chance * 1.0 + 1e-12).all() and far.max() >= furthest
        furthest = far.max()
    assert furthest > 0.2


def test_a_node_moves_towards_the_weighted_mean_of_its_twins():
    """Row by row: what is known of each twin, what is left open of the node itself, and the chance to have a twin."""
    generator = np.random.default_rng(4)
    cpts = [rows_of(PEDIGREE, 30.0 + 40 * i, 1, f"x{i}") for i in range(4)]
    cpts = [replace(rows, doubt=generator.uniform(50, 900, rows.doubt.shape)) for rows in cpts]
    group = _Alike(cpts, slice(0, 1))
    chances = generator.uniform(0, 0.9, (1, 4, 4))
    chances[0, range(4), range(4)] = 0.0
    found = group.moved(chances)[0]
    near = twins.TWINS**2 * 2 / 3  # of three states
    for i, mine in enumerate(cpts):
        for row, place in enumerate(np.ndindex(2, 2)):
            own, n = mine.probabilities[(0, *place)], mine.records[(0, *place)]
            weights, seen = [], []
            for j, other in enumerate(cpts):
                records = other.records[(0, *place)]
                weights.append(chances[0, i, j] / (VARIANCE / records**2 + near))
                seen.append(other.seen[(0, *place)] / records)
            mean = np.maximum(np.average(seen, axis=0, weights=weights), twins.FLOOR * own)
            sure = 1 / (near + 1 / sum(weights))
            part = sure / (sure + n**2 / mine.doubt[(0, *place)]) * (1 - np.prod(1 - chances[0, i]))
            wanted = own + part * (mean / mean.sum() - own)
            np.testing.assert_allclose(found[i, row], wanted / wanted.sum(), rtol=1e-9)


@pytest.mark.parametrize("alike", [True, False])
def test_the_step_is_one_for_all_nodes_and_a_standard_error_short_of_the_best(alike):
    """Rows with fewer records than the deviation of the noise move with the others, and have no say."""
    others = np.random.default_rng(6).dirichlet(np.ones(3), size=(6, 2, 2))
    truths = {f"x{i}": PEDIGREE if alike else others[i] for i in range(6)}
    cpts = {name: rows_of(truth, np.array([60.0, 5.0])[:, None, None], 3, name) for name, truth in truths.items()}
    (targets,) = _targets([_Alike(list(cpts.values()), slice(None))])
    moves = {n: targets[:, i].reshape(r.probabilities.shape) - r.probabilities for i, (n, r) in enumerate(cpts.items())}
    gain, size = 0.0, 0.0
    for name, rows in cpts.items():
        told = rows.records[:3] >= VARIANCE**0.5
        assert told.any() and not told.all()
        more = account(rows, moves[name], told)
        gain, size = gain + more[0], size + more[1]
    best = (gain - size**0.5) / size
    assert (best > 0).any() if alike else (best < 0).any()
    step = np.clip(best, 0.0, 1.0)
    for name, cpt in shared(cpts).items():
        wanted = cpts[name].probabilities + np.tile(step, 2).reshape(-1, 1, 1, 1) * moves[name]
        np.testing.assert_allclose(cpt, wanted, rtol=1e-9)


def test_two_nodes_are_believed_to_be_twins_where_others_are():
    """One chance for the whole network: what two nodes with few records do depends on the nodes of another shape."""
    pair = _Alike([rows_of(PEDIGREE, 25.0, 4, name) for name in "xy"], slice(None))
    generator, moves = np.random.default_rng(5), []
    for truths in ([np.full((2, 3), 1 / 3)] * 9, generator.dirichlet(np.full(3, 0.3), size=(9, 2))):
        others = _Alike([rows_of(truth, 5_000.0, 4, f"z{i}") for i, truth in enumerate(truths)], slice(None))
        moves.append(np.abs(_targets([pair, others])[0] - pair.own).sum(axis=(1, 2, 3)))
    assert (moves[0] > 1.2 * moves[1]).all() and (moves[1] > 0).all()


def test_a_pair_is_enough():
    cpts = {name: rows_of(PEDIGREE, 100.0, 4, name) for name in ("x", "y")}
    assert list(twins._classes(cpts)) == [["x", "y"]]


def test_a_node_is_not_its_own_twin():
    other = PEDIGREE[::-1, ::-1, ::-1]
    group = _Alike([rows_of(PEDIGREE, 2_000.0, 3, "x"), rows_of(other, 2_000.0, 3, "y")], slice(None))
    (found,) = _targets([group])
    assert found == pytest.approx(group.own, abs=1e-6)


def test_cpts_too_large_to_compare_are_left_alone(monkeypatch):
    cpts = {f"x{i}": rows_of(PEDIGREE, 100.0, 2, f"x{i}") for i in range(4)}
    for chunk in (3, 20):  # of four rows and twelve cells
        monkeypatch.setattr(twins, "CHUNK", chunk)
        assert list(twins._classes(cpts)) == []
        assert shared(cpts) == alone(cpts)


def test_rows_without_any_record_do_no_harm():
    cpts = {f"x{i}": rows_of(PEDIGREE, 100.0, 2, f"x{i}") for i in range(4)}
    empty = {name: replace(rows, records=np.zeros_like(rows.records)) for name, rows in cpts.items()}
    for cpt in shared(empty).values():
        assert np.isfinite(cpt).all() and cpt.sum(-1) == pytest.approx(1.0)


def slices(nodes):
    """A process in time: every node hangs on the one before in the same way."""
    names = [f"t{i}" for i in range(nodes)]
    above = {name: tuple(names[max(0, i - 2) : i]) for i, name in enumerate(names)}
    structure = structure_of(dict.fromkeys(names, 3), above)
    cpts = {}
    for name in names:
        parents = len(above[name])
        chance = 1.0 + 6.0 * (np.indices((3,) * (parents + 1))[-1] == np.indices((3,) * (parents + 1)).min(axis=0))
        cpts[name] = chance / chance.sum(-1, keepdims=True)
    return BayesianNetwork(structure, cpts)


def test_learning_gains_on_a_process_and_loses_nothing_on_asia(monkeypatch):
    process = slices(40)
    gains, asia = row_error(process, 2_000, 2), row_error(load_network("asia"), 1_000, 10)
    monkeypatch.setattr(estimate_module, "shared", alone)
    assert gains < 0.8 * row_error(process, 2_000, 2)
    assert asia < 1.03 * row_error(load_network("asia"), 1_000, 10)
