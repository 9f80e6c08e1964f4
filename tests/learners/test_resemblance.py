"""Rows that borrow from rows like them: where it helps, where it must not, and how far."""

import numpy as np
import pytest

from dpbn import load_network
from dpbn.learners import estimate as estimate_module
from dpbn.learners import resemblance, stein
from dpbn.learners.estimate import estimate_batch
from dpbn.learners.optimized import learn_optimized
from dpbn.learners.resemblance import _nearness, blended, resembling
from dpbn.learners.stein import Rows, probed
from dpbn.measurement import Moments
from dpbn.network import BayesianNetwork
from tests.learners.runs import curator, row_error
from tests.structures import structure_of

VARIANCE = 900.0


def rows_of(truth, records, repetitions, seed=0):
    """What an estimator sees of one CPT: noisy counts, cut at 1 and normalised."""
    generator = np.random.default_rng(seed)
    counts = records[..., None] * truth
    noisy = counts + generator.normal(0, VARIANCE**0.5, (repetitions, *counts.shape))
    (seen,) = probed([noisy], [Moments.alone(VARIANCE)], [("signs", str(seed))])
    cut = np.maximum(seen, 1.0)
    return Rows(cut / cut.sum(-1, keepdims=True), seen, cut.sum(-1), VARIANCE, np.full(cut.shape, VARIANCE))


