"""Noise drawn together for several tables: a K-norm mechanism, exact on integers.

Symbols. T tables share the names A. In one cell of A (a block) table t has m_t cells, and its noise z_t is an integer
vector; all z_t of a block have one total s. N(z) = max_t |z_t|_1 and P(z) is proportional to p^N(z), blocks being
independent. One record adds a unit vector to every table, all in one block: N of that is 1 and N is a norm, so a
record costs -ln p for all tables together. p = e^(-1/scale), rounded up to a fraction.

Law. Let F_m(P, Q) count the z in Z^m with total P - Q whose positive part sums to at most P; then the negative part
sums to at most Q. With P - Q = s fixed, z is among them for every table from P + Q = N(z) on, in steps of 2, so

    p^N(z) = (1 - p^2) * sum of p^(P+Q) over all P, Q >= 0 with P - Q = s and every z_t within (P, Q).

Hence: draw (P, Q) with weight p^(P+Q) prod_t F_{m_t}(P, Q), then every z_t uniformly within (P, Q), by itself.
The last of m cells follows from the others, whose positive part sums to at most P and negative part to at most Q.
With k of them positive and j negative, these are k- and j-subsets of {1..P} and {1..Q}. So prod_t F is a sum
of c_ij C(P, i) C(Q, j) with whole c_ij >= 0 and i + j < D = 1 + sum (m_t - 1), and as sum_P C(P, i) p^P is
p^i / (1-p)^(i+1), (i, j) has weight c_ij (p/(1-p))^(i+j), and P = i + the sum of i + 1 geometric variables.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.privacy.precise import MARGIN, PRECISE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LARGEST_RANK = 150  # of D: c_ij takes about D^3 additions of long integers, once for a tuple of sizes
LARGEST_WORK = 2.0**36  # blocks * D * scale; a thousandth of it are coins
_BITS = 64  # of 1 - p
_ONE = np.ones((), dtype=object)
_DIGITS = 10  # binary digits of a geometric variable that have a coin of their own


class Chance(Protocol):
    """What the sampler draws on: coins and whole numbers."""

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]: ...

    def below(self, bounds: Integers) -> Integers:
        """One uniform whole number in 0..bound-1 per bound."""
        ...

    def long_below(self, bound: int) -> int:
        """The same for one bound of any length."""
        ...


def rank(sizes: Sequence[int]) -> int:
    """D: how many dimensions the noise of a block has, for tables with so many cells in it."""
    return 1 + sum(sizes) - len(sizes)


def check_joint(sizes: Sequence[int], scale: float, blocks: int) -> None:
    """Refuse what would take too long: a lattice of too many dimensions, or far too much noise."""
    dimensions = rank(sizes)
    if dimensions > LARGEST_RANK:
        raise PrivacyError(f"tables with joint noise must have 1 + sum(cells - 1) <= {LARGEST_RANK}, got {dimensions}")
    if blocks * dimensions * scale > LARGEST_WORK:
        raise PrivacyError(
            f"joint noise must have blocks * dimensions * scale <= 2^36, got {blocks}, {dimensions}, {scale}"
        )


# -- the law --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def ratio(scale: float) -> Fraction:
    """p: e^(-1/scale) rounded up, so that -ln p <= 1/scale; 1 - p keeps 64 binary digits."""
    bits = _BITS + max(0, math.ceil(math.log2(scale)))
    if 1 / scale > bits:  # e^(-1/scale) is below the last digit
        return Fraction(1, 2**bits)
    inverse = PRECISE.divide(Decimal(-1), Decimal(scale))
    exact = Fraction(PRECISE.exp(inverse)) * (1 + MARGIN)
    return Fraction(math.ceil(exact * 2**bits), 2**bits)


def within(sizes: Collection[int], reach: int) -> dict[int, NDArray[Any]]:
    """F_m(P, Q) for every m of `sizes` and P, Q = 0..reach, as Python integers.

    One more cell is 0, or takes from P, or from Q.
    """
    grids, grid = {}, np.ones((reach + 1, reach + 1), dtype=object)
    for size in range(1, max(sizes) + 1):
        if size > 1:
            grid = np.cumsum(grid, axis=0) + np.cumsum(grid, axis=1) - grid
        if size in sizes:
            grids[size] = grid
    return grids


@dataclass(frozen=True, slots=True)
class Law:
    """What the noise of a block is made of, whatever the scale: whole numbers, and sums C_n over i + j = n of such."""

    coefficients: tuple[tuple[int, ...], ...]  # c_ij by n = i + j: entry n holds c_(0,n) .. c_(n,0)
    whole: Floats  # ln C_n of 1 ...
    total: Floats  # ... of the squared total ...
    cells: dict[int, Floats]  # ... and of the squared cell of each size, summed over the z within (P, Q)


@lru_cache(maxsize=256)
def law(sizes: tuple[int, ...]) -> Law:
    top = sum(size - 1 for size in sizes)
    grids = within({m for size in sizes for m in (size - 1, size)}, top + 2)  # squares have a degree of 2 more
    product: NDArray[Any] = math.prod((grids[size] ** sizes.count(size) for size in set(sizes)), start=_ONE)
    steps = np.arange(top + 3).astype(object)
    total = (steps[:, None] - steps[None, :]) ** 2
    cells = {
        size: _log_levels(product // grids[size] * (_squared_cell(grids[size - 1]) if size > 1 else total))
        for size in set(sizes)
    }
    found = _coefficients(product[: top + 1, : top + 1].copy())
    return Law(found, np.array([math.log(sum(row)) for row in found]), _log_levels(product * total), cells)


def _coefficients(grid: NDArray[Any]) -> tuple[tuple[int, ...], ...]:
    """The differences of prod_t F at (0, 0), from its values, which they replace."""
    top = len(grid) - 1
    for step in range(1, top + 1):  # only what i + j <= top needs
        width = top + 1 - step
        grid[step:, :width] = grid[step:, :width] - grid[step - 1 : -1, :width]
    for step in range(1, top + 1):
        width = top + 1 - step
        grid[:width, step:] = grid[:width, step:] - grid[:width, step - 1 : -1]
    return tuple(tuple(int(grid[i, n - i]) for i in range(n + 1)) for n in range(top + 1))


@lru_cache(maxsize=256)
def _levels(sizes: tuple[int, ...], scale: float) -> tuple[list[int], list[list[int]]]:
    """Running sums of the whole weights of n = i + j at this scale, and of i for every n."""
    table, p = law(sizes).coefficients, ratio(scale)
    up, rest, top = p.numerator, p.denominator - p.numerator, len(table) - 1
    weights = [sum(row) * up**n * rest ** (top - n) for n, row in enumerate(table)]
    return list(accumulate(weights)), [list(accumulate(row)) for row in table]


@lru_cache(maxsize=16384)
def _positives(size: int, above: int, under: int) -> list[int]:
    """Running sums of the weights of k, how many of the first size - 1 cells are positive, given (P, Q).

    C(size-1, k) choices of cells, C(P, k) of their values, C(Q+l, l) of the l = size-1-k values <= 0.
    """
    rest = size - 1
    weights = [math.comb(under + rest, rest)]
    for k in range(rest):
        left = rest - k
        weights.append(weights[-1] * left * left * (above - k) // ((k + 1) * (k + 1) * (under + left)))
    return list(accumulate(weights))


# -- draws ----------------------------------------------------------------------------------------------------


def draw(sizes: Sequence[int], scale: float, blocks: int, chance: Chance) -> list[Integers]:
    """The noise of `blocks` blocks: per table an array (blocks, cells). Exact if `chance` is."""
    check_joint(sizes, scale, blocks)
    above, under = _reaches(tuple(sorted(sizes)), scale, blocks, chance)
    result = [np.zeros((blocks, size), dtype=np.int64) for size in sizes]
    for size in sorted(set(sizes)):  # tables of one size in one go
        places = [place for place, its in enumerate(sizes) if its == size]
        rows = _uniform(size, np.tile(above, len(places)), np.tile(under, len(places)), chance)
        for place, part in zip(places, rows.reshape(len(places), blocks, size), strict=True):
            result[place] = part
    return result


def _reaches(sizes: tuple[int, ...], scale: float, blocks: int, chance: Chance) -> tuple[Integers, Integers]:
    """(P, Q) of every block."""
    sums, rows = _levels(sizes, scale)
    levels = [_pick(sums, chance) for _ in range(blocks)]
    first = np.array([_pick(rows[n], chance) for n in levels], dtype=np.int64)
    second = np.array(levels, dtype=np.int64) - first
    waits = np.stack([first, second]).ravel() + 1
    gaps = np.concatenate([[0], np.cumsum(geometric(int(waits.sum()), ratio(scale), chance))])
    ends = np.cumsum(waits)
    summed = (gaps[ends] - gaps[ends - waits]).reshape(2, blocks)
    return first + summed[0], second + summed[1]


def _pick(sums: list[int], chance: Chance) -> int:
    """An index with the weight by which the running sums rise there."""
    return bisect_right(sums, chance.long_below(sums[-1]))


def geometric(count: int, p: Fraction, chance: Chance) -> Integers:
    """Independent draws with P(g) = (1-p) p^g. The binary digits of g are independent, digit b with odds p^(2^b)."""
    rates, rest = _digits(p)
    result = np.zeros(count, dtype=np.int64)
    for digit, rate in enumerate(rates):
        result |= chance.keep(count, rate).astype(np.int64) << digit
    # what is left is geometric with p^(2^digits): runs of heads before each tail in one sequence of coins
    tails, seen, flips = [np.array([-1])], 0, 0
    while seen < count:
        coins = chance.keep(int((count - seen) / float(1 - rest) * 1.05) + 64, rest)
        found = np.flatnonzero(~coins)
        tails.append(found + flips)
        seen, flips = seen + found.size, flips + coins.size
    runs = np.diff(np.concatenate(tails)[: count + 1]) - 1
    return result + (runs << len(rates))


@lru_cache(maxsize=256)
def _digits(p: Fraction) -> tuple[tuple[Fraction, ...], Fraction]:
    rates: list[Fraction] = []
    while 2 * p > 1 and len(rates) < _DIGITS:
        rates.append(p / (1 + p))
        p = p * p
    return tuple(rates), p


def _uniform(size: int, above: Integers, under: Integers, chance: Chance) -> Integers:
    """Per row one vector of `size` cells with total P - Q and positive part at most P, all equally likely."""
    rest, rows = size - 1, above.size
    if not rest:
        return (above - under)[:, None]
    pairs = zip(above.tolist(), under.tolist(), strict=True)
    positive = np.array([_pick(_positives(size, p, q), chance) for p, q in pairs], dtype=np.int64)
    other = rest - positive
    up = _gaps(positive, above, rest, chance)
    down = _gaps(other, under + other, rest, chance) - 1
    place = _shuffled(rows, rest, chance)  # the cells at places below k are the positive ones
    is_up = place < positive[:, None]
    lower = np.take_along_axis(down, np.where(is_up, 0, place - positive[:, None]), axis=1)
    cells = np.where(is_up, np.take_along_axis(up, place, axis=1), -lower)
    return np.concatenate([cells, (above - under - cells.sum(axis=1))[:, None]], axis=1)


def _gaps(chosen: Integers, reach: Integers, width: int, chance: Chance) -> Integers:
    """Steps between the members of a uniform subset of {1..reach} of `chosen` members, from 0 (Floyd's algorithm)."""
    members = np.full((chosen.size, width), np.iinfo(np.int64).max, dtype=np.int64)
    for step in range(width):
        active = step < chosen
        top = np.where(active, reach - chosen + step + 1, 1)
        member = chance.below(top) + 1
        taken = (members[:, :step] == member[:, None]).any(axis=1)
        members[active, step] = np.where(taken, top, member)[active]
    members.sort(axis=1)
    return np.diff(members, axis=1, prepend=0)  # steps beyond the last member mean nothing


def _shuffled(rows: int, width: int, chance: Chance) -> Integers:
    """A uniform permutation of 0..width-1 per row (Fisher and Yates)."""
    places, every = np.tile(np.arange(width), (rows, 1)), np.arange(rows)
    for step in range(width - 1):
        other = step + chance.below(np.full(rows, width - step, dtype=np.int64))
        places[every, other], places[:, step] = places[:, step].copy(), places[every, other]
    return places


# -- moments --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def moments(sizes: tuple[int, ...], scale: float) -> tuple[float, tuple[float, ...]]:
    """Variance of the common total of a block, and of one cell of each table."""
    block = law(tuple(sorted(sizes)))
    norm = _log_sum(block.whole, scale)
    each = {size: math.exp(_log_sum(logs, scale) - norm) for size, logs in block.cells.items()}
    return math.exp(_log_sum(block.total, scale) - norm), tuple(each[size] for size in sizes)


@np.errstate(under="ignore")  # as NumPy has it: a caller who has it raise could not save what is paid for
def _log_sum(logs: Floats, scale: float) -> float:
    """ln sum_n C_n y^n from ln C_n, with y = p/(1-p)."""
    terms = logs + np.arange(logs.size) * (-1 / scale - math.log(-math.expm1(-1 / scale)))
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


def _squared_cell(fewer: NDArray[Any]) -> NDArray[Any]:
    """Sum of x^2 over the values x of one cell: sum_x x^2 (F(P-x, Q) + F(P, Q-x)) with F of one cell less."""
    fewer = np.concatenate([np.zeros((2, len(fewer)), dtype=object), fewer])
    squares = fewer[1:-1] + fewer[:-2]  # x^2 has the generating function (x + x^2) / (1-x)^3
    for _ in range(3):
        squares = np.cumsum(squares, axis=0)
    return squares + squares.T


def _log_levels(grid: NDArray[Any]) -> Floats:
    """ln C_n, where the polynomial on the grid is sum c_ij C(P, i) C(Q, j) and C_n = sum of c_ij with i + j = n.

    Its sums B over P + Q = q have sum_q B_q x^q = (1+u)^2 sum_n C_n u^n with u = x/(1-x).
    """
    top = len(grid)
    steps = np.arange(top)
    sums = [sum(grid[steps[: q + 1], q - steps[: q + 1]]) for q in range(top)]
    logs = []
    for n in range(top):
        row, level = 1, 0  # (-1)^(n-q) C(n+1, n-q), from q = n down
        for back in range(n + 1):
            level += row * sums[n - back]
            row = -row * (n + 1 - back) // (back + 1)
        logs.append(math.log(level) if level else -math.inf)
    return np.array(logs)
