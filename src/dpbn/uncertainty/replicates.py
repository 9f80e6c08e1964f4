"""Plausible truths, and what the learner would make of each: a parametric bootstrap over truth, sampling and noise.

Nobody knows the true network, but a release tells how well it knows each row of its CPTs: as well as k records without
noise would. So a replicate begins with a truth of its own, every row from Dirichlet(k p + m q): p is the released row,
m its number of states, and q a distribution drawn anew, any as likely as any other: by turns one for all rows of the
node, or one for all rows with the same state of one of its parents. A known row stays close to p. Rows that noise hides
may be far from p in the same direction: p is smoother than the truth, in its margin and in what a parent does to it,
and does not tell. A state that no record had may be true of one in as many.

From that truth rows are drawn, the tables that were measured are counted, noise of the published laws is added, and
the learner's estimate is made again. `total` holds these networks, `sampled` what the same rows give without noise:
total - truth is an error as the learner makes it, total - sampled its part by privacy noise, sampled - truth its part
by sampling. Only published values go in: post-processing, no budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.procedure1 import normalised_rows
from dpbn.learners.refinement import CHEAP_CELLS, ModelMargins
from dpbn.margins import Names
from dpbn.measurement import estimated_rows
from dpbn.network import BayesianNetwork, Structure
from dpbn.support import Support, supports
from dpbn.uncertainty.reestimate import estimator_of
from dpbn.uncertainty.simulate import simulated, simulated_noise

if TYPE_CHECKING:
    from dpbn.release import Release

Array = NDArray[np.float64]
Cpts = Mapping[str, Array]  # by node, with the replicate as the first axis
MOST_ROWS = 20_000  # more rows are not drawn: their counts are scaled up, and the deviations by the square root
LEAST_ROWS = 1e-3  # of a noisy count, which may be negative


@dataclass(frozen=True)
class Replicates:
    """CPTs of networks, by node, with the replicate as the first axis."""

    truth: Cpts
    total: Cpts
    sampled: Cpts


def replicate(release: Release, truth: Cpts, seed: int = 0) -> Replicates:
    """What the learner would make of tables like those of `release`, if each network of `truth` were true."""
    structure = release.structure
    estimate = estimator_of(release)
    measured = [m.names for m in release.measurements]
    families = [structure.family(node).names for node in structure.nodes]
    moved, counts = _counted(structure, truth, [*measured, *families], estimated_rows(release.measurements), seed)
    truth = {node: cpts if node in release.public_nodes else moved[node] for node, cpts in truth.items()}
    estimated = estimate(simulated_noise(counts[: len(measured)], release.measurements, seed))
    total, sampled = {}, {}
    for node, table in zip(structure.nodes, counts[len(measured) :], strict=True):
        public = node in release.public_nodes
        total[node] = truth[node] if public else estimated[node]
        sampled[node] = truth[node] if public else _frequencies(table, truth[node])
    return Replicates(truth, total, sampled)


def as_released(release: Release, count: int) -> dict[str, Array]:
    """The released network, so many times."""
    return {node: np.broadcast_to(cpt, (count, *cpt.shape)) for node, cpt in release.network.cpts.items()}


def plausible_truths(release: Release, count: int, seed: int = 0) -> dict[str, Array]:
    """So many networks that may be true, as far as the release tells."""
    truth, generator = as_released(release, count), np.random.default_rng([seed, 1])  # not the stream of the noise
    for node, support in supports(release.structure, release.measurements, release.public_nodes).items():
        cpt = release.network.cpt(node)
        states = cpt.shape[-1]
        said = np.broadcast_to(release.prior.get(node, 0.0), cpt.shape).sum(axis=-1)
        known = _known_records(support, states) + said
        leaning = _leanings(cpt.shape, count, generator)
        truth[node] = normalised_rows(generator.standard_gamma(known[..., None] * cpt + states * leaning))
    return truth


def _leanings(shape: tuple[int, ...], count: int, generator: np.random.Generator) -> Array:
    """q of every row, so many times: the same along all axes of parents but one, or along all."""
    *sizes, states = shape
    axes, leanings = generator.integers(len(sizes) + 1, size=count), np.empty((count, *shape))
    for axis in range(len(sizes) + 1):
        chosen = axes == axis
        apart = [size if place == axis else 1 for place, size in enumerate(sizes)]
        leanings[chosen] = generator.dirichlet(np.ones(states), (int(chosen.sum()), *apart))
    return leanings


def _known_records(support: Support, states: int) -> Array:
    """k: so many records without noise tell as much of a row.

    A cell of a row of n records has noise of variance v: p(1-p)/n + v/n^2 is p(1-p)/k, added up over an even row. Of
    rows that no table tells apart nothing is known but what they are together.
    """
    rows = np.maximum(0.0 * support.counts if support.left_out else support.counts, LEAST_ROWS)
    noise = states * support.cell_deviation**2 / max(1 - 1 / states, 0.5)
    return np.asarray(rows * rows / (rows + noise))


def _counted(
    structure: Structure, truth: Cpts, tables: Sequence[Names], rows: float, seed: int
) -> tuple[Cpts, list[NDArray[np.int64]]]:
    """Counts over each table (replicate first) of so many rows of every truth; the truths, which may have to move."""
    drawn = MOST_ROWS if rows > 1.5 * MOST_ROWS else max(1, round(rows))
    each = []
    for index in range(len(next(iter(truth.values())))):
        network = BayesianNetwork(structure, {node: cpts[index] for node, cpts in truth.items()})
        each.append(simulated(network, drawn, seed * 7919 + index + 1).counts(tables))
    counts = [np.stack([counted[names] for counted in each]) for names in tables]
    if rows <= 1.5 * MOST_ROWS:
        return truth, counts
    factor, margins = rows / drawn, ModelMargins(structure, tables)
    if margins.largest <= CHEAP_CELLS:
        means = [drawn * margin for margin in margins(truth)]
        pairs = zip(means, counts, strict=True)
        scaled = [mean * factor + (table - mean) * math.sqrt(factor) for mean, table in pairs]
    else:  # what the tables expect cannot be told: so the truths move towards what was drawn, in their stead
        scaled = [np.asarray(table * factor) for table in counts]
        families = zip(structure.nodes, counts[-len(structure.nodes) :], strict=True)
        found = {node: _frequencies(table, truth[node]) for node, table in families}
        truth = {node: found[node] + (cpts - found[node]) / math.sqrt(factor) for node, cpts in truth.items()}
    return truth, [np.rint(table).astype(np.int64) for table in scaled]


def _frequencies(table: NDArray[np.int64], otherwise: Array) -> Array:
    """Relative frequencies; rows not drawn have other probabilities."""
    counts = table.astype(np.float64)
    seen = counts.sum(axis=-1, keepdims=True) > 0
    return np.where(seen, normalised_rows(counts), otherwise)
