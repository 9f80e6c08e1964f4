"""Nodes of one network often share a CPT: the slices of a process in time, the members of a pedigree, copies of a part.

Take all nodes whose CPTs have one shape. Of row c of node i the tables tell x = y/n (noisy counts by expected
records) with variance e = v/n^2 per state. Twins lie TWINS per state from a common centre, strangers STRANGERS; every
row where something is known of both nodes tells the two apart, and the sum over the rows is the evidence, in
logarithms of odds. What part of all pairs are twins is one number for the whole network, which the pairs tell as well
(`_chance`). In the next round a node is compared with the mean of another and its twins, without the node itself.

A node moves towards the mean of its twins, in inverse proportion to what the posterior of its own tables leaves
open. How far is again a question for the data, answered by Stein's estimate (`stein`): one step for the network, one
standard error less than the best. Rows with fewer records than the noise's deviation move like the others but have no
say in it: nothing can be told from them, and there the noise's tails, which are longer than a normal law's, mislead.

Known limits: nodes that agree in all usual rows are taken for twins in the rare ones too, and one odd node among many
twins in a rare row is pulled along (docs/tried.md has figures).

Shapes are public; all else is a function of noisy tables. Time is quadratic in the nodes of one shape up to CHUNK
pairs of rows; longer lists are cut, in the order of the nodes, and time is linear from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.stein import Rows, account, per_repetition

Array = NDArray[np.float64]

TWINS = 0.005  # distance of a state from the centre if there are two; in proportion to 1/sqrt(states)
STRANGERS = 0.2  # the same for nodes that are no twins
ROUNDS = 3
LOG_ODDS = np.arange(-6.0, 7.0)  # of a pair to be twins
DOUBT = 2.0  # prior weight against: pairs known not to be twins
PAIRS = 8_000  # of one shape that the chance is fitted to, at most
LEAST = 1e-3  # records of a row, in deviations of the noise
FLOOR = 0.1  # part of a node's own probability that the mean of its twins keeps where noise makes it less
CHUNK = 1_000_000  # rows times pairs compared at once


def shared(cpts: Mapping[str, Rows]) -> dict[str, Array]:
    """The CPTs of all nodes, as measured and changed, each moved towards its twins as far as the data want it."""
    result = {node: rows.probabilities for node, rows in cpts.items()}
    classes = list(_classes(cpts))
    if not classes:
        return result
    moves = {node: np.empty_like(result[node]) for nodes in classes for node in nodes}
    repetitions = len(next(iter(moves.values())))
    width = max(1, CHUNK // max(_work(len(nodes), cpts[nodes[0]].probabilities.shape[1:]) for nodes in classes))
    for first in range(0, repetitions, width):
        some = slice(first, first + width)
        alike = [_Alike([cpts[node] for node in nodes], some) for nodes in classes]
        for nodes, means in zip(classes, _targets(alike), strict=True):
            for index, node in enumerate(nodes):
                moves[node][some] = means[:, index].reshape(moves[node][some].shape) - result[node][some]
    gain, size = np.zeros(repetitions // 2), np.zeros(repetitions // 2)
    for node, move in moves.items():
        rows = cpts[node]
        told = np.square(rows.records[: repetitions // 2]) >= rows.variance
        more_gain, more_size = account(rows, move, told)
        gain, size = gain + more_gain, size + more_size
    step = np.tile(np.clip((gain - np.sqrt(size)) / np.maximum(size, 1e-9), 0.0, 1.0), 2)
    for node, move in moves.items():
        result[node] = result[node] + per_repetition(step, move.ndim) * move
    return result


def _work(nodes: int, shape: Sequence[int]) -> int:
    """Numbers held to compare so many CPTs of one shape."""
    return nodes * max(nodes, shape[-1]) * math.prod(shape[:-1])


def _classes(cpts: Mapping[str, Rows]) -> Iterator[list[str]]:
    """Nodes whose CPTs have one shape, at least two at a time and no more than can be compared at once.

    CPTs too large to compare two of them are left alone.
    """
    shapes: dict[tuple[int, ...], list[str]] = {}
    for node, rows in cpts.items():
        shapes.setdefault(rows.probabilities.shape[1:], []).append(node)
    for shape, nodes in shapes.items():
        most = min(math.isqrt(CHUNK // math.prod(shape[:-1])), CHUNK // math.prod(shape))
        if most < 2:
            continue
        parts = -(-len(nodes) // most)
        for part in range(parts):
            some = nodes[part * len(nodes) // parts : (part + 1) * len(nodes) // parts]
            if len(some) > 1:
                yield some


class _Alike:
    """Nodes with CPTs of one shape; arrays are repetition, node, row, state."""

    def __init__(self, cpts: Sequence[Rows], some: slice) -> None:
        self.states = cpts[0].probabilities.shape[-1]
        self.own = _stacked([rows.probabilities[some] for rows in cpts])
        least = [LEAST * math.sqrt(rows.variance) for rows in cpts]
        records = _stacked([np.maximum(r.records[some], n)[..., None] for r, n in zip(cpts, least, strict=True)])
        self.seen = _stacked([rows.seen[some] for rows in cpts]) / records
        self.left_open = _stacked([rows.doubt[some] for rows in cpts]) / np.square(records)
        variances = np.array([rows.variance for rows in cpts])
        self.error = variances[:, None] / np.square(records[..., 0])
        self.apart = 2.0 * STRANGERS**2 * 2.0 / self.states
        self.near = TWINS**2 * 2.0 / self.states
        self.known = 1.0 / (self.error + self.near)

    def evidence(self, twins: Array) -> Array:
        """At i, j: the log-odds that node i is a twin of j, whose group holds a part `twins[j, l]` of each l.

        The mean of j's group without i is (X - r x)/(W - r) per row, with W and X the sums of what is known of its
        members and of that times x, and r the part of it that is i's.
        """
        weight, total = self._sums(twins)
        seen, known = np.swapaxes(self.seen, 1, 2), np.swapaxes(self.known, 1, 2)  # repetition, row, node
        total, weight = np.swapaxes(total, 1, 2), np.swapaxes(weight, 1, 2)
        mine = np.swapaxes(twins, 1, 2)[:, None] * known[..., None]  # repetition, row, i, j
        rest = np.maximum(weight[:, :, None] - mine, 1e-12 * weight[:, :, None])
        cross = seen @ np.swapaxes(total, 2, 3)
        square = np.square(seen).sum(axis=-1)[..., None]
        of_rest = np.square(total).sum(axis=-1)[:, :, None] - 2.0 * mine * cross + np.square(mine) * square
        distance = np.maximum(square - 2.0 * (cross - mine * square) / rest + of_rest / np.square(rest), 0.0)
        spread = np.swapaxes(self.error, 1, 2)[..., None] + 1.0 / rest + self.near
        free = self.states - 1
        against = 0.5 * free / self.states * distance * (1.0 / spread - 1.0 / (spread + self.apart))
        result = (0.5 * free * np.log1p(self.apart / spread) - against).sum(axis=1)
        result[:, _diagonal(result), _diagonal(result)] = 0.0
        return np.asarray(result)

    def moved(self, twins: Array) -> Array:
        """Each node's estimate between its own and the mean of its twins."""
        weight, total = self._sums(twins)
        weight = np.maximum(weight, 1e-300)
        mean = np.maximum(total / weight[..., None], FLOOR * self.own)
        mean = mean / mean.sum(axis=-1, keepdims=True)
        sure = 1.0 / (self.near + 1.0 / weight)[..., None]
        any_twin = 1.0 - np.exp(np.log1p(-np.minimum(twins, 1.0 - 1e-12)).sum(axis=2))
        part = any_twin[..., None, None] * sure / (sure + 1.0 / np.maximum(self.left_open, 1e-12))
        result = self.own + part * (mean - self.own)
        return np.asarray(result / result.sum(axis=-1, keepdims=True))

    def _sums(self, twins: Array) -> tuple[Array, Array]:
        repetitions, nodes = twins.shape[:2]
        weighted = (self.known[..., None] * self.seen).reshape(repetitions, nodes, -1)
        return twins @ self.known, (twins @ weighted).reshape(self.seen.shape)


