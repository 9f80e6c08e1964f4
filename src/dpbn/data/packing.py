"""Which tables to count together: families packed into superset tables, and limits on their sizes.

A superset is counted once and summed down to each requested set it covers. Supersets stay inside
`dpbn.data`: only requested tables leave.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.errors import InputError, TooLargeError
from dpbn.margins import Names, project
from dpbn.network import MAX_TABLE_AXES, MAX_TABLE_CELLS, MAX_TOTAL_CELLS

Table = NDArray[np.int64]

PACKED_CELLS = 8192  # 32 KB of counters: a larger table saves passes, but its counters leave the nearest cache


@dataclass(frozen=True)
class Group:
    """A superset of attributes (axes in this order) and the requested sets summed down from it."""

    names: Names
    shape: tuple[int, ...]
    sets: tuple[Names, ...]

    @property
    def cells(self) -> int:
        return math.prod(self.shape)


def check_sizes(schema: Schema, sets: Iterable[Names]) -> None:
    """Refuse tables too large to count and publish, from public sizes alone."""
    total = 0
    for names in dict.fromkeys(sets):
        cells = schema.cells(names)
        if cells > MAX_TABLE_CELLS:
            listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            widest = max(names, key=lambda name: schema[name].size)
            raise TooLargeError(
                f"the table over ({listed}) must have at most {MAX_TABLE_CELLS:,} cells, "
                f"got {cells:,}: give its node fewer parents, or merge states of {widest!r}"
            )
        total += cells
    if total > MAX_TOTAL_CELLS:
        raise TooLargeError(
            f"all tables together must have at most {MAX_TOTAL_CELLS:,} cells, got {total:,}: "
            f"merge states or drop parents of the largest families"
        )


def checked_sets(schema: Schema, sets: Sequence[Names]) -> tuple[Names, ...]:
    """`sets` as distinct tuples of known, distinct names whose tables are not too large."""
    checked = tuple(dict.fromkeys(tuple(names) for names in sets))
    for names in checked:
        if len(set(names)) != len(names):
            raise InputError(f"an attribute set must have distinct names, got {names}")
        schema.shape(names)
    check_sizes(schema, checked)
    return checked


def pack(schema: Schema, sets: Sequence[Names], limit: int = PACKED_CELLS) -> tuple[Group, ...]:
    """Greedy packing, one group after another: the largest set left, then what shares most with it, within `limit`.

    The work of a group is one index step per column and one increment per row, so what is shared is saved. Of sets
    that share equally the larger goes first, then by name. A set larger than `limit` is a group of its own.
    """
    sizes = {variable.name: variable.size for variable in schema}
    cells = {names: schema.cells(names) for names in sets}
    left = sorted(sets, key=lambda names: (-cells[names], names))
    groups = []
    while left:
        chosen, near = left[0], left
        union, its = set[str](), list[Names]()
        while True:
            union.update(chosen)
            its.append(chosen)
            total = math.prod(sizes[name] for name in union)
            new = {names: math.prod(sizes[name] for name in names if name not in union) for names in near}
            # what does not fit any more never will: the union only grows
            near = [
                names
                for names in near
                if names != chosen
                and (new[names] == 1 or total * new[names] <= limit)
                and (len(union) + len(names) <= MAX_TABLE_AXES or len(union.union(names)) <= MAX_TABLE_AXES)
            ]
            if not near:
                break
            chosen = max(near, key=lambda names: (cells[names] // new[names], new[names]))
        left = [names for names in left if names not in its]
        ordered = tuple(sorted(union, key=schema.position))
        groups.append(Group(ordered, schema.shape(ordered), tuple(its)))
    return tuple(groups)


def unpacked(groups: Sequence[Group], supersets: Sequence[Table], sets: Sequence[Names]) -> Mapping[Names, Table]:
    """The requested tables in the order of `sets`."""
    found = {
        names: project(superset, group.names, names).copy(order="C")
        for group, superset in zip(groups, supersets, strict=True)
        for names in group.sets
    }
    return {names: found[names] for names in sets}
