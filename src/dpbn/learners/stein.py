"""How far to follow a suggestion, asked of the noisy tables themselves (Stein's estimate of risk).

Let y be the noisy counts of a CPT (variance v per cell), n p what its estimate expects, and d a suggested change of
the expected counts. Of all steps along d, the one with the least expected squared error is

    ((y - n p).d - v div d) / |d|^2

(unbiased for Gaussian noise and a guide for ours). The divergence is how d follows a small change of all noisy
tables, so each batch holds every repetition twice: as measured, and with a public change of signs (`probed`). Rows
of the data are a sample themselves: a count varies by v and by n p (1 - p), which is added to v cell by cell.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.measurement import Moments

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


def probed(noisy: Sequence[Array], noises: Sequence[Moments], tables: Sequence[Sequence[str]]) -> list[Array]:
    """The tables twice: as they are, and changed by PROBE times signs with the moments of the noise.

    The signs are public, by the names. Tables whose noise was drawn together are changed together as well.
    """
    result = []
    for table, noise, names in zip(noisy, noises, tables, strict=True):
        change = math.sqrt(noise.within) * _signs(names, table.shape[1:])
        if noise.group:
            inside = tuple(axis for axis, name in enumerate(names) if name not in noise.common)
            common = [axis for axis, name in enumerate(names) if name in noise.common]
            totals = _signs(
                [noise.group, *(names[axis] for axis in common)], [table.shape[1 + axis] for axis in common]
            )
            size = change.size // noise.blocks
            change -= change.mean(axis=inside, keepdims=True)
            change += math.sqrt(noise.total) / size * np.expand_dims(totals, inside)
        result.append(np.concatenate([table, table + PROBE * change]))
    return result


def _signs(names: Sequence[str], shape: Sequence[int]) -> Array:
    bits = np.random.PCG64(zlib.crc32("\0".join(names).encode())).random_raw(math.prod(shape)) >> np.uint64(63)
    return 2.0 * np.reshape(bits, shape) - 1.0


def account(rows: Rows, move: Array, told: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Numerator and denominator of the best step along a move of the CPT, over v; of the rows `told` only."""
    half = len(move) // 2
    expected = rows.records[..., None] * rows.probabilities
    counts = rows.records[..., None] * move
    sampled = 1.0 + (expected * (1.0 - rows.probabilities))[:half] / rows.variance
    follows = (counts[half:] - counts[:half]) * (rows.seen[half:] - rows.seen[:half]) / PROBE**2 * sampled
    gain, size = (rows.seen - expected)[:half] * counts[:half] - follows, np.square(counts[:half])
    if told is not None:
        gain, size = gain * told[..., None], size * told[..., None]
    return _summed(gain) / rows.variance, _summed(size) / rows.variance


def per_repetition(values: NDArray[Any], dimensions: int) -> NDArray[Any]:
    """Shaped to multiply arrays of so many dimensions."""
    return values.reshape(-1, *[1] * (dimensions - 1))


def _summed(values: Array) -> Array:
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))