def _stacked(parts: Sequence[Array]) -> Array:
    return np.stack([part.reshape(len(part), -1, part.shape[-1]) for part in parts], axis=1)


def _targets(alike: Sequence[_Alike]) -> list[Array]:
    twins = [np.tile(np.eye(group.own.shape[1]), (len(group.own), 1, 1)) for group in alike]
    for _ in range(ROUNDS):
        evidence = [group.evidence(some) for group, some in zip(alike, twins, strict=True)]
        log_odds = _chance(evidence)[:, None, None]
        twins = [_logistic(some + log_odds) for some in evidence]
        for some in twins:
            some[:, _diagonal(some), _diagonal(some)] = 1.0
    for some in twins:
        some[:, _diagonal(some), _diagonal(some)] = 0.0
    return [group.moved(some) for group, some in zip(alike, twins, strict=True)]


def _chance(evidence: Sequence[Array]) -> Array:
    """Log-odds that a pair are twins, per repetition: mean under the pairs' likelihood, m - 1 of them for m nodes."""
    pairs, weights = [], []
    for some in evidence:
        nodes = some.shape[1]
        apart = some[:, ~np.eye(nodes, dtype=bool)]
        pairs.append(apart[:, :: -(-apart.shape[1] // PAIRS)])
        weights.append(np.full(pairs[-1].shape[1], (nodes - 1) / pairs[-1].shape[1]))
    every, weight = np.concatenate(pairs, axis=1), np.concatenate(weights)
    likely = np.stack([np.logaddexp(0.0, every + log_odds) @ weight for log_odds in LOG_ODDS], axis=1)
    likely -= (weight.sum() + DOUBT) * np.logaddexp(0.0, LOG_ODDS)
    likely = np.exp(likely - likely.max(axis=1, keepdims=True))
    return np.asarray((likely @ LOG_ODDS) / likely.sum(axis=1))


def _diagonal(pairs: Array) -> NDArray[np.intp]:
    return np.arange(pairs.shape[-1])


def _logistic(log_odds: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(-log_odds, -500.0, 500.0))))
