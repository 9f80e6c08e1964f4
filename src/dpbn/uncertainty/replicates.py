"""Plausible networks around a release: a parametric bootstrap over sampling and over the noise.

Each replicate draws rows from the released network, counts the tables that were measured, adds noise of the
published laws, and estimates again as the learner did. `total` holds these networks; `sampled` holds what the
same rows give without noise, so that total - sampled is the privacy noise and sampled - released the sampling.
Only published values go in: post-processing, no budget.

A state that no record had, with next to no noise on it, is as good as impossible in the released network and would
never be drawn, though it may well be true of one record in as many. So, where noise is small, rows are drawn from a
network with half a record more behind every cell (Jeffreys).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.inference import Inference
from dpbn.learners.procedure1 import normalised_rows
from dpbn.measurement import estimated_rows
from dpbn.network import BayesianNetwork
from dpbn.support import supports
from dpbn.uncertainty.reestimate import estimator_of
from dpbn.uncertainty.simulate import simulated, simulated_noise

if TYPE_CHECKING:
    from dpbn.release import Release

Array = NDArray[np.float64]
HALF = 0.5
NEGLIGIBLE = 2e-3  # of that: noise of more than twenty records says more
MOST_ROWS = 20_000  # more rows are not drawn: their counts are scaled up, and the deviations by the square root


@dataclass(frozen=True)
class Replicates:
    """CPTs of plausible networks, by node, with the replicate as the first axis."""

    total: Mapping[str, Array]
    sampled: Mapping[str, Array]


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
    rows, network = estimated_rows(release.measurements), _smoothed(release)
    scale_up = rows > 1.5 * MOST_ROWS
    drawn = MOST_ROWS if scale_up else max(1, round(rows))
    each = [simulated(network, drawn, seed * 7919 + index).counts(tables) for index in range(count)]
    stacked = [np.stack([counted[names] for counted in each]) for names in tables]
    if not scale_up:
        return stacked
    factor, ask = rows / drawn, Inference(network)
    scaled = []
    for names, table in zip(tables, stacked, strict=True):
        mean = drawn * (ask.query(names).values if names else np.ones(()))
        wanted = mean * factor + (table - mean) * np.sqrt(factor)
        scaled.append(np.rint(wanted).astype(np.int64))
    return scaled


def _smoothed(release: Release) -> BayesianNetwork:
    """The released network with up to half a record more in every cell, the less the more noise a cell has."""
    structure, cpts = release.structure, dict(release.network.cpts)
    for node, support in supports(structure, release.measurements).items():
        share = 1.0 / (1.0 + support.cell_deviation**2)
        if node not in release.public_nodes and share > NEGLIGIBLE:
            cpt = release.network.cpt(node)
            said = np.broadcast_to(release.prior.get(node, 0.0), cpt.shape).sum(axis=-1)
            rows = np.maximum(support.counts, 0.0) + said + (1.0 - share) * HALF * cpt.shape[-1]  # a row without any
            cpts[node] = (rows[..., None] * cpt + share * HALF) / (rows[..., None] + share * HALF * cpt.shape[-1])
    return BayesianNetwork(structure, cpts)


def _frequencies(table: NDArray[np.int64], released: Array) -> Array:
    """Relative frequencies; rows not drawn keep the released probabilities."""
    counts = table.astype(np.float64)
    seen = counts.sum(axis=-1, keepdims=True) > 0
    return np.where(seen, normalised_rows(counts), released)
