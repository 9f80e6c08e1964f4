"""Tables taken apart into residuals: what each attribute set adds to its subsets. Orthogonal, so least squares is easy.

The residual on S of a table over A (S within A) is its projection on S, centred along every axis of S. A table over
F is the sum over S within F of the residuals on S, each spread evenly. Residuals on different S are orthogonal, and
those on one S from different noisy tables are averaged by inverse variance: together this is exact least squares.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.margins import Names, project, spread

Array = NDArray[np.float64]


def subsets(names: Iterable[str]) -> list[Names]:
    """All subsets, in sorted axis order, by size from the empty set."""
    ordered = sorted(names)
    return [kept for size in range(len(ordered) + 1) for kept in itertools.combinations(ordered, size)]


def closure(sets: Iterable[Names]) -> list[Names]:
    """Every subset of every one of `sets`, each once, in sorted axis order, by size."""
    return sorted({kept for names in sets for kept in subsets(names)}, key=lambda kept: (len(kept), kept))


def residual(table: Array, names: Names, onto: Names) -> Array:
    """The part of `table` that `onto` adds to its subsets; axes in the order of `onto`."""
    margin = project(table, names, onto)
    for axis in range(margin.ndim):
        margin = margin - margin.mean(axis=axis, keepdims=True)
    return np.asarray(margin)


def residual_dimension(schema: Schema, onto: Names) -> int:
    """Degrees of freedom of a residual."""
    return math.prod(size - 1 for size in schema.shape(onto))


def least_squares(
    schema: Schema, tables: Mapping[Names, Array], variances: Mapping[Names, float], wanted: Sequence[Names]
) -> dict[Names, Array]:
    """The minimum-variance linear estimate of every wanted table from noisy `tables` that together contain it."""
    estimates: dict[Names, Array] = {}
    for onto in closure(wanted):
        total, weight = np.zeros(schema.shape(onto)), 0.0
        for names, table in tables.items():
            if set(onto) <= set(names):
                precision = 1.0 / (variances[names] * table.size)  # of the projection; |dom onto| is common to all
                total = total + precision * residual(table, names, onto)
                weight += precision
        estimates[onto] = total / weight
    result = {}
    for names in wanted:
        table = np.zeros(schema.shape(names))
        for onto in subsets(names):
            table = table + spread(estimates[onto], onto, names) * (estimates[onto].size / table.size)
        result[names] = table
    return result
