"""From noisy tables to CPTs: consistent, non-negative, shrunk where the noise drowns the counts.

1. Least squares over all tables (`consistency`), which never looks at signs.
2. A posterior mean per cell (`shrinkage`), its prior fitted per table, under the constraint that the tables
   still agree: multipliers for every shared set, found by Newton steps.
3. What stands out: where the constrained estimate contradicts the least-squares estimate in the total or a
   margin of one variable by more than noise explains, the difference is given back (positive-part James-Stein per
   analysis-of-variance component). Least squares is unbiased, the posterior mean efficient if its prior is right;
   so a margin's difference is expected to vary by the variance of the first minus that of the second (Hausman's
   test). Sharper than the first alone, which serves for the total.
4. CPTs by normalising each family's margin, plus pseudo-counts: the fitted prior's, and those the caller gives.
5. A few steps towards the network that explains all tables (`refinement`), then all CPTs at once (`agreement`), those
   with even rows from a prior that all tables tell (`evenness`), and both once more; where inference is cheap enough.
6. Nodes that share a CPT (`twins`), then rows of a CPT that resemble each other (`resemblance`), borrow from each
   other, as far as the data want it (`stein`) and the caller's pseudo-counts leave room.

Everything is a function of the measured values, their variances and public facts, and works on a batch of
repetitions at once (leading axis), which is what the bootstrap of intervals needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.learners.agreement import agreed
from dpbn.learners.coarse import as_told, narrowed, widened
from dpbn.learners.consistency import Overlap, least_squares, member, overlaps, precisions
from dpbn.learners.evenness import evenness
from dpbn.learners.refinement import (
    CHEAP_CELLS,
    STEPS,
    ModelMargins,
    contradicts,
    expected_counts,
    model_margins,
    over_states,
    resolution,
)
from dpbn.learners.resemblance import blended
from dpbn.learners.shrinkage import Posterior, Prior, fitted_prior
from dpbn.learners.stein import Rows, per_repetition, probed
from dpbn.learners.strategy import holders_of, holding, in_order
from dpbn.learners.twins import shared
from dpbn.margins import Names
from dpbn.measurement import Measurement, Moments
from dpbn.network import Structure

Array = NDArray[np.float64]

SWEEPS = 12  # of Newton steps over all shared margins
FURTHEST = 4.0  # deviations that one visit of a shared margin may move a cell by
STANDS_OUT = 2.0  # deviations of a chi-square by which a component must exceed its noise
MARGIN_STANDS_OUT = 3.0  # the same for a margin of one variable, whose noise is the difference of two variances
LEAST_NOISE = 0.1  # of that difference, as a part of the least-squares variance
TURNS = 2  # of refinement and agreement
PSEUDO_COUNT = 0.5  # per cell, in units of the fitted prior's weight
FLOOR = 0.1  # part of the shrunk estimate kept where giving back would leave less
SMALLEST_VARIANCE = 1e-4  # of the noise on a cell: its inverse is a weight


@dataclass(frozen=True)
class Layout:
    """The public side of an estimate: tables in schema order, their cells, what they share."""

    tables: tuple[Names, ...]
    cells: tuple[int, ...]
    shared: tuple[Overlap, ...]


@dataclass(frozen=True)
class Start:
    """What the tables say before the graph is heard; everything has a leading batch axis."""

    linear: list[Array]  # least squares
    shrunk: list[Array]  # positive
    corrected: list[Array]  # what stands out given back
    spreads: list[Array]  # what the posterior leaves open of each cell of `shrunk`: its variance
    priors: list[Prior]  # fitted, one per table
    total: Array  # number of records


@lru_cache(maxsize=32)
def layout(schema: Schema, tables: tuple[Names, ...]) -> Layout:
    ordered = tuple(in_order(schema, names) for names in tables)
    return Layout(ordered, tuple(schema.cells(names) for names in ordered), overlaps(schema, ordered))


def estimate(
    structure: Structure,
    measurements: Sequence[Measurement],
    *,
    prior: Mapping[str, Array],
    public_cpts: Mapping[str, Array],
) -> dict[str, Array]:
    """One CPT per node from the measurements of a release."""
    tables = [measurement.names for measurement in measurements]
    values = [measurement.values[None].astype(np.float64) for measurement in measurements]
    noises = [measurement.moments for measurement in measurements]
    batch = estimate_batch(structure, tables, values, noises, prior=prior, public_cpts=public_cpts)
    return {node: cpt[0] for node, cpt in batch.items()}


def estimate_batch(
    structure: Structure,
    tables: Sequence[Names],
    values: Sequence[Array],
    noises: Sequence[Moments],
    *,
    prior: Mapping[str, Array],
    public_cpts: Mapping[str, Array],
) -> dict[str, Array]:
    """CPTs with a leading batch axis, from tables (axes as named) with a leading batch axis."""
    repetitions = values[0].shape[0] if values else 1
    wanted = [node for node in structure.nodes if node not in public_cpts]
    if not wanted:
        return {node: np.broadcast_to(cpt, (repetitions, *np.shape(cpt))) for node, cpt in public_cpts.items()}
    whole, structure = structure, as_told(structure, tables, wanted)
    prior = narrowed(whole, structure, prior)
    plan = layout(structure.schema, tuple(tuple(names) for names in tables))
    noisy = [_transposed(array, names, into) for array, names, into in zip(values, tables, plan.tables, strict=True)]
    noise = [some.at_least(SMALLEST_VARIANCE) for some in noises]
    noisy = probed(noisy, noise, plan.tables)
    start = consistent_counts(structure.schema, plan, noisy, noise)
    holders = holders_of(dict(enumerate(plan.tables)))
    reading = _Reading(structure, plan, noise, family_homes(structure, plan, noise), holders, start, prior)
    cpts = {node: np.broadcast_to(cpt, (len(start.total), *np.shape(cpt))) for node, cpt in public_cpts.items()}
    families = {}
    for node in wanted:
        families[node] = np.maximum(reading.family(start.corrected, node), FLOOR * reading.family(start.shrunk, node))
        cpts[node] = reading.smoothed(node, families[node], start.shrunk)
    margins = model_margins(structure, plan.tables)
    cheap = margins.largest <= CHEAP_CELLS
    for _ in range(TURNS if cheap else 0):
        families, cpts = _refined(reading, margins, families, cpts, repetitions)
        cpts |= _agreed(reading, margins, noisy, _rows(reading, families, cpts), cpts, repetitions)
    cpts |= _borrowed(reading, _rows(reading, families, cpts))
    return widened(whole, structure, {node: cpts[node][:repetitions] for node in structure.nodes})


@dataclass(frozen=True)
class _Reading:
    """Where families are read, and how CPTs are made of them."""

    structure: Structure
    plan: Layout
    noise: Sequence[Moments]
    homes: Mapping[str, int]
    holders: Mapping[str, set[int]]  # the tables of every variable
    start: Start
    prior: Mapping[str, Array]

    def family(self, tables: Sequence[Array], node: str) -> Array:
        """A node's family, read from its home."""
        home, names = self.homes[node], self.structure.family(node).names
        return family_margin(self.structure.schema, self.plan, home, tables[home], names)

    def margin(self, node: str) -> tuple[Array, float]:
        """A node's counts by least squares, and the noise of the table that knows them best."""
        schema, tables = self.structure.schema, self.plan.tables
        noise = {t: _on_margin(schema, self.plan, self.noise[t], t, (node,)) for t in self.holders[node]}
        best = min(noise, key=lambda t: (noise[t], t))
        return member(schema, tables, best, (node,)).margin(self.start.linear[best]), noise[best]

    def said(self, node: str) -> Array:
        """Pseudo-counts of every row by the custodian."""
        return np.asarray(np.broadcast_to(self.prior.get(node, 0.0), self.structure.shape(node)).sum(axis=-1))

    def smoothed(self, node: str, family: Array, expected: Sequence[Array]) -> Array:
        """Normalised, with pseudo-counts; `expected` holds what is expected in the tables."""
        home = self.homes[node]
        variance = self.noise[home].variance
        pseudo = PSEUDO_COUNT * self.start.priors[home].weight * variance / (1 + variance)
        spread = over_states(family, resolution(expected[home], variance))
        counts = family + per_repetition(pseudo, family.ndim) * spread + self.prior.get(node, 0.0)
        return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def _refined(
    reading: _Reading, margins: ModelMargins, families: dict[str, Array], cpts: dict[str, Array], measured: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Families and CPTs a few steps towards the network that explains all tables."""
    start, variances = reading.start, [noise.variance for noise in reading.noise]
    own = [np.maximum(c, FLOOR * shrunk) for c, shrunk in zip(start.corrected, start.shrunk, strict=True)]
    alone = [np.zeros(len(start.total), dtype=np.bool_) for _ in own]
    for _ in range(STEPS):
        counts = []
        expected = [per_repetition(start.total, table.ndim) * table for table in margins(cpts)]
        for index, table in enumerate(expected):
            found = contradicts(table, start.linear[index], variances[index])[:measured]
            alone[index] |= np.resize(found, alone[index].shape)  # the changed repetitions as those measured
            guess = expected_counts(table, start.linear[index], variances[index])
            counts.append(np.where(per_repetition(alone[index], table.ndim), own[index], guess))
        families = {node: reading.family(counts, node) for node in families}
        cpts = cpts | {node: reading.smoothed(node, family, expected) for node, family in families.items()}
    return families, cpts


def _agreed(
    reading: _Reading,
    margins: ModelMargins,
    noisy: Sequence[Array],
    rows: Mapping[str, Rows],
    cpts: Mapping[str, Array],
    measured: int,
) -> dict[str, Array]:
    """CPTs moved together towards all tables."""
    variances = [noise.variance for noise in reading.noise]
    said = {node: np.broadcast_to(reading.prior.get(node, 0.0), cpts[node].shape[1:]) for node in rows}
    even = evenness(rows, {node: reading.margin(node) for node in rows})
    return agreed(margins, noisy, variances, rows, cpts, said, even, reading.homes, reading.start.total, measured)


def _rows(reading: _Reading, families: Mapping[str, Array], cpts: Mapping[str, Array]) -> dict[str, Rows]:
    """What is known of every CPT that is not public."""
    start, rows = reading.start, {}
    for node, family in families.items():
        home, names = reading.homes[node], reading.structure.family(node).names
        variance = _on_margin(reading.structure.schema, reading.plan, reading.noise[home], home, names)
        doubt = reading.family(start.spreads, node)
        rows[node] = Rows(cpts[node], reading.family(start.linear, node), family.sum(axis=-1), variance, doubt)
    return rows


def _borrowed(reading: _Reading, rows: Mapping[str, Rows]) -> dict[str, Array]:
    """CPTs that borrow from each other and within, for the repetitions as measured."""
    similar = {node: replace(rows[node], probabilities=cpt) for node, cpt in shared(rows).items()}
    alike = blended({node: known for node, known in similar.items() if reading.structure.parents(node)})
    result = {}
    for node, known in similar.items():
        half = len(known.records) // 2
        own, cpt = rows[node].probabilities[:half], alike.get(node, known.probabilities[:half])
        room = known.records[:half] / np.maximum(known.records[:half] + reading.said(node), 1e-9)
        result[node] = own + room[..., None] * (cpt - own)
    return result


def family_margin(schema: Schema, plan: Layout, index: int, table: Array, names: Names) -> Array:
    """The margin of table `index` on a family, axes as the family's names."""
    inside = tuple(name for name in plan.tables[index] if name in names)
    return _transposed(member(schema, plan.tables, index, inside).margin(table), inside, names)


def family_homes(structure: Structure, plan: Layout, noises: Sequence[Moments]) -> dict[str, int]:
    """The table each family is read from: of those that contain it, the one with the least noise on its margin."""
    holders = holders_of(dict(enumerate(plan.tables)))
    homes = {}
    for node in structure.nodes:
        family = structure.family(node).names
        noise = {t: _on_margin(structure.schema, plan, noises[t], t, family) for t in holding(holders, family)}
        if noise:
            homes[node] = min(noise, key=lambda t: (noise[t], t))
    return homes


def _on_margin(schema: Schema, plan: Layout, noise: Moments, index: int, names: Names) -> float:
    """Variance of the noise of table `index` on a cell of its margin."""
    return noise.summed({name: schema[name].size for name in plan.tables[index]}, names)


def consistent_counts(schema: Schema, plan: Layout, noisy: Sequence[Array], noises: Sequence[Moments]) -> Start:
    """Tables that agree: by least squares, then positive, then with what stands out given back."""
    linear = least_squares(noisy, noises, plan.shared)
    deviation = 1.0 / math.sqrt(precisions(noises, plan.cells, range(len(noises)), ()).sum())
    total = np.maximum(linear[0].reshape(linear[0].shape[0], -1).sum(axis=1), deviation)
    variances = [noise.variance for noise in noises]
    priors = [fitted_prior(table, math.sqrt(v), total) for table, v in zip(noisy, variances, strict=True)]
    shrunk, spreads = _constrained_means(noisy, variances, priors, plan.shared)
    corrected = _give_back(schema, plan, linear, shrunk, noises, spreads)
    return Start(linear, shrunk, corrected, spreads, priors, total)


def _constrained_means(
    noisy: Sequence[Array], variances: Sequence[float], priors: Sequence[Prior], shared: Sequence[Overlap]
) -> tuple[list[Array], list[Array]]:
    """Posterior means whose shared margins agree, and the cells' posterior variances.

    A multiplier of a margin moves u of all its cells alike, and the margin then moves by the sum of the cells'
    variances: so each Newton step weighs by those sums.
    """
    deviations = [math.sqrt(variance) for variance in variances]
    posteriors = [Posterior(prior) for prior in priors]
    points = [
        table / deviation - per_repetition(prior.rate, table.ndim)
        for table, deviation, prior in zip(noisy, deviations, priors, strict=True)
    ]

    def moments() -> tuple[list[Array], list[Array]]:
        means, spreads = [], []
        for u, posterior, deviation, variance in zip(points, posteriors, deviations, variances, strict=True):
            mean, slope = posterior.mean_and_slope(u)
            means.append(mean * deviation)
            spreads.append(slope * variance)
        return means, spreads

    for _ in range(SWEEPS):
        means, spreads = moments()
        for overlap in shared:
            margins = [m.margin(means[m.table]) for m in overlap.members]
            widths = [m.margin(spreads[m.table]) for m in overlap.members]
            weight = sum(1.0 / width for width in widths)
            target = sum(margin / width for margin, width in zip(margins, widths, strict=True)) / weight
            for m, margin, width in zip(overlap.members, margins, widths, strict=True):
                reach = FURTHEST / deviations[m.table]  # a spike makes widths next to nothing possible
                step = m.spread(np.clip((target - margin) / width, -reach, reach))
                means[m.table] = means[m.table] + spreads[m.table] * step
                points[m.table] = points[m.table] + deviations[m.table] * step
    return moments()


def _give_back(
    schema: Schema,
    plan: Layout,
    linear: Sequence[Array],
    shrunk: Sequence[Array],
    noises: Sequence[Moments],
    spreads: Sequence[Array],
) -> list[Array]:
    """Add the components of order 0 and 1 of linear - shrunk that exceed their noise, each by its excess."""
    holders: dict[Names, list[int]] = {}
    posterior: dict[Names, Array] = {}  # precision of the shrunk margin's cells
    for table, names in enumerate(plan.tables):
        for subset in _small_subsets(names):
            holders.setdefault(subset, []).append(table)
            if len(subset) == 1:
                width = member(schema, plan.tables, table, subset).margin(spreads[table])
                posterior[subset] = posterior.get(subset, 0.0) + 1.0 / width
    excess: dict[Names, Array] = {}
    result = []
    for table, names in enumerate(plan.tables):
        difference = linear[table] - shrunk[table]
        corrected = shrunk[table]
        for subset in _small_subsets(names):
            seen = member(schema, plan.tables, table, subset)
            cells = schema.cells(subset)
            if subset not in excess:
                component = _centred(seen.margin(difference))
                freedom = math.prod(size - 1 for size in schema.shape(subset))
                precision = precisions(noises, plan.cells, holders[subset], subset).sum()
                noise, threshold = np.array([1.0 / (precision * cells)]), STANDS_OUT
                if subset in posterior:
                    noise = np.maximum(noise - (1.0 / posterior[subset]).mean(axis=1), LEAST_NOISE * noise)
                    threshold = MARGIN_STANDS_OUT
                found = np.square(component).reshape(component.shape[0], -1).sum(axis=1)
                limit = freedom * noise * (1.0 + threshold * math.sqrt(2.0 / max(freedom, 1)))
                more = found > limit
                part = np.where(more, 1.0 - limit / np.where(more, found, 1.0), 0.0)
                excess[subset] = component * per_repetition(part, component.ndim)
            if excess[subset].any():
                corrected = corrected + seen.spread(excess[subset]) * (cells / plan.cells[table])
        result.append(corrected)
    return result


def _small_subsets(names: Names) -> list[Names]:
    return [(), *((name,) for name in names)]


def _centred(margin: Array) -> Array:
    for axis in range(1, margin.ndim):
        margin = margin - margin.mean(axis=axis, keepdims=True)
    return margin


def _transposed(table: Array, names: Sequence[str], into: Sequence[str]) -> Array:
    """Transpose a batch of tables over `names` to the order `into`."""
    return np.transpose(table, [0, *(1 + list(names).index(name) for name in into)])
