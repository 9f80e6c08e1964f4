"""All tables at once: all CPTs together move towards the network that the tables agree on.

So far each CPT comes from the one table that its family is read from. But a network predicts every other table too, and
small errors of many CPTs add up along the graph: far down, a margin can be off by more than the tables that hold it
allow. Let y be the noisy tables (variance v per cell), mu what the network expects of them, J how mu follows the logits
x of all CPTs, and K how well each of these is known already. A step is one of Gauss and Newton, damped by K,

    (J' W J + K) dx = J' W (y - mu) + K (p' - p),    W = 1 / (SAMPLED mu + v),

by a few conjugate gradients; p are the CPTs, and p' what is known of them. J is never written down: J dx is the
difference of mu with the CPTs moved to and fro, and J' u that of the derivatives by the CPTs with the tables' cells
weighted to and fro.

K is a probability times the records that this probability is worth. What a row is known by depends on the node
(`evenness`):

- Sharp rows keep near what shrinkage made of them, which knows better than any normal law which cells are empty: p' is
  the CPT before the first step. A cell of m expected counts that shrinkage left with variance d is worth n m / d
  records: m^2/d is how well a logarithm is known whose exponential has mean m and variance d. KNOWN more hold each,
  and SETTLED of what its own counts tell as far as these vary as a sample rather than by noise. And since shrinkage has
  heard the row's own counts already, HEARD of their pull is taken back.
- Even rows were shrunk cell by cell, each table for itself. They let go of that, and follow all tables from a prior of
  few records about the node's margin, or about the uniform row where noise hides the margin. Only as far as a row's
  counts vary by noise rather than as a sample: all tables have one sample, which the family's counts tell best. And
  where the custodian gives a row pseudo-counts, only by the part of the prior in both: who gives them knows the row.

Pseudo-counts hold every row, and SAID of their pull is towards what they say.

A table that the network contradicts by more than noise explains has no say, and nothing of its pull is taken back.
Noise common to tables drawn together is taken as independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.evenness import Evenness
from dpbn.learners.refinement import ModelMargins, contradicts
from dpbn.learners.stein import Rows, per_repetition

Array = NDArray[np.float64]
Cpts = Mapping[str, Array]

SAMPLED = 0.1  # of the variance that counts have as a sample: most of it is common to all tables, and no contradiction
KNOWN = 10.0  # records that every probability of a sharp row is worth beside what shrinkage knows of it
SETTLED = 0.3  # of what a sharp row's own counts tell, if they vary as a sample alone
HEARD = 0.5  # of the pull of a sharp row's own counts, which shrinkage has heard
SAID = 0.25  # of the pull of the custodian's pseudo-counts: the refinement adds them in steps of its own
ROUNDS = 2  # of Gauss and Newton
STEPS = 4  # of conjugate gradients in each
NUDGE = 1e-3  # how far to and fro: at most so much in all factors together
FURTHEST = 1.5  # up, of a logit in one round
SMALLEST = 1e-3  # probability in K: else what is next to impossible would be next to unknown
LEAST_DOUBT = 1e-6  # variance of a count: a spike may leave next to nothing
TINY = 1e-300


def agreed(
    margins: ModelMargins,
    noisy: Sequence[Array],
    variances: Sequence[float],
    rows: Mapping[str, Rows],
    cpts: Cpts,
    said: Cpts,
    even: Mapping[str, Evenness],
    homes: Mapping[str, int],
    total: Array,
    measured: int,
) -> dict[str, Array]:
    """The CPTs of `rows` after all steps. `said` are the custodian's pseudo-counts of every cell, `homes` the tables
    that the CPTs were read from.

    All arrays else have a leading axis: so many repetitions as measured, and the same changed (`stein`).
    """
    known = {node: _Known.of(row, cpts[node], said[node], even[node]) for node, row in rows.items()}
    for _ in range(ROUNDS):
        cpts = {**cpts, **_step(margins, noisy, variances, known, cpts, homes, total, measured)}
    return {node: cpts[node] for node in rows}


def _step(
    margins: ModelMargins,
    noisy: Sequence[Array],
    variances: Sequence[float],
    known: Mapping[str, _Known],
    cpts: Cpts,
    homes: Mapping[str, int],
    total: Array,
    measured: int,
) -> dict[str, Array]:
    expected = [per_repetition(total, table.ndim) * table for table in margins(cpts)]
    weights, alone = [], []
    for mu, y, v in zip(expected, noisy, variances, strict=True):
        alone.append(np.resize(contradicts(mu, y, v)[:measured], len(mu)))
        weights.append(np.where(per_repetition(alone[-1], mu.ndim), 0.0, 1.0 / (SAMPLED * mu + v)))
    damping = {node: its.records * np.maximum(cpts[node], SMALLEST) for node, its in known.items()}
    tangent = _Tangent(margins, cpts, tuple(known), total)

    def information(change: Cpts) -> dict[str, Array]:
        seen = tangent.back([w * u for w, u in zip(weights, tangent.forward(change), strict=True)])
        return {node: seen[node] + damping[node] * dx for node, dx in change.items()}

    wanted = tangent.back([w * (y - mu) for w, y, mu in zip(weights, noisy, expected, strict=True)])
    wanted = {node: wanted[node] + its.pull(cpts[node], ~alone[homes[node]]) for node, its in known.items()}
    rough = {
        node: damping[node] + its.told * np.square(np.maximum(cpts[node], SMALLEST)) for node, its in known.items()
    }
    return {node: _moved(cpts[node], change) for node, change in _solved(information, wanted, rough).items()}


def _moved(cpt: Array, change: Array) -> Array:
    """Up by the exponential of a logit's change, down as the mean of a Gamma variable follows a pull: never far."""
    moved = cpt * np.exp(np.clip(change, 0.0, FURTHEST)) / (1.0 + np.maximum(-change, 0.0))
    return np.asarray(moved / moved.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class _Known:
    """What is known of a CPT beside the tables; arrays broadcast against it."""

    start: Array  # the CPT before the first step
    held: Array  # records that each of its probabilities is worth
    even: Array  # records that the prior of even rows is worth
    visible: Array
    counts: Array  # records of every row
    told: Array  # n^2 / v, which the node's own table tells of the probabilities of a row
    heard: Array  # the part of its pull that is known already
    said: Array  # pseudo-counts by the custodian

    @classmethod
    def of(cls, row: Rows, start: Array, said: Array, even: Evenness) -> _Known:
        counts, states = row.records[..., None], start.shape[-1]
        part, prior, visible = (per_repetition(of, start.ndim) for of in (even.part, even.records, even.visible))
        stated = said.sum(axis=-1, keepdims=True)
        noisy = row.variance / (row.variance + counts / states)
        part = part * noisy * prior / (prior + stated)
        told, expected = np.square(counts) / row.variance, counts * start
        sharp = np.square(counts) * np.maximum(start, SMALLEST) / np.maximum(row.doubt, LEAST_DOUBT)
        sharp = sharp + SETTLED * (1.0 - noisy) * told / states + KNOWN
        pull = expected * (row.seen - expected) / (SAMPLED * expected + row.variance)
        heard = (1.0 - part) * HEARD * (pull - start * pull.sum(axis=-1, keepdims=True))
        return cls(start, (1.0 - part) * sharp + stated, part * prior, visible, counts, told, heard, said)

    @property
    def records(self) -> Array:
        return self.held + self.even

    def pull(self, cpt: Array, has_say: NDArray[np.bool_]) -> Array:
        """K (p' - p), less what is heard and with what is said where the table of the row pulls at all."""
        states = cpt.shape[-1]
        margin = (self.counts * cpt).reshape(len(cpt), -1, states).sum(axis=1)
        centre = (margin / margin.sum(axis=-1, keepdims=True)).reshape(len(cpt), *[1] * (cpt.ndim - 2), states)
        centre = self.visible * centre + (1.0 - self.visible) / states
        said = SAID * (self.said - self.said.sum(axis=-1, keepdims=True) * cpt)
        own = per_repetition(has_say, cpt.ndim) * (said - self.heard)
        return np.asarray(self.held * (self.start - cpt) + self.even * (centre - cpt) + own)


@dataclass(frozen=True)
class _Tangent:
    """The network near its CPTs: how tables follow the logits of `nodes`, and back; exact to about NUDGE squared."""

    margins: ModelMargins
    cpts: Cpts
    nodes: tuple[str, ...]
    total: Array

    def forward(self, change: Cpts) -> list[Array]:
        """J dx."""
        size = _nudge(change.values())
        moved = {node: self._twice(node) * np.exp(_to_and_fro(size, dx)) for node, dx in change.items()}
        moved = {node: cpt / cpt.sum(axis=-1, keepdims=True) for node, cpt in moved.items()}
        both = {node: moved[node] if node in moved else self._twice(node) for node in self.cpts}
        return [self._slope(table, size) for table in self.margins(both)]

    def back(self, cells: Sequence[Array]) -> dict[str, Array]:
        """J' u."""
        size = _nudge(cells)
        weighted = [1.0 + _to_and_fro(size, u) for u in cells]
        slopes = self.margins.by_cpts({node: self._twice(node) for node in self.cpts}, weighted)
        result = {}
        for node in self.nodes:
            slope = self._slope(slopes[node], size)
            result[node] = self.cpts[node] * (slope - (self.cpts[node] * slope).sum(axis=-1, keepdims=True))
        return result

    def _twice(self, node: str) -> Array:
        return np.concatenate([self.cpts[node], self.cpts[node]])

    def _slope(self, both: Array, size: Array) -> Array:
        to, fro = both[: len(size)], both[len(size) :]
        return per_repetition(self.total / (2.0 * size), to.ndim) * (to - fro)


def _nudge(arrays: Iterable[Array]) -> Array:
    """Per repetition, what makes the largest cells of all arrays add up to NUDGE at most."""
    largest = sum(np.abs(array).reshape(len(array), -1).max(axis=1) for array in arrays)
    return np.asarray(NUDGE / np.maximum(largest, TINY))


def _to_and_fro(size: Array, array: Array) -> Array:
    by = per_repetition(size, array.ndim) * array
    return np.concatenate([by, -by])


def _solved(information: Callable[[Cpts], dict[str, Array]], wanted: dict[str, Array], rough: Cpts) -> dict[str, Array]:
    """x with information(x) = wanted, by conjugate gradients preconditioned by `rough`, each repetition by itself."""

    def inner(a: Cpts, b: Cpts) -> Array:
        return np.asarray(sum((a[node] * b[node]).reshape(len(a[node]), -1).sum(axis=1) for node in a))

    def plus(a: Cpts, times: Array, b: Cpts) -> dict[str, Array]:
        return {node: a[node] + per_repetition(times, b[node].ndim) * b[node] for node in a}

    found = {node: np.zeros_like(array) for node, array in wanted.items()}
    left = wanted
    towards = direction = {node: array / rough[node] for node, array in left.items()}
    size = inner(left, towards)
    for _ in range(STEPS):
        seen = information(direction)
        length = size / np.maximum(inner(direction, seen), TINY)
        found, left = plus(found, length, direction), plus(left, -length, seen)
        towards = {node: array / rough[node] for node, array in left.items()}
        before, size = size, inner(left, towards)
        direction = plus(towards, size / np.maximum(before, TINY), direction)
    return found
