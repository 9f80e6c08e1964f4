"""Tables that share names, cut into blocks: one per cell of the names they all hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.margins import Names

Integers = NDArray[np.int64]


def common_names(names: Sequence[Names]) -> Names:
    """The names that all tables hold, in the order of the first."""
    return tuple(name for name in names[0] if all(name in others for others in names[1:]))


def fold(tables: Sequence[Integers], names: Sequence[Names]) -> list[Integers]:
    """Each table as (blocks, cells). Axes before those of its names make further blocks."""
    common, folded = common_names(names), []
    for table, its in zip(tables, names, strict=True):
        moved = table.transpose(_axes(table.ndim, its, common))
        inner = table.ndim - len(its) + len(common)
        folded.append(moved.reshape(math.prod(moved.shape[:inner]), math.prod(moved.shape[inner:])))
    return folded


def unfold(folded: Sequence[Integers], shapes: Sequence[tuple[int, ...]], names: Sequence[Names]) -> list[Integers]:
    """The inverse of `fold`: tables of `shapes`."""
    common, tables = common_names(names), []
    for cells, shape, its in zip(folded, shapes, names, strict=True):
        axes = _axes(len(shape), its, common)
        moved = cells.reshape([shape[axis] for axis in axes])
        tables.append(np.ascontiguousarray(moved.transpose(np.argsort(axes))))
    return tables


def _axes(dimensions: int, names: Names, common: Names) -> list[int]:
    """The axes that come first, those of the common names, the others."""
    before = dimensions - len(names)
    inner = (*common, *(name for name in names if name not in common))
    return [*range(before), *(before + names.index(name) for name in inner)]


def check_totals(folded: Sequence[Integers]) -> None:
    """Refuse tables that do not count the same records: where the totals of a block differ, no noise would hide it."""
    if not folded or any(table.ndim != 2 or len(table) != len(folded[0]) for table in folded):
        raise PrivacyError("tables with joint noise must be given as (blocks, cells), with the same blocks, got others")
    if not all(np.abs(table.astype(np.float64)).sum() < 2.0**62 for table in folded):
        raise PrivacyError("tables with joint noise must count fewer than 2^62 records, got more")
    totals = [table.sum(axis=1) for table in folded]
    if any((total != totals[0]).any() for total in totals[1:]):
        raise PrivacyError("tables with joint noise must count every record once each, got tables of unequal totals")
