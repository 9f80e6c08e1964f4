"""Plausible truths as far from the release as it is uncertain, estimates as far from them as sampling and noise are."""

from dataclasses import replace

import numpy as np
import pytest

import dpbn
from dpbn.measurement import Measurement, variance_apart
from dpbn.uncertainty import replicates
from dpbn.uncertainty.replicates import _counted, _frequencies, _leanings, as_released, plausible_truths, replicate
from dpbn.uncertainty.simulate import simulated_noise

SHARES = np.array([0.5, 0.3, 0.2])
PAIR = dpbn.Structure(
    dpbn.Schema((dpbn.Variable("a", ("x", "y")), dpbn.Variable("b", ("x", "y", "z")))),
    dpbn.Dag(("a", "b"), {"b": ("a",)}),
)
COUNTS = np.array([[0.0, 10.0, 30.0], [30.0, 0.0, 930.0]])  # of b by a, 1000 records


def one_table(rows, scale):
    """A release of one variable of three states, by a Laplace table whose values are its expected counts."""
    structure = dpbn.Structure(dpbn.Schema((dpbn.Variable("a", ("x", "y", "z")),)), dpbn.Dag(("a",), {}))
    network = dpbn.BayesianNetwork(structure, {"a": SHARES})
    made = dpbn.learn(network.sample(10, seed=1), network, 1.0, method="uniform", noise=dpbn.InsecureNoise(1))
    values = np.rint(rows * SHARES).astype(np.int64)
    return replace(made, network=network, measurements=(Measurement(("a",), values, "laplace", scale, 1.0),))


def pair_release(scale, prior=0.0, **facts):
    """A release of b given a whose tables hold COUNTS, with pseudo-counts `prior` in every row."""
    network = dpbn.BayesianNetwork(
        PAIR, {"a": [0.04, 0.96], "b": (COUNTS + prior) / (COUNTS + prior).sum(axis=1, keepdims=True)}
    )
    made = dpbn.learn(network.sample(10, seed=1), network, 1.0, noise=dpbn.InsecureNoise(1))
    measured = (Measurement(("a", "b"), COUNTS.astype(np.int64), "laplace", scale, 1.0),)
    said = {"b": np.broadcast_to(prior, COUNTS.shape)} if np.any(prior) else {}
    return replace(made, network=network, measurements=measured, prior=said, **facts)


def estimates(release, count, seed=0):
    return replicate(release, plausible_truths(release, count, seed), seed)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("rows", "scale"), [(3_000, 15.0), (50_000, 60.0), (2_000_000, 500.0)])
def test_parts_are_as_wide_as_sampling_and_noise(rows, scale, wide, monkeypatch):
    """p (1 - p) / n of a sample of n; noise e on every cell moves p by (e - p sum e) / n. More rows are not drawn."""
    if wide:
        monkeypatch.setattr(replicates, "CHEAP_CELLS", 0)
    drawn = estimates(one_table(rows, scale), 400)
    sampling = SHARES * (1 - SHARES) / rows
    noise = variance_apart("laplace", scale) * ((1 - SHARES) ** 2 + 2 * SHARES**2) / rows**2
    truth, total, sampled = drawn.truth["a"], drawn.total["a"], drawn.sampled["a"]
    assert truth.shape == total.shape == sampled.shape == (400, 3)
    off = sampled - truth
    np.testing.assert_allclose(off.mean(axis=0), 0.0, atol=5 * (sampling.max() / 400) ** 0.5)
    np.testing.assert_allclose(off.var(axis=0), sampling, rtol=0.4)  # four deviations of a variance of 400
    np.testing.assert_allclose((total - sampled).var(axis=0), noise, rtol=0.45)
    np.testing.assert_allclose((total - truth).var(axis=0), sampling + noise, rtol=0.4)


@pytest.mark.parametrize("rows", [3_000, 50_000])
def test_no_two_replicates_are_the_same_whatever_the_seed(rows):
    release = one_table(rows, 1.0)
    first, again, other = (estimates(release, 12, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.total["a"], again.total["a"])
    for part in ("truth", "total", "sampled"):
        every = np.concatenate([getattr(first, part)["a"], getattr(other, part)["a"]])
        assert len(np.unique(every, axis=0)) == 24


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_noise_is_drawn_apart_from_truths(seed):
    """From one stream, noise would lead where the truth does, and hide how far the estimate stays behind."""
    release = one_table(100, 100.0)
    truth = plausible_truths(release, 4_000, seed)["a"]
    (noise,) = simulated_noise([np.zeros((4_000, 3), dtype=np.int64)], release.measurements, seed)
    for state in range(3):
        assert abs(np.corrcoef(truth[:, state], noise[:, state])[0, 1]) < 5 / 4_000**0.5


@pytest.mark.parametrize("rows", [700, 50_000, 3_000_000])
def test_counts_are_those_of_so_many_rows(rows):
    release = one_table(rows, 1.0)
    truth = plausible_truths(release, 20)
    same, (whole, cells, _) = _counted(release.structure, truth, [(), ("a",), ("a",)], rows, 0)
    assert same is truth
    assert (whole == rows).all()
    assert (np.abs(cells.sum(axis=1) - rows) <= 1.5).all()  # three cells, each rounded
    assert np.abs(cells / rows - truth["a"]).max() < 6 * (0.25 / rows) ** 0.5


@pytest.mark.parametrize("prior", [0.0, np.array([3.0, 0.0, 1.0])])
@pytest.mark.parametrize("scale", [1e-3, 5.0, 40.0])
def test_truths_scatter_as_far_as_records_and_noise_leave_open(scale, prior):
    """Rows of Dirichlet(k p + m q), q any distribution: means and variances in closed form, given k."""
    release = pair_release(scale, prior)
    drawn = plausible_truths(release, 4_000)["b"]
    records = COUNTS.sum(axis=1)
    known = 1 / (1 / records + 3 * variance_apart("laplace", scale) / (2 / 3) / records**2) + np.sum(prior) * (
        1 if np.ndim(prior) else 3
    )
    row, weight = release.network.cpt("b"), (known + 3)[:, None]
    mean = (known[:, None] * row + 1) / weight
    np.testing.assert_allclose(drawn.sum(axis=-1), 1.0)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * drawn.std(axis=0).max() / 4_000**0.5)
    centre = 9 * (1 / 3 * 2 / 3 / 4) / weight**2  # variance of 3 q / (k + 3), q even on three states
    variance = (mean * (1 - mean) - centre) / (weight + 1) + centre
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.25)


