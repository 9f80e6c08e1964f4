"""Integer noise on integer counts. SecureNoise draws from OpenDP; InsecureNoise is for experiments.

Laws: discrete Laplace of scale s has P(k) proportional to exp(-|k|/s); discrete Gaussian of scale s
has P(k) proportional to exp(-k^2 / (2 s^2)); summed noise is the sum of several discrete Laplace draws. Every cell
handed in gets its own independent noise. Noise drawn together for several tables has the law in `joint`.
"""

from __future__ import annotations

import math
import os
import random
import secrets
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, PrivacyError, received
from dpbn.privacy import blocks, joint
from dpbn.privacy import opendp_bridge as bridge

Counts = NDArray[np.int64]

LARGEST_COUNT = 2**62  # the Curator clips counts to this
LARGEST_SCALE = 2.0**50  # a draw that leaves 64 bits is then more than 4096 scales out: e^-4096
SMALLEST_SCALE = 2.0**-40
_BITS_SET = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)
_WORDS_AT_ONCE = 2**20
_FEW = 64  # coins: below, plain integers are faster than arrays


class Noise(Protocol):
    """A source of noise."""

    def laplace(self, counts: Counts, scale: float) -> Counts: ...

    def gaussian(self, counts: Counts, scale: float) -> Counts: ...

    def summed(self, counts: Counts, scale: float, draws: int) -> Counts:
        """Every cell plus so many independent Laplace draws."""
        ...

    def joint(self, tables: Sequence[Counts], scale: float) -> list[Counts]:
        """Tables (blocks, cells) of the same records, with noise drawn together: it costs what one table would."""
        ...

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]:
        """One independent Bernoulli(rate) per row, exactly."""
        ...

    def thin(self, counts: Counts, rate: Fraction) -> Counts:
        """Binomial(count, rate) per cell, exactly: what an independent Poisson sample would count."""
        ...


def check_scale(scale: float) -> float:
    """The scale as a float, refused unless it is positive and its noise fits 64-bit integers."""
    number = isinstance(scale, (int, float, np.floating, np.integer)) and not isinstance(scale, bool)
    if not number or not SMALLEST_SCALE <= scale <= LARGEST_SCALE:  # NaN fails the comparison
        raise PrivacyError(f"a noise scale must be in [2^-40, 2^50], got {scale!r}")
    return float(scale)


def check_rate(rate: Fraction) -> Fraction:
    """The sampling rate, refused unless it is an exact fraction in [0, 1]."""
    if not isinstance(rate, (Fraction, int)) or isinstance(rate, bool) or not 0 <= rate <= 1:
        raise PrivacyError(f"a sampling rate must be a Fraction in [0, 1], got {rate!r}")
    return Fraction(rate)


def _check_counts(counts: Counts) -> Counts:
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int64:
        found = getattr(counts, "dtype", type(counts).__name__)
        raise PrivacyError(f"counts must be an int64 array, since no float may stand before the noise, got {found}")
    return counts


def _check_draws(draws: int) -> int:
    if isinstance(draws, bool) or not isinstance(draws, int) or not 1 <= draws <= 64:
        raise PrivacyError(f"draws must be a whole number in 1..64, got {draws!r}")
    return draws


