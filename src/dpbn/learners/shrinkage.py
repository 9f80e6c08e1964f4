"""Posterior means of counts that cannot be negative and are mostly small.

Model of one cell: the count c has a Gamma prior of shape a, the noisy count is y = c + noise of deviation s.
With u = y/s (shifted by whatever is linear in c: the prior's rate, the multiplier of a constraint), t = c/s has
density proportional to t^(a-1) exp(-(t-u)^2/2) on t > 0, and everything needed is a function of (u, a):

    H(u, a) = integral of t^(a-1) exp(tu - t^2/2) dt,    g(u, a) = E[t] = d ln H / du,
    Var[t] = dg/du = a + u g - g^2   (integrate by parts).

A small shape says "most cells are nearly empty": g is close to u where u is large, to a/|u| where u is
negative, and never zero. The last line is a differential equation that is stable for growing u, so one
Runge-Kutta sweep from the far left tabulates g and ln H for all shapes at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHAPES = np.geomspace(0.02, 5.0, 24)
LOW, HIGH, STEP = -30.0, 14.0, 0.05


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
    log_mass = np.array(masses).T
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


class Posterior:
    """g and its slope for one table: the shape may differ between the repetitions of a batch."""

    def __init__(self, shape: Array):
        grid = tabulated()
        position = np.clip(np.log(shape / SHAPES[0]) / np.log(SHAPES[1] / SHAPES[0]), 0, len(SHAPES) - 1.000001)
        row = position.astype(np.intp)
        part = (position - row)[:, None]
        self._shape = np.asarray(shape, dtype=np.float64)
        self._rows = (1 - part) * grid.log_mean[row] + part * grid.log_mean[row + 1]

    def mean_and_slope(self, u: Array) -> tuple[Array, Array]:
        """g(u) and dg/du, for u with the batch axis first."""
        flat = u.reshape(u.shape[0], -1)
        shape = self._shape[:, None]
        position = np.clip((flat - LOW) / STEP, 0, self._rows.shape[1] - 1.000001)
        column = position.astype(np.intp)
        left = np.take_along_axis(self._rows, column, axis=1)
        rise = np.take_along_axis(self._rows, column + 1, axis=1) - left
        mean = np.exp(left + (position - column) * rise)
        slope = mean * rise / STEP
        right = flat > HIGH
        if right.any():
            far = np.maximum(flat, HIGH)
            mean = np.where(right, far + (shape - 1) / far, mean)
            slope = np.where(right, 1.0, slope)
        below = flat < LOW
        if below.any():
            far = np.minimum(flat, LOW)
            tail = shape / (-far - (shape + 1) / far)
            mean = np.where(below, tail, mean)
            slope = np.where(below, tail / -far, slope)
        return mean.reshape(u.shape), slope.reshape(u.shape)


def fitted_shape(values: Array, deviation: float, total: Array) -> Array:
    """Per repetition, the shape under which the noisy cells of one table are most plausible.

    Cells are taken as independent with prior mean total/cells. The answer is the posterior mean of ln(shape) over
    the grid, so a table too noisy to tell gets something in between.
    """
    grid = tabulated()
    flat = values.reshape(values.shape[0], -1)
    cells = flat.shape[1]
    scaled = flat / deviation
    scores = []
    for row, shape in enumerate(SHAPES):
        rate = shape * cells * deviation / total[:, None]  # of the prior, in units of 1/deviation
        u = scaled - rate
        inside = np.clip(u, LOW, HIGH)
        log_mass = np.interp(inside, grid.points, grid.log_mass[row])
        far = np.maximum(u, HIGH)
        above = 0.5 * far * far + (shape - 1) * np.log(far) + 0.5 * math.log(2 * math.pi)
        log_mass = np.where(u > HIGH, above, log_mass)
        log_mass = np.where(u < LOW, math.lgamma(shape) - shape * np.log(np.maximum(-u, -LOW)), log_mass)
        terms = shape * np.log(rate) - math.lgamma(shape) + log_mass - 0.5 * scaled * scaled
        scores.append(terms.sum(axis=1))
    score = np.array(scores)
    weights = np.exp(score - score.max(axis=0))
    weights /= weights.sum(axis=0)
    return np.asarray(np.exp(np.log(SHAPES) @ weights))