def as_they_are(cpts):
    return {node: rows.probabilities[: len(rows.probabilities) // 2] for node, rows in cpts.items()}


def error(cpts, truth):
    return np.abs(cpts - truth).sum(-1).mean()


def test_weak_rows_that_are_alike_gain_much():
    truth = np.broadcast_to([0.7, 0.2, 0.1], (3, 3, 3, 3))
    rows = rows_of(truth, np.full((3, 3, 3), 100.0), 20)
    found = blended({"x": rows})["x"]
    assert found.shape == (20, 3, 3, 3, 3)
    assert found.sum(-1) == pytest.approx(1.0)
    assert error(found, truth) < 0.65 * error(rows.probabilities[:20], truth)


def test_rows_that_are_nothing_alike_lose_next_to_nothing():
    truth = np.random.default_rng(5).dirichlet(np.full(3, 0.4), size=(3, 3, 3))
    rows = rows_of(truth, np.full((3, 3, 3), 100.0), 20)
    assert error(blended({"x": rows})["x"], truth) < 1.02 * error(rows.probabilities[:20], truth)


def test_neighbours_that_mislead_are_believed_little():
    """A chessboard: every neighbour says the opposite."""
    black = np.indices((4, 4, 4)).sum(axis=0) % 2 == 0
    truth = np.where(black[..., None], [0.9, 0.1], [0.1, 0.9])
    cpts = {f"x{i}": rows_of(truth, np.full((4, 4, 4), 50.0), 10, seed=i) for i in range(6)}
    alone = np.mean([error(rows.probabilities[:10], truth) for rows in cpts.values()])
    wholly = np.mean([error(resembling(rows)[:10], truth) for rows in cpts.values()])
    found = np.mean([error(cpt, truth) for cpt in blended(cpts).values()])
    assert wholly > 1.15 * alone
    assert found - alone < 0.3 * (wholly - alone)


def test_rows_with_many_records_stay():
    truth = np.array([[0.3, 0.7], [0.5, 0.5], [0.6, 0.4]])
    rows = rows_of(truth, np.full(3, 1e6), 4)
    assert resembling(rows) == pytest.approx(rows.probabilities, abs=1e-3)


def test_the_step_is_one_number_per_node_along_the_move_of_what_was_measured():
    alike = rows_of(np.broadcast_to([0.7, 0.3], (4, 4, 4, 2)), np.full((4, 4, 4), 100.0), 5)
    black = np.indices((4, 4, 4)).sum(axis=0) % 2 == 0
    unlike = rows_of(np.where(black[..., None], [0.9, 0.1], [0.1, 0.9]), np.full((4, 4, 4), 50.0), 5, seed=1)
    cpts, steps = {"alike": alike, "unlike": unlike}, {}
    for node, found in blended(cpts).items():
        rows = cpts[node]
        move = resembling(rows)[:5] - rows.probabilities[:5]
        moved = found - rows.probabilities[:5]
        steps[node] = (moved * move).sum(axis=(1, 2, 3, 4)) / np.square(move).sum(axis=(1, 2, 3, 4))
        assert moved == pytest.approx(steps[node].reshape(5, 1, 1, 1, 1) * move, abs=1e-12)
        assert (steps[node] >= 0).all() and (steps[node] <= 1 + 1e-12).all()
    assert steps["alike"].mean() > steps["unlike"].mean() + 0.05


def test_the_step_is_the_one_with_the_least_squared_error(monkeypatch):
    """Averaged over signs and noise: within three standard errors of the best step along the same move."""
    monkeypatch.setattr(resemblance, "EVIDENCE", 0.0)
    monkeypatch.setattr(resemblance, "LEANING", 0.0)
    generator = np.random.default_rng(2)
    truth = generator.dirichlet(np.full(3, 0.3), size=(24, 24))
    records = generator.uniform(50, 300, (24, 24))
    best, taken = [], []
    for seed in range(30):
        rows = rows_of(truth, records, 1, seed=seed)
        move = resembling(rows)[:1] - rows.probabilities[:1]
        counts = rows.records[:1, ..., None]
        missing = records[..., None] * truth - counts * rows.probabilities[:1]
        best.append((missing * counts * move).sum() / np.square(counts * move).sum())
        moved = blended({"x": rows})["x"] - rows.probabilities[:1]
        taken.append((moved * move).sum() / np.square(move).sum())
    off = np.subtract(taken, np.clip(best, 0, 1))
    assert 0.2 < np.mean(best) < 0.8
    assert abs(off.mean()) < 3 * off.std(ddof=1) / np.sqrt(len(off))


def test_a_row_is_near_to_rows_with_like_parents_and_not_its_own_neighbour():
    places = np.indices((2, 5)).reshape(2, -1)
    near = np.exp(_nearness(places, slice(0, 2), np.array([[0, 1, 4, 9]])))
    assert near[0, 0] == pytest.approx([0.0, 1.0, 0.25, 0.125])  # one step, FAR of four, FAR and one more
    assert near[0, 1] == pytest.approx([1.0, 0.0, 0.25, 0.125])


def borrowed_by_hand(rows):
    """The module's first paragraphs, row by row."""
    shape, v = rows.probabilities.shape, rows.variance
    places = list(np.ndindex(shape[1:-1]))
    result = rows.probabilities
    for _ in range(resemblance.TIMES):
        estimate, result = result, np.empty(shape)
        for repetition in range(shape[0]):
            p, y, n = estimate[repetition], rows.seen[repetition], rows.records[repetition]
            best = sorted(places, key=lambda place: -n[place])[: resemblance.NEIGHBOURS]
            for place in places:
                wide = v + (n[place] * resemblance.WIDTH) ** 2
                chances, others = [1.0], [p[place]]
                for other in best:
                    steps = sum(min(abs(a - b), resemblance.FAR) for a, b in zip(place, other, strict=True))
                    worse = [np.square(y[place] - n[place] * p[who]).sum() for who in (other, place)]
                    spread = (n[other] * resemblance.SPREAD) ** 2
                    if steps:
                        near = resemblance.NEARER ** (steps - 1)
                        chances.append(spread / (spread + v) * near * np.exp((worse[1] - worse[0]) / (2 * wide)))
                        others.append(p[other])
                moved = p[place] + v / wide * (np.average(others, axis=0, weights=chances) - p[place])
                result[(repetition, *place)] = moved / moved.sum()
    return result


@pytest.mark.parametrize(("parents", "states"), [((4,), 3), ((2, 3), 2), ((5, 8), 3)])
def test_rows_borrow_as_described(parents, states):
    generator = np.random.default_rng(7)
    truth = generator.dirichlet(np.ones(states), size=parents)
    rows = rows_of(truth, generator.uniform(5, 400, parents), 2)
    np.testing.assert_allclose(resembling(rows), borrowed_by_hand(rows), rtol=1e-9)


def test_the_step_of_a_node_leans_towards_that_of_all_and_that_towards_none():
    """One node whose rows are alike, one where they are not, and few rows of a third: all as the formula says."""
    black = np.indices((4, 4)).sum(axis=0) % 2 == 0
    truths = {
        "alike": np.broadcast_to([0.7, 0.3], (4, 4, 2)),
        "unlike": np.where(black[..., None], [0.9, 0.1], [0.1, 0.9]),
        "few": np.array([[0.5, 0.5], [0.4, 0.6]]),
    }
    cpts = {node: rows_of(truth, np.full(truth.shape[:-1], 90.0), 3, seed=5) for node, truth in truths.items()}
    moves = {node: resembling(rows) - rows.probabilities for node, rows in cpts.items()}
    told = {node: stein.account(rows, moves[node]) for node, rows in cpts.items()}
    gain, size = (sum(parts) for parts in zip(*told.values(), strict=True))
    for node, found in blended(cpts).items():
        for repetition in range(3):
            overall = min(max(gain[repetition] / (size[repetition] + resemblance.EVIDENCE), 0.0), 1.0)
            own, weight = told[node][0][repetition], told[node][1][repetition]
            step = (own + resemblance.LEANING * overall) / (weight + resemblance.LEANING)
            wanted = cpts[node].probabilities[repetition] + min(max(step, 0.0), 1.0) * moves[node][repetition]
            np.testing.assert_allclose(found[repetition], wanted, rtol=1e-9)


def test_blocks_change_nothing(monkeypatch):
    truth = np.random.default_rng(1).dirichlet(np.ones(4), size=(5, 9))
    rows = rows_of(truth, np.full((5, 9), 80.0), 3)
    whole = resembling(rows)
    monkeypatch.setattr(resemblance, "CHUNK", 100)
    assert resembling(rows) == pytest.approx(whole)
    monkeypatch.setattr(resemblance, "CHUNK", 5_000)
    assert resembling(rows) == pytest.approx(whole)


@pytest.fixture
def measured():
    network = load_network("child")
    holder = curator(network, 2000, 1.0, seed=1)
    learn_optimized(network.structure, holder, prior={}, public_cpts={})
    return network, holder.measurements


def test_a_repetition_does_not_depend_on_the_others(measured):
    network, measurements = measured
    tables, noises = [m.names for m in measurements], [m.moments for m in measurements]
    values = [np.stack([m.values, m.values[::-1] if m.values.ndim else m.values]).astype(float) for m in measurements]
    both = estimate_batch(network.structure, tables, values, noises, prior={}, public_cpts={})
    for which in range(2):
        own = [v[which : which + 1] for v in values]
        one = estimate_batch(network.structure, tables, own, noises, prior={}, public_cpts={})
        for node in network.nodes:
            assert both[node][which] == pytest.approx(one[node][0], abs=1e-9)


def test_the_public_change_serves_to_choose_the_step_only(measured, monkeypatch):
    network, measurements = measured
    given = {}

    def watch(cpts):
        given.update(cpts)
        return as_they_are(cpts)

    monkeypatch.setattr(estimate_module, "blended", watch)
    monkeypatch.setattr(
        estimate_module, "shared", lambda rows: {node: known.probabilities for node, known in rows.items()}
    )
    found = estimate_module.estimate(network.structure, measurements, prior={}, public_cpts={})
    assert any((rows.seen < 0).any() for rows in given.values())  # least squares: unbiased, so negative at times
    monkeypatch.setattr(stein, "PROBE", 0.0)
    unchanged = estimate_module.estimate(network.structure, measurements, prior={}, public_cpts={})
    for node in network.nodes:
        assert found[node] == pytest.approx(unchanged[node], abs=1e-12)


def test_the_order_of_the_tables_does_not_matter(measured):
    network, measurements = measured
    found = estimate_module.estimate(network.structure, measurements, prior={}, public_cpts={})
    back = estimate_module.estimate(network.structure, measurements[::-1], prior={}, public_cpts={})
    for node in network.nodes:
        assert found[node] == pytest.approx(back[node], abs=1e-3)


def test_what_the_custodian_says_of_a_node_is_not_borrowed_away(measured):
    network, measurements = measured
    node = "LowerBodyO2"
    said = np.random.default_rng(0).dirichlet(np.ones(3), size=network.cpt(node).shape[:-1])
    cpts = estimate_module.estimate(network.structure, measurements, prior={node: 1e7 * said}, public_cpts={})
    assert cpts[node] == pytest.approx(said, abs=1e-3)
    nothing = {name: np.zeros(network.structure.shape(name)) for name in network.nodes}
    same = estimate_module.estimate(network.structure, measurements, prior=nothing, public_cpts={})
    without = estimate_module.estimate(network.structure, measurements, prior={}, public_cpts={})
    for name in network.nodes:
        assert same[name] == pytest.approx(without[name], abs=1e-9)


def noisy_or(nodes, parents, seed):
    """A network in which a row is what its parents add up to."""
    generator = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(nodes)]
    above = {name: tuple(generator.permutation(names[:i])[:parents]) for i, name in enumerate(names)}
    structure = structure_of(dict.fromkeys(names, 2), above)
    cpts = {}
    for name in names:
        fail = np.array(0.9)
        for strength in generator.uniform(0.1, 0.5, len(above[name])):
            fail = np.multiply.outer(fail, [1.0, 1.0 - strength])
        cpts[name] = np.stack([fail, 1.0 - fail], axis=-1)
    return BayesianNetwork(structure, cpts)


def test_learning_gains_where_rows_are_alike_and_loses_nothing_on_asia(monkeypatch):
    alike = noisy_or(30, 6, seed=3)
    monkeypatch.setattr(
        estimate_module, "shared", lambda cpts: {node: rows.probabilities for node, rows in cpts.items()}
    )

    gains, asia = row_error(alike, 10_000, 2), row_error(load_network("asia"), 10_000, 10)
    monkeypatch.setattr(estimate_module, "blended", as_they_are)
    assert gains < 0.8 * row_error(alike, 10_000, 2)
    assert asia < 1.03 * row_error(load_network("asia"), 10_000, 10)
