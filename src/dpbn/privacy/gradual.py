"""Gradual release: coarser values of one noisy table, drawn from the fine one, exactly on integers.

With p = e^(-1/scale), a discrete Laplace value of parameter p1 (coarse) is one of parameter p2 < p1 (fine)
plus a term that is 0 with probability q = (p2/p1) (1-p1)^2 / (1-p2)^2 and otherwise discrete Laplace of
parameter p1. Proof by generating functions: that of parameter p is (1-p)^2 / ((1-pz)(1-p/z)), and
(q + (1-q) g1(z)) g2(z) = g1(z) holds for every z with this q. (Koufogiannis, Han, Pappas 2015.)

So a ladder x_fine -> ... -> x_coarse has the discrete Laplace law at every level, and every coarser value
is a random function of the finer one that does not look at the data: showing it as well costs nothing.
All probabilities are built from Bernoulli(rational) draws; nothing here is floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.privacy.noise import Counts, Noise, check_scale

Bits = NDArray[np.bool_]


def ladder(fine: Counts, scales: Sequence[float], noise: Noise) -> tuple[Counts, ...]:
    """Values at every scale (coarsest first, `fine` last), each coarsened from the next finer one."""
    check_ladder(scales)
    values = [fine]
    for fine_scale, coarse_scale in pairwise(reversed(scales)):
        values.append(coarsen(values[-1], fine_scale, coarse_scale, noise))
    return tuple(reversed(values))


def check_ladder(scales: Sequence[float]) -> tuple[float, ...]:
    """The scales as floats, refused unless they fall strictly."""
    checked = tuple(check_scale(scale) for scale in scales)
    if not checked or any(after >= before for before, after in pairwise(checked)):
        raise PrivacyError(f"scales of a ladder must fall strictly from coarse to fine, got {tuple(scales)!r}")
    return checked


def coarsen(values: Counts, fine_scale: float, coarse_scale: float, noise: Noise) -> Counts:
    """Turn values with Laplace noise of `fine_scale` into values with noise of `coarse_scale`."""
    flat = values.ravel().copy()
    same = unchanged(flat.size, Fraction(fine_scale), Fraction(coarse_scale), noise)
    moved = np.flatnonzero(~same)
    flat[moved] += noise.laplace(np.zeros(moved.size, dtype=np.int64), coarse_scale)
    return flat.reshape(values.shape)


def unchanged(size: int, fine_scale: Fraction, coarse_scale: Fraction, noise: Noise) -> Bits:
    """Bernoulli(q) bits: q = (p2/p1) ((1-p1)/(1-p2))^2, three independent factors that must all hold."""
    result = np.ones(size, dtype=np.bool_)
    small, large = 1 / coarse_scale, 1 / fine_scale  # -ln p1, -ln p2
    _hold(result, lambda count: bernoulli_exp(count, large - small, noise))
    for _ in range(2):
        _hold(result, lambda count: bernoulli_complements(count, small, large, noise))
    return result


def _hold(result: Bits, draw: Callable[[int], Bits]) -> None:
    """AND fresh bits into `result`, drawn only where it still holds."""
    where = np.flatnonzero(result)
    if where.size:
        result[where] = draw(where.size)


def bernoulli_exp(size: int, exponent: Fraction, noise: Noise) -> Bits:
    """Bernoulli(e^-exponent) bits for a rational exponent >= 0 (Canonne, Kamath, Steinke 2020, Algorithm 1)."""
    result = np.ones(size, dtype=np.bool_)
    whole, part = divmod(exponent, 1)
    for _ in range(whole):  # one Bernoulli(e^-1) per whole unit
        if not result.any():
            return result
        _hold(result, lambda count: _bernoulli_exp_unit(count, Fraction(1), noise))
    if part:
        _hold(result, lambda count: _bernoulli_exp_unit(count, part, noise))
    return result


def _bernoulli_exp_unit(size: int, exponent: Fraction, noise: Noise) -> Bits:
    """For an exponent g in (0, 1]: the first k whose Bernoulli(g/k) fails is odd with probability e^-g."""
    result = np.zeros(size, dtype=np.bool_)
    active, k = np.arange(size), 0
    while active.size:
        k += 1
        went_on = noise.keep(active.size, exponent / k)
        result[active[~went_on]] = k % 2 == 1
        active = active[went_on]
    return result


def bernoulli_complements(size: int, small: Fraction, large: Fraction, noise: Noise) -> Bits:
    """Bernoulli((1 - e^-small) / (1 - e^-large)) bits, for 0 < small < large.

    While `large` < 1 both exponents are doubled, by 1 - e^-2x = (1 - e^-x)(1 + e^-x): each doubling leaves a
    factor (1 + e^-large) / (1 + e^-small). Without it the last step would reject about 1/large times.
    """
    result = np.ones(size, dtype=np.bool_)
    while large < 1:
        _hold(result, lambda count, a=small, b=large: _bernoulli_one_plus(count, a, b, noise))  # type: ignore[misc]
        small, large = 2 * small, 2 * large
    _hold(result, lambda count: _bernoulli_one_minus(count, small, large, noise))
    return result


def _bernoulli_one_plus(size: int, small: Fraction, large: Fraction, noise: Noise) -> Bits:
    """(1 + p2) / (1 + p1): accept 1 on heads; on tails 1 with p2, 0 with p1 - p2, and again with 1 - p1."""
    result = np.zeros(size, dtype=np.bool_)
    active = np.arange(size)
    while active.size:
        heads = noise.keep(active.size, Fraction(1, 2))
        result[active[heads]] = True
        tails = active[~heads]
        first = bernoulli_exp(tails.size, small, noise)  # p1
        decided = tails[first]
        result[decided] = bernoulli_exp(decided.size, large - small, noise)  # p2/p1
        active = tails[~first]
    return result


def _bernoulli_one_minus(size: int, small: Fraction, large: Fraction, noise: Noise) -> Bits:
    """(1 - p1) / (1 - p2): 1 with 1 - p1, 0 with p1 - p2, and again with p2."""
    result = np.zeros(size, dtype=np.bool_)
    active = np.arange(size)
    while active.size:
        first = bernoulli_exp(active.size, small, noise)  # p1
        result[active[~first]] = True
        pending = active[first]
        active = pending[bernoulli_exp(pending.size, large - small, noise)]  # p2/p1 of these: p2 in all
    return result
