"""Plausible networks: as far from the release as sampling and noise are, in closed form, and no two the same."""

from dataclasses import replace

import numpy as np
import pytest

import dpbn
from dpbn.measurement import Measurement, variance_apart
from dpbn.uncertainty.replicates import _frequencies, _scaled_counts, _smoothed, replicate

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


@pytest.mark.parametrize(("rows", "scale"), [(3_000, 15.0), (50_000, 60.0), (2_000_000, 500.0)])
def test_parts_are_as_wide_as_sampling_and_noise(rows, scale):
    """p (1 - p) / n of a sample of n; noise e on every cell moves p by (e - p sum e) / n. More rows are not drawn."""
    drawn = replicate(one_table(rows, scale), 400)
    sampling = SHARES * (1 - SHARES) / rows
    noise = variance_apart("laplace", scale) * ((1 - SHARES) ** 2 + 2 * SHARES**2) / rows**2
    total, sampled = drawn.total["a"], drawn.sampled["a"]
    assert total.shape == sampled.shape == (400, 3)
    np.testing.assert_allclose(sampled.mean(axis=0), SHARES, atol=5 * (sampling.max() / 400) ** 0.5)
    np.testing.assert_allclose(sampled.var(axis=0), sampling, rtol=0.4)  # four deviations of a variance of 400
    np.testing.assert_allclose((total - sampled).var(axis=0), noise, rtol=0.45)
    np.testing.assert_allclose(total.var(axis=0), sampling + noise, rtol=0.4)


@pytest.mark.parametrize("rows", [3_000, 50_000])
def test_no_two_replicates_are_the_same_whatever_the_seed(rows):
    release = one_table(rows, 1.0)
    first, again, other = (replicate(release, 12, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.total["a"], again.total["a"])
    for part in ("total", "sampled"):
        every = np.concatenate([getattr(first, part)["a"], getattr(other, part)["a"]])
        assert len(np.unique(every, axis=0)) == 24


@pytest.mark.parametrize("rows", [700, 50_000, 3_000_000])
def test_counts_are_those_of_the_estimated_number_of_rows(rows):
    whole, cells = _scaled_counts(one_table(rows, 1.0), [(), ("a",)], 20, 0)
    assert (whole == rows).all()
    assert (np.abs(cells.sum(axis=1) - rows) <= 1.5).all()  # three cells, each rounded


@pytest.mark.parametrize("prior", [0.0, np.array([3.0, 0.0, 1.0])])
def test_without_noise_every_cell_has_half_a_record_more(prior):
    found = _smoothed(pair_release(1e-3, prior))
    more = COUNTS + prior + 0.5
    np.testing.assert_allclose(found.cpt("b"), more / more.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(found.cpt("a"), [40.5 / 1001, 960.5 / 1001], rtol=1e-9)


@pytest.mark.parametrize("scale", [0.5, 1.0, 5.0])
def test_noise_on_a_cell_takes_its_place(scale):
    """Of an impossible state: half a record at no noise, half of that at a deviation of one record, and so on."""
    found = _smoothed(pair_release(scale)).cpt("b")
    half = 0.5 / (1 + variance_apart("laplace", scale))
    assert found[0, 0] == pytest.approx(half / (40 + 1.5))
    assert found[1, 1] == pytest.approx(half / (960 + 1.5))


def test_a_row_whose_noisy_count_is_negative_counts_as_empty():
    """Then only the half records are left: even ones, and as released where noise has taken their place."""
    made, row = pair_release(1.0), np.array([0.7, 0.2, 0.1])
    network = dpbn.BayesianNetwork(PAIR, {"a": [0.0, 1.0], "b": np.stack([row, made.network.cpt("b")[1]])})
    values = np.array([[-3, -2, -4], [30, 0, 930]])
    release = replace(made, network=network, measurements=(replace(made.measurements[0], values=values),))
    even = 1 / (1 + variance_apart("laplace", 1.0))
    np.testing.assert_allclose(_smoothed(release).cpt("b")[0], (1 - even) * row + even / 3, rtol=1e-9)


def test_what_is_public_or_lost_in_noise_is_drawn_as_it_was_released():
    found = _smoothed(pair_release(30.0))
    for node in PAIR.nodes:
        np.testing.assert_allclose(found.cpt(node), pair_release(30.0).network.cpt(node), atol=1e-5)
    public = pair_release(1e-3, public_nodes=("a",))
    np.testing.assert_array_equal(_smoothed(public).cpt("a"), public.network.cpt("a"))
    drawn = replicate(public, 5)
    for part in (drawn.total["a"], drawn.sampled["a"]):
        np.testing.assert_array_equal(part, np.broadcast_to(public.network.cpt("a"), (5, 2)))


def test_rows_that_were_not_drawn_keep_the_released_probabilities():
    released = np.broadcast_to([[0.7, 0.3], [0.1, 0.9]], (3, 2, 2))
    table = np.array([[[1, 0], [0, 0]], [[0, 0], [1, 3]], [[2, 2], [0, 4]]])
    assert _frequencies(table, released).tolist() == [
        [[1.0, 0.0], [0.1, 0.9]],
        [[0.7, 0.3], [0.25, 0.75]],
        [[0.5, 0.5], [0.0, 1.0]],
    ]
