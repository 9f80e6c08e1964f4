"""Tables that agree: which sets noisy tables share, and how they are made to agree.

By least squares (arrays have a leading batch axis of independent repetitions, then one axis per variable), or by
averages with weights that are given (`make_consistent`).

Why one pass is exact. Split a table into its analysis-of-variance components, one per subset of its
variables. Equal independent noise on every cell makes the components independent, and the components of a
set B estimated from tables t that contain B have precisions in the ratio 1 / (variance_t * cells_t). So the
generalised least-squares estimate averages each component with these weights. Visiting the intersections
of tables from small to large, each visit averages exactly the components that no smaller intersection holds.

Tables whose noise was drawn together have the same noise in all components of the names common to them: for these
they count as one table. Their other components are independent as ever. The names common to a group are an
intersection themselves, so the components of one visit are all of the one kind or all of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.learners.strategy import holders_of, holding, in_order
from dpbn.margins import Names, project, spread
from dpbn.measurement import Moments

Array = NDArray[np.float64]
Key = TypeVar("Key")

SMALL = 1 << 10  # cells of a table times those of its margin, summed by a matrix product: 200 of them on one thread


@dataclass(frozen=True, slots=True)
class Member:
    """One table seen from a set it contains: the axes to sum out, and the shape to spread back."""

    table: int
    axes: tuple[int, ...]
    shape: tuple[int, ...]

    def margin(self, array: Array) -> Array:
        return summed(array, self.axes) if self.axes else array

    def spread(self, margin: Array) -> Array:
        """`margin` shaped to broadcast against the table."""
        return margin.reshape(margin.shape[0], *self.shape)


@dataclass(frozen=True, slots=True)
class Overlap:
    """A set of variables that several tables contain."""

    names: Names
    cells: int
    members: tuple[Member, ...]


def summed(array: Array, axes: tuple[int, ...]) -> Array:
    """Summed over `axes`, none of them the first. Sums over a few states have loops too short for NumPy's `sum`."""
    kept = tuple(size for axis, size in enumerate(array.shape) if axis not in axes)
    shape = array.shape[1:]
    if math.prod(shape) * math.prod(kept[1:]) > SMALL:
        return np.asarray(array.sum(axis=axes))
    return np.asarray(array.reshape(len(array), -1) @ _ones(shape, axes)).reshape(kept)


@lru_cache(maxsize=1024)
def _ones(shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """The matrix that takes the cells of a table to those of its margin; `axes` count from 1."""
    sizes = [1 if axis in axes else size for axis, size in enumerate(shape, start=1)]
    margin = math.prod(sizes)
    into = np.broadcast_to(np.arange(margin).reshape(sizes), shape)
    return np.eye(margin)[into.ravel()]


def member(schema: Schema, tables: Sequence[Names], index: int, subset: Names) -> Member:
    """Table `index` seen from `subset`, which must stand in the order of the table's names."""
    names = tables[index]
    axes = tuple(position + 1 for position, name in enumerate(names) if name not in subset)
    shape = tuple(schema[name].size if name in subset else 1 for name in names)
    return Member(index, axes, shape)


def intersections(tables: Sequence[Names]) -> list[frozenset[str]]:
    """What two or more tables share, by size from the empty set."""
    sets = [frozenset(names) for names in tables]
    holders = holders_of(dict(enumerate(tables)))

    def neighbours(subset: Iterable[str]) -> set[int]:
        return {index for name in subset for index in holders[name]}

    closure: set[frozenset[str]] = set()
    fresh = {sets[i] & sets[j] for i, names in enumerate(tables) for j in neighbours(names) if i != j}
    while fresh:
        closure |= fresh
        fresh = {shared & sets[j] for shared in fresh for j in neighbours(shared)} - closure
    return [frozenset[str](), *sorted(closure, key=lambda s: (len(s), sorted(s)))]


def overlaps(schema: Schema, tables: Sequence[Names]) -> tuple[Overlap, ...]:
    """Every intersection of two or more tables, from the empty set up. Names stand in schema order."""
    holders, result = holders_of(dict(enumerate(tables))), []
    for shared in intersections(tables):
        inside = holding(holders, shared) if shared else set(range(len(tables)))
        if len(inside) > 1:
            subset = in_order(schema, shared)
            members = tuple(member(schema, tables, index, subset) for index in sorted(inside))
            result.append(Overlap(subset, schema.cells(subset), members))
    return tuple(result)


def precisions(noises: Sequence[Moments], cells: Sequence[int], tables: Sequence[int], names: Sequence[str]) -> Array:
    """What each of `tables` adds to the precision of the components of `names` that no smaller intersection holds."""
    shared = [noises[t].group if set(names) <= set(noises[t].common) else "" for t in tables]
    return np.array(
        [
            1.0 / (noises[t].total * noises[t].blocks * shared.count(group))
            if group
            else 1.0 / (noises[t].within * cells[t])
            for t, group in zip(tables, shared, strict=True)
        ]
    )


def least_squares(values: Sequence[Array], noises: Sequence[Moments], shared: Sequence[Overlap]) -> list[Array]:
    """The best linear unbiased estimate of all tables under the constraint that they agree."""
    tables = list(values)
    cells = [math.prod(table.shape[1:]) for table in tables]
    for overlap in shared:
        margins = [m.margin(tables[m.table]) for m in overlap.members]
        weights = precisions(noises, cells, [m.table for m in overlap.members], overlap.names)
        weights /= weights.sum()
        mean = sum(weight * margin for weight, margin in zip(weights, margins, strict=True))
        for m, margin in zip(overlap.members, margins, strict=True):
            tables[m.table] = tables[m.table] + m.spread(mean - margin) * (overlap.cells / cells[m.table])
    return tables


def make_consistent(tables: Mapping[Key, tuple[Names, Array]], weights: Mapping[Key, float]) -> dict[Key, Array]:
    """Mutual consistency (Procedure 1, line 3; the step of PriView), tables without a batch axis.

    Average the projections on every shared set A, and spread the correction evenly over cells:
    M_t += |dom A| / |dom t| * (M_A - M_t[A]).
    """
    values = {key: np.array(table, dtype=np.float64) for key, (_, table) in tables.items()}
    axes = {key: names for key, (names, _) in tables.items()}
    for shared in intersections(list(axes.values())):
        order = tuple(sorted(shared))
        members = [key for key, names in axes.items() if shared <= set(names)]
        if len(members) < 2:
            continue
        margins = {key: project(values[key], axes[key], order) for key in members}
        total = sum(weights[key] for key in members)
        target = sum(weights[key] / total * margins[key] for key in members)
        for key in members:
            correction = (target - margins[key]) * (margins[key].size / values[key].size)
            values[key] += spread(correction, order, axes[key])
    return values
