"""The tabulated posterior mean against numerical integration."""

import math

import numpy as np
import pytest

from dpbn.learners import shrinkage
from dpbn.learners.shrinkage import ENOUGH, SHAPES, SPIKES, Posterior, Prior, fitted_prior, tabulated


def integral(power: float, u: float) -> float:
    """ln of the integral of t^(power-1) exp(tu - t^2/2) over t > 0, by the trapezoid rule in ln t."""
    x = np.linspace(-80 / power, math.log(max(u, 0) + 14), 400_000)
    exponent = power * x + np.exp(x) * u - np.exp(2 * x) / 2
    top = exponent.max()
    return float(top + math.log(np.exp(exponent - top).sum() * (x[1] - x[0])))


@pytest.mark.parametrize("row", [0, 8, 16, 23])
@pytest.mark.parametrize("u", [-29.0, -5.0, 0.0, 3.0, 13.0])
def test_table_is_the_integral(row, u):
    grid, shape = tabulated(), float(SHAPES[row])
    column = int(np.argmin(np.abs(grid.points - u)))
    mass = integral(shape, u)
    assert grid.log_mass[row, column] == pytest.approx(mass, abs=1e-4)
    assert grid.log_mean[row, column] == pytest.approx(integral(shape + 1, u) - mass, abs=1e-4)


def prior(shape: float, spike: float, rate: float) -> Prior:
    return Prior(np.array([shape]), np.array([spike]), np.array([rate]))


@pytest.mark.parametrize("spike", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("shape", [0.02, 0.1, 0.7, 5.0])
def test_mean_is_positive_increasing_continuous_and_its_slope_is_right(shape, spike):
    posterior = Posterior(prior(shape, spike, 0.3))
    u = np.concatenate([-np.geomspace(1e6, 31, 50), np.arange(-31, 16, 0.0123), np.geomspace(16, 1e6, 50)])[None]
    mean, slope = posterior.mean_and_slope(u)
    assert (mean > 0).all() and (slope > 0).all() and (np.diff(mean) >= -1e-3).all()
    step = 1e-4
    numeric = (posterior.mean_and_slope(u + step)[0] - mean) / step
    smooth = np.abs(u) < 28
    assert np.median(np.abs(numeric - slope)[smooth] / slope[smooth]) < 1e-3
    assert np.abs(numeric - slope)[smooth].max() < 0.1


@pytest.mark.parametrize("spike", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("shape", [0.02, 0.1, 0.7, 5.0])
def test_the_slope_is_right_beyond_the_table_too(shape, spike):
    posterior = Posterior(prior(shape, spike, 0.3))
    u = -np.geomspace(1e4, 32, 50)[None]
    step = -1e-3 * u
    numeric = (posterior.mean_and_slope(u + step)[0] - posterior.mean_and_slope(u - step)[0]) / (2 * step)
    assert posterior.mean_and_slope(u)[1] == pytest.approx(numeric, rel=0.02)


@pytest.mark.parametrize(
    ("shape", "spike", "rate"), [(0.1, 0.5, 0.2), (2.0, 0.4, 1.5), (5.0, 0.9, 0.01), (0.5, 0.0, 3.0)]
)
@pytest.mark.parametrize("y", [-40.0, -2.0, 0.0, 1.5, 6.0, 20.0])
def test_mean_is_that_of_a_spike_and_a_gamma_slab(shape, spike, rate, y):
    """Bayes' theorem on a fine grid of counts (in deviations), nothing tabulated."""
    x = np.linspace(-80 / shape, math.log(abs(y) + 14), 400_000)
    t, width = np.exp(x), x[1] - x[0]
    log_gamma = shape * math.log(rate) - math.lgamma(shape) + shape * x - rate * t + t * y - t * t / 2
    top = max(log_gamma.max(), 0.0)
    slab = (1 - spike) * np.exp(log_gamma - top) * width
    expected = (slab * t).sum() / (slab.sum() + spike * math.exp(-top))
    (((mean,),), _) = Posterior(prior(shape, spike, rate)).mean_and_slope(np.array([[y - rate]]))
    assert mean == pytest.approx(expected, rel=5e-3)


def test_fitted_prior_tells_sparse_even_and_half_empty_tables_apart():
    generator = np.random.default_rng(0)
    even = np.full((1, 200), 50.0)
    sparse = np.where(np.arange(200) < 5, 2000.0, 0.0)[None]
    half = np.where(np.arange(200) < 100, 100.0, 0.0)[None]
    noise = generator.laplace(0, 7, (1, 200))
    total = np.array([10_000.0])
    assert fitted_prior(sparse + noise, 10.0, total).weight[0] < 0.1
    found = fitted_prior(even + noise, 10.0, total)
    assert found.shape[0] > 2.0 and found.spike[0] < 0.1
    found = fitted_prior(half + noise, 10.0, total)
    assert found.shape[0] > 2.0 and 0.4 < found.spike[0] < 0.6


def test_fitted_prior_has_the_mean_of_the_table_and_reads_part_of_a_large_one():
    generator = np.random.default_rng(1)
    counts = generator.gamma(0.3, 100.0, (2, 3 * ENOUGH))
    noisy, total = counts + generator.laplace(0, 7, counts.shape), counts.sum(axis=1)
    whole, part = fitted_prior(noisy, 10.0, total), fitted_prior(noisy[:, : ENOUGH // 2], 10.0, total / 6)
    for found in (whole, part):
        assert found.weight / found.rate * 10.0 == pytest.approx(total / counts.shape[1])
    assert whole.shape == pytest.approx(part.shape, rel=0.3)
    assert 0.2 < whole.weight.mean() < 0.4


def test_fitted_prior_reads_a_large_table_evenly_and_in_chunks_of_any_size(monkeypatch):
    values = np.where(np.arange(3 * ENOUGH) < 2 * ENOUGH, 0.0, 300.0)[None] + np.zeros((2, 1))
    values += np.random.default_rng(2).laplace(0, 7, values.shape)
    total = np.full(2, 300.0 * ENOUGH)
    whole = fitted_prior(values, 10.0, total)
    assert whole.spike == pytest.approx([2 / 3] * 2, abs=0.1)  # all of the first cells are empty
    monkeypatch.setattr(shrinkage, "CHUNK", 100_000)
    parts = fitted_prior(values, 10.0, total)
    assert parts.shape == pytest.approx(whole.shape) and parts.spike == pytest.approx(whole.spike)


@pytest.mark.parametrize("y", [-50.0, -2.0, 3.0, 20.0, 80.0])
def test_the_likelihood_of_a_cell_is_the_integral_on_the_table_and_beyond_it(y):
    rate, shapes = 0.3, SHAPES[::2]
    found = shrinkage._log_likelihood(np.array([[y]]), np.full((len(shapes), len(SPIKES), 1), rate))[..., 0]
    for place in (0, 5, 11):
        shape = float(shapes[place])
        filled = shape * math.log(rate) - math.lgamma(shape) + integral(shape, y - rate)
        for which, spike in enumerate(SPIKES[1:], start=1):
            expected = np.logaddexp(math.log(spike), math.log1p(-spike) + filled)
            assert found[place, which] == pytest.approx(expected, abs=0.02)


def test_a_table_that_tells_nothing_is_taken_for_a_sparse_one():
    found = fitted_prior(np.zeros((1, 4)), 1e6, np.array([100.0]))
    assert SHAPES[0] < found.shape[0] < 0.8 * math.sqrt(SHAPES[0] * SHAPES[-1])
