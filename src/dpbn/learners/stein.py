"""How far to follow a suggestion, asked of the noisy tables themselves (Stein's estimate of risk).

Let y be the noisy counts of a CPT (variance v per cell), n p what its estimate expects, and d a suggested change of
the expected counts. Of all steps along d, the one with the least expected squared error is

    ((y - n p).d - v div d) / |d|^2

(unbiased for Gaussian noise and a guide for ours). The divergence is how d follows a small change of all noisy
tables, so each batch holds every repetition twice: as measured, and with a public change of signs (`probed`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PROBE = 0.03  # size of the public change, in deviations


@dataclass(frozen=True)
class Rows:
    """What is known of one CPT; the leading axis holds all repetitions as measured, then all of them changed."""

    probabilities: Array  # repetition, parents..., state
    seen: Array  # noisy counts, same shape
    records: Array  # expected, without the last axis
    variance: float  # of a noisy count
    doubt: Array  # what the posterior leaves open of each count: its variance


def probed(noisy: Sequence[Array], variances: Sequence[float], tables: Sequence[Sequence[str]]) -> list[Array]:
    """The tables twice: as they are, and each cell PROBE deviations up or down, by signs that its names decide."""
    result = []
    for table, variance, names in zip(noisy, variances, tables, strict=True):
        shape = table.shape[1:]
        bits = np.random.PCG64(zlib.crc32("\0".join(names).encode())).random_raw(math.prod(shape)) >> np.uint64(63)
        signs = 2.0 * bits.reshape(shape) - 1.0
        result.append(np.concatenate([table, table + PROBE * math.sqrt(variance) * signs]))
    return result


def account(rows: Rows, move: Array, told: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Numerator and denominator of the best step along a move of the CPT, over v; of the rows `told` only."""
    half = len(move) // 2
    counts = rows.records[..., None] * move
    missing = (rows.seen - rows.records[..., None] * rows.probabilities)[:half]
    follows = (counts[half:] - counts[:half]) * (rows.seen[half:] - rows.seen[:half]) / PROBE**2
    gain, size = missing * counts[:half] - follows, np.square(counts[:half])
    if told is not None:
        gain, size = gain * told[..., None], size * told[..., None]
    return _summed(gain) / rows.variance, _summed(size) / rows.variance


def per_repetition(values: NDArray[Any], dimensions: int) -> NDArray[Any]:
    """Shaped to multiply arrays of so many dimensions."""
    return values.reshape(-1, *[1] * (dimensions - 1))


def _summed(values: Array) -> Array:
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))
