"""The tabulated posterior mean against numerical integration."""

import math

import numpy as np
import pytest

from dpbn.learners.shrinkage import SHAPES, Posterior, fitted_shape, tabulated


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


@pytest.mark.parametrize("shape", [0.02, 0.1, 0.7, 5.0])
def test_mean_is_positive_increasing_continuous_and_its_slope_is_right(shape):
    posterior = Posterior(np.array([shape]))
    u = np.concatenate([-np.geomspace(1e6, 31, 50), np.arange(-31, 16, 0.0123), np.geomspace(16, 1e6, 50)])[None]
    mean, slope = posterior.mean_and_slope(u)
    assert (mean > 0).all() and (slope > 0).all() and (np.diff(mean) >= -1e-3).all()
    step = 1e-4
    numeric = (posterior.mean_and_slope(u + step)[0] - mean) / step
    smooth = np.abs(u) < 28
    assert np.median(np.abs(numeric - slope)[smooth] / slope[smooth]) < 1e-3
    assert np.abs(numeric - slope)[smooth].max() < 0.1


def test_fitted_shape_tells_sparse_from_even_tables():
    generator = np.random.default_rng(0)
    even = np.full((1, 200), 50.0)
    sparse = np.where(np.arange(200) < 5, 2000.0, 0.0)[None]
    noise = generator.laplace(0, 7, (1, 200))
    total = np.array([10_000.0])
    assert fitted_shape(sparse + noise, 10.0, total)[0] < 0.1
    assert fitted_shape(even + noise, 10.0, total)[0] > 2.0