class SecureNoise:
    """Exact samplers on the operating system's randomness. Cannot be seeded."""

    def laplace(self, counts: Counts, scale: float) -> Counts:
        return bridge.add_discrete_laplace(_check_counts(counts), check_scale(scale))

    def gaussian(self, counts: Counts, scale: float) -> Counts:
        return bridge.add_discrete_gaussian(_check_counts(counts), check_scale(scale))

    def summed(self, counts: Counts, scale: float, draws: int) -> Counts:
        nothing = np.zeros((_check_draws(draws), *_check_counts(counts).shape), dtype=np.int64)
        return counts + self.laplace(nothing, scale).sum(axis=0)

    def joint(self, tables: Sequence[Counts], scale: float) -> list[Counts]:
        return _with_joint(tables, scale, self)

    def below(self, bounds: Counts) -> Counts:
        """One uniform whole number in 0..bound-1 per bound: as many random bits as it needs, until they are below."""
        result = np.zeros(bounds.size, dtype=np.int64)
        active, largest = np.arange(bounds.size), (bounds.ravel() - 1).astype(np.uint64)
        mask = largest.copy()
        for shift in (1, 2, 4, 8, 16, 32):  # every bit below the highest one
            mask |= mask >> np.uint64(shift)
        while active.size:
            drawn = np.frombuffer(os.urandom(8 * active.size), dtype=np.uint64) & mask[active]
            fits = drawn <= largest[active]
            result[active[fits]] = drawn[fits].astype(np.int64)
            active = active[~fits]
        return result.reshape(bounds.shape)

    def long_below(self, bound: int) -> int:
        return secrets.randbelow(bound)

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]:
        if rows <= _FEW:
            bits = _bernoulli_bits(rows, check_rate(rate))
            return np.array([bits >> row & 1 for row in range(rows)], dtype=np.bool_)
        words = _bernoulli_words(-(-rows // 64), check_rate(rate))
        return np.unpackbits(words.view(np.uint8))[:rows].astype(np.bool_)

    def thin(self, counts: Counts, rate: Fraction) -> Counts:
        """Each cell owns whole 64-bit words of Bernoulli bits; surplus bits of its last word are masked off."""
        rate = check_rate(rate)
        flat = _check_counts(counts).ravel()
        if flat.size and flat.min() < 0:
            raise PrivacyError("counts to thin must be >= 0, got less")
        thinned = np.zeros(flat.size, dtype=np.int64)
        for cells, trials in _batches(flat):
            words = -(-trials // 64)
            bits = _bernoulli_words(int(words.sum()), rate)
            ends = np.cumsum(words)
            surplus = (64 * words - trials).astype(np.uint64)
            bits[ends - 1] &= np.uint64(2**64 - 1) >> surplus
            ones = _BITS_SET[bits.view(np.uint8)].reshape(-1, 8).sum(axis=1, dtype=np.int64)
            np.add.at(thinned, cells, np.add.reduceat(ones, ends - words))
        return thinned.reshape(counts.shape)


def _with_joint(tables: Sequence[Counts], scale: float, chance: joint.Chance) -> list[Counts]:
    blocks.check_totals([_check_counts(table) for table in tables])
    drawn = joint.draw([table.shape[1] for table in tables], check_scale(scale), len(tables[0]), chance)
    return [table + noise for table, noise in zip(tables, drawn, strict=True)]


def _batches(flat: Counts) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Positive counts in groups of about 2^20 words; a larger cell is cut into several."""
    cells, trials, words = [], [], 0
    for cell in np.flatnonzero(flat):
        left = int(flat[cell])
        while left:
            part = min(left, 64 * _WORDS_AT_ONCE)
            cells.append(cell)
            trials.append(part)
            left -= part
            words += -(-part // 64)
            if words >= _WORDS_AT_ONCE:
                yield np.array(cells), np.array(trials, dtype=np.int64)
                cells, trials, words = [], [], 0
    if cells:
        yield np.array(cells), np.array(trials, dtype=np.int64)


def _bernoulli_bits(count: int, rate: Fraction) -> int:
    """`count` exact Bernoulli(rate) bits in one integer: `_bernoulli_words` without the cost of arrays."""
    if rate == 1:
        return 2**count - 1
    numerator, denominator = rate.numerator, rate.denominator
    result, undecided = 0, 2**count - 1
    while undecided and numerator:
        numerator *= 2
        random = int.from_bytes(os.urandom(-(-count // 8)))
        if numerator >= denominator:
            numerator -= denominator
            result |= undecided & ~random
            undecided &= random
        else:
            undecided &= ~random
    return result


def _bernoulli_words(count: int, rate: Fraction) -> NDArray[np.uint64]:
    """64 exact Bernoulli(rate) bits per word: is a uniform real in [0, 1) below `rate`?

    Both are compared bit by bit, 64 trials side by side; only words with an undecided trial draw on. The bits
    of `rate` come from long division in integers, so any rational is met exactly. If the bits of `rate` end,
    what is still undecided equals it so far and is therefore not below it.
    """
    result = np.zeros(count, dtype=np.uint64)
    if rate == 1:
        return ~result
    numerator, denominator = rate.numerator, rate.denominator
    active = np.arange(count)
    undecided = np.full(count, 2**64 - 1, dtype=np.uint64)
    while active.size and numerator:
        numerator *= 2
        bits = np.frombuffer(os.urandom(8 * active.size), dtype=np.uint64)
        if numerator >= denominator:  # this bit of the rate is 1: trials with bit 0 are below
            numerator -= denominator
            result[active] |= undecided & ~bits
            undecided = undecided & bits
        else:  # this bit is 0: trials with bit 1 are above
            undecided = undecided & ~bits
        more = undecided != 0
        active, undecided = active[more], undecided[more]
    return result


class InsecureNoise:
    """Fast and seedable: for experiments only. What it produces is stamped private=False.

    Floating point inside, so never private; the laws are the discrete ones all the same. Discrete Gaussian draws
    come from a table of the law up to scale 1000 and are rounded normals of matched variance above it.
    """

    def __init__(self, seed: int | None = None):
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
            raise InputError(f"seed must be a whole number >= 0, or None, got {received(seed)}")
        self._generator = np.random.default_rng(seed)
        self._coins = self._generator.spawn(1)[0]  # rows made from the same seed must not decide whether they are kept

    def laplace(self, counts: Counts, scale: float) -> Counts:
        success = -math.expm1(-1.0 / check_scale(scale))
        draw = self._generator.geometric
        return _check_counts(counts) + draw(success, counts.shape) - draw(success, counts.shape)

    def gaussian(self, counts: Counts, scale: float) -> Counts:
        if check_scale(scale) > 1000:  # rounding adds variance 1/12
            normal = self._generator.normal(0.0, math.sqrt(scale**2 - 1 / 12), counts.shape)
            return _check_counts(counts) + np.rint(normal).astype(np.int64)
        cumulative = _gaussian_table(float(scale))
        half = cumulative.size // 2
        return _check_counts(counts) + np.searchsorted(cumulative, self._generator.random(counts.shape)) - half

    def summed(self, counts: Counts, scale: float, draws: int) -> Counts:
        success = -math.expm1(-1.0 / check_scale(scale))
        draw, draws = self._generator.negative_binomial, _check_draws(draws)
        return _check_counts(counts) + draw(draws, success, counts.shape) - draw(draws, success, counts.shape)

    def joint(self, tables: Sequence[Counts], scale: float) -> list[Counts]:
        return _with_joint(tables, scale, _InsecureChance(self._generator))

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]:
        return self._coins.random(rows) < float(check_rate(rate))

    def thin(self, counts: Counts, rate: Fraction) -> Counts:
        return self._generator.binomial(_check_counts(counts), float(check_rate(rate)))


class _InsecureChance:
    """What joint noise draws on."""

    def __init__(self, generator: np.random.Generator):
        self._generator = generator
        self._integers = random.Random(int(generator.integers(2**63)))  # of any length

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]:
        return self._generator.random(rows) < float(rate)

    def below(self, bounds: Counts) -> Counts:
        return self._generator.integers(bounds)

    def long_below(self, bound: int) -> int:
        return self._integers.randrange(bound)


@lru_cache(maxsize=256)
def _gaussian_table(scale: float) -> NDArray[np.float64]:
    """Cumulative probabilities of -h..h for h = 12 scales: beyond lies less than 1e-30."""
    half = math.ceil(12 * scale) + 1
    support = np.arange(-half, half + 1)
    cumulative = np.cumsum(np.exp(-((support / scale) ** 2) / 2))
    return cumulative / cumulative[-1]