def test_rows_that_noise_hides_move_together_and_known_ones_do_not():
    for scale, least, most in ((1e4, 0.2, 0.3), (1e-3, -0.1, 0.1)):
        drawn = plausible_truths(pair_release(scale), 4_000)["b"]
        together = np.corrcoef(drawn[:, 0, 2], drawn[:, 1, 2])[0, 1]
        assert least < together < most  # Dirichlet(3 q): half of the variance is q's, which is common every other time


def test_rows_lean_as_the_node_does_or_as_one_parent_says():
    """Of 2 x 3 rows all lean alike one time in three, those with one state of the first parent another."""
    leanings = _leanings((2, 3, 4), 6_000, np.random.default_rng(0))
    assert leanings.shape == (6_000, 2, 3, 4)
    np.testing.assert_allclose(leanings.sum(axis=-1), 1.0)
    np.testing.assert_allclose(leanings.mean(axis=0), 0.25, atol=0.01)
    alike = {(a, b): np.mean(leanings[:, 0, 0, 0] == leanings[:, a, b, 0]) for a in (0, 1) for b in (0, 1, 2)}
    assert alike[0, 0] == 1.0
    for other, part in {(0, 1): 2 / 3, (0, 2): 2 / 3, (1, 0): 2 / 3, (1, 1): 1 / 3, (1, 2): 1 / 3}.items():
        assert alike[other] == pytest.approx(part, abs=0.03)
    root = _leanings((4,), 50, np.random.default_rng(0))
    assert root.shape == (50, 4) and len(np.unique(root[:, 0])) == 50


def test_a_state_without_records_may_be_true_of_one_in_as_many():
    drawn = plausible_truths(pair_release(1e-3), 4_000)["b"]
    assert drawn[:, 0, 0].mean() == pytest.approx(1 / 43, rel=0.1)
    assert drawn[:, 1, 1].mean() == pytest.approx(1 / 963, rel=0.1)


def test_a_row_whose_noisy_count_is_negative_may_be_anything():
    made = pair_release(1.0)
    network = dpbn.BayesianNetwork(PAIR, {"a": [0.0, 1.0], "b": [[0.7, 0.2, 0.1], made.network.cpt("b")[1]]})
    values = np.array([[-3, -2, -4], [30, 0, 930]])
    release = replace(made, network=network, measurements=(replace(made.measurements[0], values=values),))
    rows = plausible_truths(release, 4_000)["b"][:, 0]
    np.testing.assert_allclose(rows.mean(axis=0), 1 / 3, atol=0.03)
    assert rows.std(axis=0).min() > 0.2


@pytest.mark.parametrize(("most", "cells"), [(20_000, 4_000_000), (100, 4_000_000), (100, 0)])
def test_what_is_public_is_true(most, cells, monkeypatch):
    """Where all rows are drawn, where some are and the network tells what to expect, and where it cannot."""
    monkeypatch.setattr(replicates, "MOST_ROWS", most)
    monkeypatch.setattr(replicates, "CHEAP_CELLS", cells)
    public = pair_release(1e-3, public_nodes=("a",))
    drawn = estimates(public, 5)
    for part in (drawn.truth, drawn.total, drawn.sampled):
        np.testing.assert_array_equal(part["a"], np.broadcast_to(public.network.cpt("a"), (5, 2)))
    assert not np.allclose(drawn.truth["b"], public.network.cpt("b"))


def test_around_a_release_the_truth_is_what_was_released():
    release = pair_release(5.0)
    drawn = replicate(release, as_released(release, 6))
    for node in PAIR.nodes:
        np.testing.assert_array_equal(
            drawn.truth[node], np.broadcast_to(release.network.cpt(node), drawn.total[node].shape)
        )
        assert len(np.unique(drawn.total[node], axis=0)) == 6


def test_rows_that_were_not_drawn_keep_the_released_probabilities():
    released = np.broadcast_to([[0.7, 0.3], [0.1, 0.9]], (3, 2, 2))
    table = np.array([[[1, 0], [0, 0]], [[0, 0], [1, 3]], [[2, 2], [0, 4]]])
    assert _frequencies(table, released).tolist() == [
        [[1.0, 0.0], [0.1, 0.9]],
        [[0.7, 0.3], [0.25, 0.75]],
        [[0.5, 0.5], [0.0, 1.0]],
    ]
