"""Rows of one CPT resemble each other: a row that few records fall into borrows from the rows that it fits.

Of row j the tables tell the noisy counts y (variance v per state), and an estimate p of its probabilities from an
expected number n of records. Rows of a CPT are often alike, the more so the fewer parents differ. So the truth is
taken to be near one of the CPT's rows a with a chance in proportion to

    what is known of a:   (n_a SPREAD)^2 / ((n_a SPREAD)^2 + v)
    how near it is:       NEARER to the number of steps between the parents' states, beyond the first
    how well it fits:     exp(-|y - n p_a|^2 / 2w),   w = v + (n WIDTH)^2

and near p itself with weight 1. Near means within WIDTH per state, so the mean of the truth is v/w of the mean of the
p_a and the rest of p. Rows with many records stay as they are. `TIMES` times over, since neighbours improve too.

How much to believe of it is a question for the data: in some networks the rows of the usual cases say nothing
about the rare ones. Let d be the change in expected counts. Of all steps along d, the one with the least expected
squared error is (y - n p).d less v times the divergence of d, over |d|^2 (Stein's unbiased risk estimate). The
divergence is how d follows a small change of all noisy tables, so each batch holds every repetition twice: as measured,
and with a public change of signs (`probed`). One step for the network, and one per node that leans towards it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SPREAD = 0.3  # typical distance of rows per state
WIDTH = 0.1  # and of rows that are alike
NEARER = 0.5
FAR = 3  # states of one parent further apart count as so many steps
NEIGHBOURS = 32  # rows to borrow from at most: those with the most records
TIMES = 2
PROBE = 0.3  # size of the public change, in deviations
LEANING = 20.0  # |d|^2/v at which a node's own step weighs as much as the network's
CHUNK = 1_000_000  # rows times neighbours compared at once


@dataclass(frozen=True)
class Rows:
    """What is known of one CPT; the leading axis holds all repetitions as measured, then all of them changed."""

    probabilities: Array  # repetition, parents..., state
    seen: Array  # noisy counts, same shape
    records: Array  # expected, without the last axis
    variance: float  # of a noisy count


def probed(noisy: Sequence[Array], variances: Sequence[float]) -> list[Array]:
    """The tables twice: as they are, and each cell PROBE deviations up or down."""
    generator = np.random.default_rng(0)  # public: no data is involved
    result = []
    for table, variance in zip(noisy, variances, strict=True):
        signs = generator.integers(0, 2, size=table.shape[1:]) * 2.0 - 1.0
        result.append(np.concatenate([table, table + PROBE * math.sqrt(variance) * signs]))
    return result


def blended(cpts: Mapping[str, Rows]) -> dict[str, Array]:
    """CPTs that borrow as far as the data want it: the changed repetitions as far as those measured."""
    if not cpts:
        return {}
    steps, gains, sizes = {}, {}, {}
    for node, rows in cpts.items():
        half = len(rows.probabilities) // 2
        steps[node] = resembling(rows) - rows.probabilities
        counts = rows.records[..., None] * steps[node]
        missing = (rows.seen - rows.records[..., None] * rows.probabilities)[:half]
        follows = (counts[half:] - counts[:half]) * (rows.seen[half:] - rows.seen[:half]) / PROBE**2
        gains[node] = _summed(missing * counts[:half] - follows) / rows.variance
        sizes[node] = _summed(np.square(counts[:half])) / rows.variance
    overall = np.clip(sum(gains.values()) / np.maximum(sum(sizes.values()), 1e-9), 0.0, 1.0)
    result = {}
    for node, step in steps.items():
        part = np.clip((gains[node] + LEANING * overall) / (sizes[node] + LEANING), 0.0, 1.0)
        result[node] = cpts[node].probabilities + np.tile(part, 2).reshape(-1, *[1] * (step.ndim - 1)) * step
    return result


def _summed(values: Array) -> Array:
    return np.asarray(values.reshape(len(values), -1).sum(axis=1))


def resembling(rows: Rows) -> Array:
    """The CPT as if its rows were alike."""
    shape = rows.probabilities.shape
    repetitions, parents, states = shape[0], shape[1:-1], shape[-1]
    estimate = rows.probabilities.reshape(repetitions, -1, states)
    seen, records = rows.seen.reshape(estimate.shape), rows.records.reshape(repetitions, -1)
    places = np.indices(parents).reshape(len(parents), -1)
    spread = np.square(SPREAD * records)
    known = spread / (spread + rows.variance)
    near = np.argsort(-known, axis=1, kind="stable")[:, :NEIGHBOURS]
    weight = np.log(np.maximum(np.take_along_axis(known, near, axis=1), 1e-30))
    for _ in range(TIMES):
        others = np.take_along_axis(estimate, near[..., None], axis=1)
        result = np.empty_like(estimate)
        for some, part in _blocks(*records.shape, near.shape[1]):
            result[some, part] = _borrowed(
                estimate[some, part],
                seen[some, part],
                records[some, part],
                rows.variance,
                others[some],
                weight[some, None] + math.log(NEARER) * _steps(places, part, near[some]),
            )
        estimate = result
    return estimate.reshape(shape)


def _blocks(repetitions: int, rows: int, neighbours: int) -> Iterator[tuple[slice, slice]]:
    at_once = max(1, CHUNK // neighbours)
    width, height = max(1, at_once // rows), min(rows, at_once)
    for first in range(0, repetitions, width):
        for row in range(0, rows, height):
            yield slice(first, first + width), slice(row, row + height)


def _steps(places: NDArray[np.intp], part: slice, near: NDArray[np.intp]) -> Array:
    """Steps from each row of the part to each of its neighbours beyond the first; -inf chance of itself."""
    steps = np.zeros((len(near), len(places[0, part]), near.shape[1]))
    for place in places:
        steps += np.minimum(np.abs(place[None, part, None] - place[near][:, None]), FAR)
    return np.where(steps == 0, np.inf, steps - 1)


def _borrowed(estimate: Array, seen: Array, records: Array, variance: float, others: Array, chance: Array) -> Array:
    wide = variance + np.square(WIDTH * records)
    counts = records[..., None]
    fits = 2 * counts * (seen @ np.swapaxes(others, 1, 2)) - np.square(counts) * np.square(others).sum(axis=2)[:, None]
    own = 2 * records * (seen * estimate).sum(axis=2) - np.square(records) * np.square(estimate).sum(axis=2)
    chance = chance + (fits - own[..., None]) / (2 * wide[..., None])
    most = np.maximum(chance.max(axis=2, keepdims=True), 0.0)
    odds, alone = np.exp(chance - most), np.exp(-most)
    mean = (odds @ others + alone * estimate) / (odds.sum(axis=2, keepdims=True) + alone)
    result = estimate + (variance / wide)[..., None] * (mean - estimate)
    return np.asarray(result / result.sum(axis=2, keepdims=True))
