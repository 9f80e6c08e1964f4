"""Plausible networks around a release: a parametric bootstrap over sampling and over the noise.

Each replicate draws rows from the released network, counts the tables that were measured, adds noise of the
published laws, and estimates again as the learner did. `total` holds these networks; `sampled` holds what the
same rows give without noise, so that total - sampled is the privacy noise and sampled - released the sampling.
Only published values go in: post-processing, no budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.inference import Inference
from dpbn.learners.procedure1 import normalised_rows
from dpbn.uncertainty.reestimate import estimator_of
from dpbn.uncertainty.simulate import estimated_rows, simulated_counts, simulated_noise

if TYPE_CHECKING:
    from dpbn.release import Release

Array = NDArray[np.float64]
MOST_ROWS = 20_000  # more rows are not drawn: their counts are scaled up, and the deviations by the square root


@dataclass(frozen=True)
class Replicates:
    """CPTs of plausible networks, by node, with the replicate as the first axis."""

    total: Mapping[str, Array]
    sampled: Mapping[str, Array]

    @property
    def count(self) -> int:
        return len(next(iter(self.total.values())))


def replicate(release: Release, count: int = 100, seed: int = 0) -> Replicates:
    """`count` plausible networks around `release`."""
    structure = release.structure
    estimate = estimator_of(release)
    measured = [m.names for m in release.measurements]
    families = [structure.family(node).names for node in structure.nodes]
    counts = _scaled_counts(release, [*measured, *families], count, seed)
    noisy = simulated_noise(counts[: len(measured)], release.measurements, seed)
    estimated = estimate(noisy)
    total, sampled = {}, {}
    for node, table in zip(structure.nodes, counts[len(measured) :], strict=True):
        released = np.broadcast_to(release.network.cpt(node), table.shape)
        public = node in release.public_nodes
        total[node] = released if public else estimated[node]
        sampled[node] = released if public else _frequencies(table, released)
    return Replicates(total, sampled)


def _scaled_counts(
    release: Release, tables: Sequence[tuple[str, ...]], count: int, seed: int
) -> list[NDArray[np.int64]]:
    """Counts over each table (replicate first) of the estimated number of rows."""
    rows = estimated_rows(release.measurements)
    drawn = max(1, min(round(rows), MOST_ROWS))
    each = [simulated_counts(release.network, drawn, tables, seed * 7919 + index) for index in range(count)]
    stacked = [np.stack([replicate[i] for replicate in each]) for i in range(len(tables))]
    factor = rows / drawn
    if factor <= 1.5:
        return stacked
    ask = Inference(release.network)
    scaled = []
    for names, table in zip(tables, stacked, strict=True):
        mean = drawn * (ask.query(names).values if names else np.ones(()))
        wanted = mean * factor + (table - mean) * np.sqrt(factor)
        scaled.append(np.maximum(np.rint(wanted), 0).astype(np.int64))
    return scaled


def _frequencies(table: NDArray[np.int64], released: Array) -> Array:
    """Relative frequencies; rows not drawn keep the released probabilities."""
    counts = table.astype(np.float64)
    seen = counts.sum(axis=-1, keepdims=True) > 0
    return np.where(seen, normalised_rows(counts), released)
