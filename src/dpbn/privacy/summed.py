"""What noise of several Laplace draws costs: tables asked for at once, at one (epsilon, delta).

Law. Every cell gets the sum of m independent discrete Laplace draws of one scale b. With t = tanh(1/2b) and
r = 1/(e^(2/b) - 1),

    P(x) = t^m e^(-|x|/b) f(|x|),  f(x) = sum over i < m of C(m-1+i, i) C(x+m-1, m-1-i) r^i.

It lies between the Laplace law (m = 1) and a Gaussian one (m large): round at zero like the second, so that many tables
compose well, and falling like the first far out, so that no cell loses more than 1/b. From about eight tables on, that
is less noise at one (epsilon, delta) than either of them has.

Cost. A record that comes or goes shifts one cell of every table by 1 (one that is replaced: two cells, `touched`
is 2). A shifted cell is a pair of laws, P(x) and P(x-1), with log odds L(x) = ln P(x)/P(x-1), which fall from 1/b to
-1/b since P is log-concave.
1. Split every outcome x in two, on the points g <= L(x) <= g + h of a grid, so that both laws keep their sums: the part
   (1 - e^(g-L)) / (1 - e^(-h)) of P(x) goes up. Forgetting which of the two it was gives the pair back, so splitting
   can only raise delta, whatever else is released (post-processing).
2. Outcomes beyond the last x go to a point above their log odds: delta grows with them. A table that the record
   does not reach only lowers delta (post-processing again: its noise could be drawn by anyone).
3. Log odds of independent cells add up, so all tables together have the convolution of their points, and
   delta(epsilon) = sum over points l > epsilon of their mass times (1 - e^(epsilon - l)).
Rounding. Masses are sums of products of numbers that are not negative, so floats keep relative errors: below 1e-12 for
a law, 1e-9 for all convolutions. Log odds have errors below 1e-14, which is 1e-9 of a step at the largest scale.
`ROUNDING` is more: so much of every outcome goes up beyond its part, and so much is added to delta and epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.privacy.accounting import add_up
from dpbn.privacy.gaussian import check_delta, rho_budget

Array = NDArray[np.float64]
Law = tuple[float, int]  # scale, draws

MOST_DRAWS = 12  # more is Gaussian
MOST_TABLES = 64  # the same
LEAST_SCALE, MOST_SCALE = 0.05, 1000.0  # beyond, laws take long to write down and noise drowns what is gained
LEAST_DELTA = 1e-290  # below, floats lose their relative errors: pure epsilon serves
FINE = 25.0  # points of the grid in a deviation of the log odds of a table
FURTHEST = 60.0  # scales, beyond those that m draws are worth: what lies further has mass below 1e-20
ROUNDING = 1e-7
SLACK = 1e-9  # added to what is charged: floats may differ on another machine, by much less


def check_law(scale: float, draws: int) -> None:
    """Refuse what is not accounted for."""
    if not isinstance(draws, int) or not 2 <= draws <= MOST_DRAWS:
        raise PrivacyError(f"draws of summed noise must be a whole number in 2..{MOST_DRAWS}, got {draws!r}")
    if not LEAST_SCALE <= scale <= MOST_SCALE:
        raise PrivacyError(f"the scale of summed noise must be in {LEAST_SCALE:g}..{MOST_SCALE:g}, got {scale!r}")


def summed_epsilon(laws: Sequence[Law], touched: int, delta: float, *, proved: bool = False) -> float:
    """What tables with such noise, asked for at once, cost at `delta`; `touched` cells of each follow one record."""
    check_delta(delta)
    if type(touched) is not int or touched not in (1, 2) or len(laws) > MOST_TABLES:
        raise PrivacyError(
            f"summed noise must be on at most {MOST_TABLES} tables, of which a record touches 1 or 2 cells each, "
            f"got {len(laws)} and {touched}"
        )
    for law in laws:
        check_law(*law)
    pure = add_up(touched / scale for scale, _ in laws) * (1.0 + ROUNDING)
    found = _epsilon(tuple(sorted(laws)), touched, delta) if laws and delta >= LEAST_DELTA else pure
    return min(pure, found) * (1.0 if proved else 1.0 + SLACK)


@lru_cache(maxsize=64)
def summed_laws(shares: tuple[float, ...], touched: int, epsilon: float, delta: float) -> tuple[Law, ...] | None:
    """The least noise for tables whose precisions are in proportion to `shares`; None where others have less."""
    if not 2 <= len(shares) <= MOST_TABLES or not delta >= LEAST_DELTA or not 1e-4 <= epsilon <= 1e4:
        return None
    whole = math.fsum(shares)
    largest = max(shares) / whole
    rho = rho_budget(epsilon, delta, largest)
    alike = whole**2 / math.fsum(share**2 for share in shares)  # as many tables of equal shares
    # far tails serve where one table's log odds come near epsilon; the best number of draws is flat around this
    draws = min(max(round(11.0 * touched * alike * rho / epsilon**2), 2), MOST_DRAWS)
    widths = [math.sqrt(touched * whole / (2.0 * share * rho) / (2.0 * draws)) for share in shares]

    def laws(times: float) -> tuple[Law, ...]:
        return tuple((times * width, draws) for width in widths)

    if min(widths) < 2.0 * LEAST_SCALE or max(widths) > 0.9 * MOST_SCALE:
        return None

    def excess(times: float) -> float:
        return math.log(max(_delta(*_profile(laws(times), touched), epsilon), 1e-300) / delta)

    low, high = 0.6, 1.1  # of the Gaussian's deviation
    below, above = excess(low), excess(high)
    if not below > 0 > above:
        return None
    for _ in range(30):  # false position with halving
        times = (low * above - high * below) / (above - below)
        found = excess(times)
        if abs(found) < 1e-4:
            break
        if found > 0:
            low, below, above = times, found, above / 2.0
        else:
            high, above, below = times, found, below / 2.0
    for margin in (1e-5, 1e-4, 1e-3):
        chosen = laws(times * (1.0 + margin))
        if summed_epsilon(chosen, touched, delta) <= epsilon:
            return chosen
    return None


@lru_cache(maxsize=256)
def _epsilon(laws: tuple[Law, ...], touched: int, delta: float) -> float:
    losses, masses = _profile(laws, touched)
    low, high = 0.0, float(losses[-1])
    if _delta(losses, masses, low) * (1.0 + ROUNDING) <= delta:
        return 0.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if _delta(losses, masses, middle) * (1.0 + ROUNDING) <= delta:
            high = middle
        else:
            low = middle
    return high * (1.0 + ROUNDING)


def _delta(losses: Array, masses: Array, epsilon: float) -> float:
    first = int(np.searchsorted(losses, epsilon, side="right"))
    return float(-masses[first:] @ np.expm1(epsilon - losses[first:]))


def _profile(laws: Sequence[Law], touched: int) -> tuple[Array, Array]:
    """The log odds of all tables together, and the mass of each under the law of the table that holds the record."""
    step = math.sqrt(math.fsum(1.0 / (2.0 * draws * scale**2) for scale, draws in laws) / len(laws)) / FINE
    first, masses = 0, np.ones(1)
    for scale, draws in laws:
        start, points = _points(scale, draws, step)
        for _ in range(touched):
            first, masses = first + start, np.convolve(masses, points)
    return np.asarray(step * (first + np.arange(masses.size)), dtype=np.float64), masses


@lru_cache(maxsize=256)
def _points(scale: float, draws: int, step: float) -> tuple[int, Array]:
    """The masses of one shifted cell on the grid, and the number of the first point."""
    masses, odds = _law(scale, draws)
    below = np.floor(odds / step)
    up = masses * np.minimum(np.expm1(below * step - odds) / math.expm1(-step) + ROUNDING, 1.0)
    start = math.floor(-1.0 / scale / step) - 1
    size = 2 * -start + 1
    index = below.astype(np.int64) - start
    points = np.zeros(size)
    np.add.at(points, index, masses - up)
    np.add.at(points, index + 1, up)
    points[-1] += _further(masses)
    return start, points


def _further(masses: Array) -> float:
    """A bound of what lies beyond the last x on both sides: it falls at least as fast as the last two do."""
    falls = masses[0] / masses[1]
    return float(2.0 * masses[0] * falls / (1.0 - falls))


def _law(scale: float, draws: int) -> tuple[Array, Array]:
    """P(x) and L(x) for x from -furthest to furthest."""
    furthest = math.ceil(scale * (FURTHEST + 4.0 * draws)) + draws
    x = np.arange(furthest + 2, dtype=np.float64)
    powers = np.power(1.0 / math.expm1(2.0 / scale), np.arange(draws)) @ _coefficients(draws)
    factor = np.full_like(x, powers[-1])
    for coefficient in powers[-2::-1]:  # all are positive
        factor = factor * x + coefficient
    half = math.tanh(0.5 / scale) ** draws * np.exp(-x / scale) * factor
    odds = np.log(factor[1:] / factor[:-1]) - 1.0 / scale  # L(x) of x = 1, 2, ...; L(1 - x) = -L(x)
    masses = np.concatenate([half[furthest:0:-1], half[: furthest + 1]])
    return masses, np.concatenate([-odds[furthest::-1], odds[:furthest]])


@lru_cache(maxsize=16)
def _coefficients(draws: int) -> Array:
    """[i, k]: of r^i x^k in f."""
    result = np.zeros((draws, draws))
    for i in range(draws):
        product = [math.comb(draws - 1 + i, i)]
        for j in range(draws - 1 - i):  # times (x + draws - 1 - j)
            product = [a + (draws - 1 - j) * b for a, b in zip([0, *product], [*product, 0], strict=True)]
        result[i, : len(product)] = [whole / math.factorial(draws - 1 - i) for whole in product]
    return result
