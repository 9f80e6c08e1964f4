"""Exact laws and a chi-square test, for the statistical tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]


def discrete_laplace(scale: float, half: int) -> Array:
    """Probabilities of -half..half, the tails folded into the ends."""
    p = np.exp(-1.0 / scale)
    support = np.arange(-half, half + 1)
    law = (1 - p) / (1 + p) * p ** np.abs(support)
    law[0] = law[-1] = p**half / (1 + p)
    return law


def discrete_gaussian(scale: float, half: int) -> Array:
    reach = int(40 * scale) + half + 10
    support = np.arange(-reach, reach + 1)
    weight = np.exp(-((support / scale) ** 2) / 2)
    weight /= weight.sum()
    law = weight[reach - half : reach + half + 1].copy()
    law[0] = weight[: reach - half + 1].sum()
    law[-1] = weight[reach + half :].sum()
    return law


def summed_laplace(scale: float, draws: int, half: int) -> Array:
    """Probabilities of the sum of several discrete Laplace draws, the tails folded into the ends."""
    reach = int(40 * scale) + half  # what a draw beyond adds is lost in the last digit
    single = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    weight = single / single.sum()
    for _ in range(draws - 1):
        weight = np.convolve(weight, single / single.sum())
    middle = weight.size // 2
    law = weight[middle - half : middle + half + 1].copy()
    law[0] = weight[: middle - half + 1].sum()
    law[-1] = weight[middle + half :].sum()
    return law


def p_value(draws: NDArray[np.int64], law: Array) -> float:
    """Chi-square p-value of integer draws against `law` on -half..half with folded tails."""
    half = law.size // 2
    seen = np.bincount(np.clip(draws.ravel(), -half, half) + half, minlength=law.size)
    expected = law * draws.size
    assert expected.min() > 5
    return float(stats.chisquare(seen, expected * draws.size / expected.sum()).pvalue)
