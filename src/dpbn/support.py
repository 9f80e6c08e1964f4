"""How many records stand behind each CPT row, read off the noisy tables of a release.

A row whose noisy count is less than two deviations of its own noise could as well be empty: it lies
below the noise floor. Nothing here costs budget: it reads published measurements only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.coarse import as_told, widened
from dpbn.margins import project
from dpbn.measurement import Measurement, finest
from dpbn.network import Structure
from dpbn.privacy.blocks import common_names

LEAST_VARIANCE = 1e-12  # of noise that is next to nothing
FLOOR = 2.0  # deviations of the noise on a row
GOOD, FAIR = 0.02, 0.1  # expected share of probability put in the wrong place


@dataclass(frozen=True, eq=False)
class Support:
    """Noisy record counts of one node's parent rows, and the deviation of the noise on them."""

    counts: NDArray[np.float64]  # axes: parents in order
    row_deviation: float
    cell_deviation: float
    cells: int
    left_out: tuple[str, ...] = ()  # parents whose states no table tells apart: their rows share the count evenly

    @property
    def below_floor(self) -> NDArray[np.bool_]:
        """Which parent rows cannot be told from empty ones, or from each other."""
        return (self.counts < FLOOR * self.row_deviation) | bool(self.left_out)

    @property
    def total(self) -> float:
        """Noisy number of records, at least 1."""
        return max(float(self.counts.sum()), 1.0)

    @property
    def expected_error(self) -> float:
        """Probability the noise misplaces in an average record's row, before the estimator smooths any of it.

        Half the L1 distance, rows weighted by how often they occur; a normal deviate is sqrt(2/pi) off on average.
        """
        return min(1.0, 0.5 * math.sqrt(2 / math.pi) * self.cells * self.cell_deviation / self.total)

    @property
    def reliability(self) -> str:
        """good, fair or poor."""
        return "good" if self.expected_error < GOOD else "fair" if self.expected_error < FAIR else "poor"


def row_support(structure: Structure, measurements: Sequence[Measurement], node: str) -> Support | None:
    """Support of `node` from every table that holds its family, or as many of its parents as any; else None."""
    whole, structure = structure, as_told(structure, [m.names for m in measurements], [node])
    family = structure.family(node).names
    names, weight, wider, table = set(family), 0.0, 0.0, np.zeros(structure.shape(node))
    holding = [m for m in measurements if names.issubset(m.names)]
    for measurement in _apart(finest(holding), family):
        rate = float(measurement.sampling.rate) if measurement.sampling else 1.0
        cell, row = (
            max(measurement.summed_variance(kept), LEAST_VARIANCE) for kept in (family, structure.parents(node))
        )
        precision = rate**2 / cell
        table += precision * project(measurement.values, measurement.names, family) / rate
        weight += precision
        wider += (row / cell - wider) * (precision / weight)  # weighted mean of how much wider a row's noise is
    if not weight:
        return None
    deviation = math.sqrt(1 / weight)
    alike = whole.cells(node) / table.size
    counts = widened(whole, structure, {node: table.sum(axis=-1, keepdims=True) / weight / alike})[node][..., 0]
    left_out = tuple(name for name in whole.parents(node) if name not in family)
    return Support(counts, deviation * math.sqrt(wider), deviation, whole.cells(node), left_out)


def _apart(measurements: Sequence[Measurement], family: Sequence[str]) -> Iterator[Measurement]:
    """All of these, which hold `family`; of tables with joint noise that tell the same of it, one."""
    seen = set()
    for measurement in measurements:
        if measurement.together is not None and set(family) <= set(common_names(measurement.together.tables)):
            if measurement.together.group in seen:
                continue
            seen.add(measurement.together.group)
        yield measurement


def supports(
    structure: Structure, measurements: Sequence[Measurement], public: Collection[str] = ()
) -> dict[str, Support]:
    """Support of every node that was measured and is not `public`."""
    holding: dict[str, list[Measurement]] = {node: [] for node in structure.nodes}
    for measurement in measurements:
        for name in measurement.names:
            holding[name].append(measurement)
    known = set(public)
    found = {node: row_support(structure, holding[node], node) for node in structure.nodes if node not in known}
    return {node: support for node, support in found.items() if support is not None}
