"""Posterior means of counts that cannot be negative and are mostly small.

Model of one cell: the count c is 0 with probability `spike`, else it has a Gamma prior of shape a and rate r; the
noisy count is y = c + noise of deviation s. Let t = c/s, and u = y/s - r s plus whatever else is linear in c (the
multiplier of a constraint). Then the posterior of t above 0 has density proportional to t^(a-1) exp(tu - t^2/2), and
everything needed is a function of (u, a):

    H(u, a) = integral of t^(a-1) exp(tu - t^2/2) dt,    g(u, a) = E[t] = d ln H / du,
    Var[t] = dg/du = a + u g - g^2   (integrate by parts).

A small shape says "most cells are nearly empty": g is close to u where u is large, to a/|u| where u is
negative, and never zero. A spike says "many cells are quite empty, the others alike", as deterministic CPTs
make them: it multiplies g by w, the probability of a count above 0, with odds
(1 - spike) / spike times (r s)^a H(u, a) / Gamma(a). The line for Var[t] is a differential equation that is stable for
growing u, so one Runge-Kutta sweep from the far left tabulates g and ln H for all shapes at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHAPES = np.geomspace(0.02, 5.0, 24)
SPIKES = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.85, 0.92])
LEAN = 0.4  # towards sparse tables: ln a has a prior in proportion to a^-LEAN
LOW, HIGH, STEP = -30.0, 14.0, 0.05
ENOUGH = 4_000  # cells to fit a prior to: of larger tables as many, evenly spaced
CHUNK = 15_000  # cells times priors compared at once: arrays that stay in cache, and below what is mapped anew
FACTORS = 200  # multiplied before a logarithm is taken: none is below 0.08, so the product is not lost
TINY = 1e-100  # a spike may leave less
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Tabulated:
    """ln g and ln H on the grid: rows are SHAPES, columns run from LOW to HIGH."""

    points: Array
    log_mean: Array
    log_mass: Array


@lru_cache(maxsize=1)
def tabulated() -> Tabulated:
    points = np.arange(LOW, HIGH + STEP / 2, STEP)
    shape = SHAPES
    mean = _far_left(LOW, shape)

    def slope(u: float, g: Array) -> Array:
        return shape + u * g - g * g

    means, masses = [mean], [np.zeros_like(shape)]
    for u in points[:-1]:
        k1 = slope(u, mean)
        k2 = slope(u + STEP / 2, mean + STEP / 2 * k1)
        k3 = slope(u + STEP / 2, mean + STEP / 2 * k2)
        k4 = slope(u + STEP, mean + STEP * k3)
        after = mean + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        # d ln H / du = g, with g' known at both ends: the Hermite rule is as exact as the steps
        mass = masses[-1] + STEP / 2 * (mean + after) + STEP**2 / 12 * (k1 - slope(u + STEP, after))
        means.append(after)
        masses.append(mass)
        mean = after
    log_mass = np.ascontiguousarray(np.array(masses).T)
    zero = round(-LOW / STEP)
    known = np.array([(a / 2 - 1) * math.log(2) + math.lgamma(a / 2) for a in shape])  # ln H(0, a)
    log_mass += (known - log_mass[:, zero])[:, None]
    return Tabulated(points, np.log(np.array(means).T), log_mass)


def _far_left(u: float, shape: Array) -> Array:
    """The continued fraction a / (x + (a+1) / (x + (a+2) / ...)) at x = -u, from its 40th term up."""
    x, tail = -u, np.zeros_like(shape)
    for k in range(40, 0, -1):
        tail = (shape + k) / (x + tail)
    return shape / (x + tail)


@dataclass(frozen=True)
class Prior:
    """Of the counts of one table, one entry per repetition; `rate` in units of 1/deviation."""

    shape: Array
    spike: Array
    rate: Array

    @property
    def weight(self) -> Array:
        """Shape of a Gamma prior that is as strong on average."""
        return np.asarray(self.shape * (1.0 - self.spike))


class Posterior:
    """Mean and variance of t for one table, as functions of u: the prior may differ between repetitions."""

    def __init__(self, prior: Prior):
        grid = tabulated()
        position = np.clip(np.log(prior.shape / SHAPES[0]) / np.log(SHAPES[1] / SHAPES[0]), 0, len(SHAPES) - 1.000001)
        row = position.astype(np.intp)
        part = (position - row)[:, None]
        self._shape = np.asarray(prior.shape, dtype=np.float64)[:, None]
        log_gamma = np.array([[math.lgamma(shape)] for shape in prior.shape])
        with np.errstate(divide="ignore"):
            self._odds = np.log1p(-prior.spike)[:, None] - np.log(prior.spike)[:, None]
        self._odds = self._odds + self._shape * np.log(prior.rate)[:, None]  # times H(u, a) / Gamma(a)
        log_mass = (1 - part) * grid.log_mass[row] + part * grid.log_mass[row + 1]
        log_mean = (1 - part) * grid.log_mean[row] + part * grid.log_mean[row + 1]
        self._rows = log_mean - np.logaddexp(0.0, log_gamma - self._odds - log_mass)

    def mean_and_slope(self, u: Array) -> tuple[Array, Array]:
        """E[t] and its derivative by u, for u with the batch axis first."""
        flat = u.reshape(u.shape[0], -1)
        repetitions, points = self._rows.shape
        position = np.clip((flat - LOW) / STEP, 0, points - 1.000001)
        column = position.astype(np.intp)
        position -= column
        column += points * np.arange(repetitions)[:, None]  # in the flat table
        left = self._rows.take(column)
        column += 1
        rise = self._rows.take(column) - left
        mean = np.exp(left + position * rise)
        slope = mean * rise / STEP
        right = flat > HIGH
        if right.any():
            far = np.maximum(flat, HIGH)
            mean = np.where(right, far + (self._shape - 1) / far, mean)
            slope = np.where(right, 1.0, slope)
        below = flat < LOW
        if below.any():
            far = np.minimum(flat, LOW)
            filled = 1.0 / (1.0 + np.exp(np.minimum(self._shape * np.log(-far) - self._odds, 700.0)))
            tail = self._shape / (-far - (self._shape + 1) / far)
            mean = np.where(below, filled * tail, mean)
            slope = np.where(below, filled * tail / -far + filled * (1 - filled) * tail * tail, slope)
        return np.maximum(mean, TINY).reshape(u.shape), np.maximum(slope, TINY).reshape(u.shape)


def fitted_prior(values: Array, deviation: float, total: Array) -> Prior:
    """Per repetition, the prior under which the noisy cells of one table are plausible.

    Cells are taken as independent with prior mean total/cells. The answer is the posterior mean of ln(shape) and of the
    spike over a grid, so a table too noisy to tell gets something in between.
    """
    flat = values.reshape(values.shape[0], -1) / deviation
    cells = flat.shape[1]
    shapes, spikes = SHAPES[::2, None, None], SPIKES[:, None]
    rates = shapes * (1.0 - spikes) * cells * deviation / total  # shape, spike, repetition
    score = -LEAN * np.log(shapes) + np.zeros_like(rates)
    if cells > ENOUGH:
        flat = flat[:, np.linspace(0, cells - 1, ENOUGH).astype(np.intp)]
    width = min(flat.shape[1], FACTORS)
    height = max(1, CHUNK // (rates[..., 0].size * width))
    for first in range(0, len(flat), height):
        some = slice(first, first + height)
        for start in range(0, flat.shape[1], width):
            score[..., some] += _log_likelihood(flat[some, start : start + width], rates[..., some])
    weights = np.exp(score - score.max(axis=(0, 1)))
    weights /= weights.sum(axis=(0, 1))
    shape = np.exp((weights * np.log(shapes)).sum(axis=(0, 1)))
    spike = (weights * spikes).sum(axis=(0, 1))
    return Prior(shape, spike, shape * (1.0 - spike) * cells * deviation / total)


def _log_likelihood(scaled: Array, rates: Array) -> Array:
    """Of up to FACTORS noisy cells in deviations (repetition, cell), summed over cells, up to a term common to priors.

    ln(spike + (1 - spike) e^x) is ln of a number in spike..1, plus x where x > 0. Without a spike it is x.
    """
    grid, shapes = tabulated(), SHAPES[::2, None, None, None]
    u = scaled - rates[..., None]
    position = np.clip((u - LOW) / STEP, 0, len(grid.points) - 1.000001)
    column = position.astype(np.intp)
    position -= column
    column += 2 * len(grid.points) * np.arange(len(shapes))[:, None, None, None]  # in the flat table
    left = grid.log_mass.take(column)
    column += 1
    log_mass = left + position * (grid.log_mass.take(column) - left)
    log_gamma = np.array([math.lgamma(shape) for shape in SHAPES[::2]])[:, None, None, None]
    if (right := u > HIGH).any():
        far = np.maximum(u, HIGH)
        log_mass = np.where(right, 0.5 * far * far + (shapes - 1) * np.log(far) + _HALF_LOG_TWO_PI, log_mass)
    if (below := u < LOW).any():
        log_mass = np.where(below, log_gamma - shapes * np.log(-np.minimum(u, LOW)), log_mass)
    filled = shapes * np.log(rates)[..., None] - log_gamma + log_mass
    spikes = SPIKES[:, None, None]
    larger = np.where(filled > 0, 1.0 - spikes, spikes)
    part = larger + (1.0 - larger) * np.exp(-np.abs(filled))
    with np.errstate(divide="ignore"):  # a product without a spike may vanish, and is not used
        logs = np.log(np.multiply.reduce(part, axis=-1))
    return np.where(SPIKES[:, None] > 0, np.maximum(filled, 0.0).sum(axis=-1) + logs, filled.sum(axis=-1))
