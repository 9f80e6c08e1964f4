"""Rows of one CPT resemble each other: a row that few records fall into borrows from the rows that it fits.

Of row j the tables tell the noisy counts y (variance v per state), and an estimate p of its probabilities from an
expected number n of records. Rows of a CPT are often alike, the more so the nearer their parents' states (taken as
ordered). So the truth is taken to be near one of the CPT's best-known rows a with a chance in proportion to

    what is known of a:   (n_a SPREAD)^2 / ((n_a SPREAD)^2 + v)
    how near it is:       NEARER to the number of steps between the parents' states, beyond the first
    how well it fits:     exp(-|y - n p_a|^2 / 2w),   w = v + (n WIDTH)^2

and near p itself with weight 1. Near means within WIDTH per state: of the truth, v/w is the mean of the p_a, and the
rest y/n, for which p stands in. Rows with many records stay as they are. `TIMES` times over: neighbours improve too.

How much to believe of it is a question for the data: in some networks the rows of the usual cases say nothing
about the rare ones. Stein's estimate (`stein`) chooses one step for the network, which leans towards none, and one
per node that leans towards the network's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.stein import Rows, account, per_repetition

Array = NDArray[np.float64]

SPREAD = 0.3  # typical distance of rows per state
WIDTH = 0.1  # and of rows that are alike
NEARER = 0.5
FAR = 3  # states of one parent further apart count as so many steps
NEIGHBOURS = 32  # rows to borrow from at most: those with the most records
TIMES = 2
LEANING = 20.0  # |d|^2/v at which a node's own step weighs as much as the network's
EVIDENCE = 5.0  # and the network's as much as none
CHUNK = 1_000_000  # rows times neighbours compared at once


def blended(cpts: Mapping[str, Rows]) -> dict[str, Array]:
    """CPTs that borrow as far as the data want it, for the repetitions as measured."""
    moves, accounts = {}, {}
    for node, rows in cpts.items():
        move = resembling(rows) - rows.probabilities
        moves[node] = move[: len(move) // 2]
        accounts[node] = account(rows, move)
    overall = sum(gain for gain, _ in accounts.values()) / (sum(size for _, size in accounts.values()) + EVIDENCE)
    overall = np.clip(overall, 0.0, 1.0)
    result = {}
    for node, move in moves.items():
        gain, size = accounts[node]
        step = np.clip((gain + LEANING * overall) / (size + LEANING), 0.0, 1.0)
        result[node] = cpts[node].probabilities[: len(move)] + per_repetition(step, move.ndim) * move
    return result


def resembling(rows: Rows) -> Array:
    """The CPT as if its rows were alike."""
    shape = rows.probabilities.shape
    repetitions, parents, states = shape[0], shape[1:-1], shape[-1]
    estimate = rows.probabilities.reshape(repetitions, -1, states)
    seen, records = rows.seen.reshape(estimate.shape), rows.records.reshape(repetitions, -1)
    places = np.indices(parents).reshape(len(parents), -1)
    best = np.argsort(-records, axis=1, kind="stable")[:, :NEIGHBOURS]
    spread = np.square(SPREAD * np.take_along_axis(records, best, axis=1))
    known = np.log(np.maximum(spread / (spread + rows.variance), 1e-30))
    for _ in range(TIMES):
        others = np.take_along_axis(estimate, best[..., None], axis=1)
        result = np.empty_like(estimate)
        for some, block in _blocks(*records.shape, best.shape[1]):
            result[some, block] = _borrowed(
                estimate[some, block],
                seen[some, block],
                records[some, block],
                rows.variance,
                others[some],
                known[some, None] + _nearness(places, block, best[some]),
            )
        estimate = result
    return estimate.reshape(shape)


def _blocks(repetitions: int, rows: int, neighbours: int) -> Iterator[tuple[slice, slice]]:
    at_once = max(1, CHUNK // neighbours)
    width, height = max(1, at_once // rows), min(rows, at_once)
    for first in range(0, repetitions, width):
        for row in range(0, rows, height):
            yield slice(first, first + width), slice(row, row + height)


def _nearness(places: NDArray[np.intp], block: slice, others: NDArray[np.intp]) -> Array:
    """Logarithm of NEARER to the steps beyond the first, from each row of the block to the others; -inf to itself."""
    steps = np.zeros((len(places[0, block]), *others.shape), dtype=np.int8)
    for place in places:
        states = np.arange(place[-1] + 1)  # the last row has the last state of every parent
        apart = np.minimum(np.abs(states[:, None, None] - place[others]), FAR)
        steps += apart.astype(np.int8)[place[block]]
    chance: Array = math.log(NEARER) * (np.arange(FAR * len(places) + 1, dtype=np.float64) - 1.0)
    chance[0] = -np.inf
    return np.moveaxis(chance[steps], 0, 1)


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
