"""Integer noise on integer counts. SecureNoise draws from OpenDP; InsecureNoise is for experiments.

Laws: discrete Laplace of scale s has P(k) proportional to exp(-|k|/s); discrete Gaussian of scale s
has P(k) proportional to exp(-k^2 / (2 s^2)). Every cell handed in gets its own independent draw.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.privacy import opendp_bridge as bridge

Counts = NDArray[np.int64]


class Noise(Protocol):
    """A source of noise. `private` says whether what it touches may be called private."""

    @property
    def private(self) -> bool: ...

    def laplace(self, counts: Counts, scale: float) -> Counts: ...

    def gaussian(self, counts: Counts, scale: float) -> Counts: ...

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]:
        """One independent Bernoulli(rate) per row, exactly."""
        ...

    def thin(self, counts: Counts, rate: Fraction) -> Counts:
        """Binomial(count, rate) per cell, exactly: what an independent Poisson sample would count."""
        ...


class SecureNoise:
    """Exact samplers on the operating system's randomness. Cannot be seeded."""

    private = True

    def laplace(self, counts: Counts, scale: float) -> Counts:
        return bridge.add_discrete_laplace(counts, scale)

    def gaussian(self, counts: Counts, scale: float) -> Counts:
        return bridge.add_discrete_gaussian(counts, scale)

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]:
        """Uniform integers below the denominator, by rejection from 64-bit words of os.urandom."""
        numerator, denominator = rate.numerator, rate.denominator
        if not 0 <= numerator <= denominator <= 2**32:
            raise PrivacyError(f"a sampling rate must be a fraction in [0, 1] with denominator <= 2**32, got {rate}")
        limit = 2**64 // denominator * denominator
        kept = np.empty(0, dtype=np.bool_)
        while kept.size < rows:
            words = np.frombuffer(os.urandom(8 * (rows - kept.size)), dtype=np.uint64)
            if limit < 2**64:
                words = words[words < np.uint64(limit)]
            kept = np.concatenate([kept, words % np.uint64(denominator) < np.uint64(numerator)])
        return kept

    def thin(self, counts: Counts, rate: Fraction) -> Counts:
        thinned = [int(self.keep(int(count), rate).sum()) for count in counts.ravel()]
        return np.array(thinned, dtype=np.int64).reshape(counts.shape)


class InsecureNoise:
    """Fast and seedable: for experiments only. What it produces is stamped private=False."""

    private = False

    def __init__(self, seed: int | None = None):
        self._generator = np.random.default_rng(seed)

    def laplace(self, counts: Counts, scale: float) -> Counts:
        success = -np.expm1(-1.0 / scale)
        draw = self._generator.geometric
        return counts + draw(success, counts.shape) - draw(success, counts.shape)

    def gaussian(self, counts: Counts, scale: float) -> Counts:
        return counts + np.rint(self._generator.normal(0.0, scale, counts.shape)).astype(np.int64)

    def keep(self, rows: int, rate: Fraction) -> NDArray[np.bool_]:
        return self._generator.random(rows) < float(rate)

    def thin(self, counts: Counts, rate: Fraction) -> Counts:
        return self._generator.binomial(counts, float(rate))
