"""Counting packed groups over blocks of codes, by numpy.

Rows are taken in blocks that fit the cache; each block's columns lie one after another. A group's
index is built column by column (index * size + code), then counted. Blocks are shared out to threads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dpbn.data.encode import Codes
from dpbn.data.packing import Group, Table

BLOCK_ROWS = 1 << 14
_MANY_CELLS = 1 << 16  # a larger table is not copied for every thread


def threads() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class Tally:
    """Running counts of `groups`; `positions` says which row of a code matrix holds which variable."""

    def __init__(self, groups: Sequence[Group], positions: dict[str, int]):
        self._groups = tuple(groups)
        self._columns = [[positions[name] for name in group.names] for group in groups]
        self._counts = [np.zeros(group.cells, dtype=np.int64) for group in groups]

    def add(self, codes: Codes) -> None:
        """Count a matrix of known codes: one row per variable, one column per record."""
        rows = codes.shape[1]
        if not rows:
            return
        small = [g for g, group in enumerate(self._groups) if group.cells <= _MANY_CELLS]
        large = [g for g, group in enumerate(self._groups) if group.cells > _MANY_CELLS]
        workers = min(threads(), -(-rows // BLOCK_ROWS))
        bounds = np.linspace(0, rows, workers + 1).astype(int)
        jobs = [(codes[:, bounds[w] : bounds[w + 1]], small) for w in range(workers)] if small else []
        jobs += [(codes, [g]) for g in large]
        if len(jobs) == 1:
            parts = [self._count(*jobs[0])]
        else:
            with ThreadPoolExecutor(threads()) as pool:
                parts = list(pool.map(lambda job: self._count(*job), jobs))
        for (_, chosen), counts in zip(jobs, parts, strict=True):
            for g, counted in zip(chosen, counts, strict=True):
                self._counts[g] += counted

    def _count(self, codes: Codes, chosen: Sequence[int]) -> list[NDArray[np.int64]]:
        return count_numpy(codes, [self._groups[g] for g in chosen], [self._columns[g] for g in chosen])

    @property
    def supersets(self) -> list[Table]:
        return [counts.reshape(group.shape) for counts, group in zip(self._counts, self._groups, strict=True)]


def count_numpy(codes: Codes, groups: Sequence[Group], columns: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    counts = [np.zeros(group.cells, dtype=np.int64) for group in groups]
    rows = codes.shape[1]
    index = np.empty(min(rows, BLOCK_ROWS), dtype=np.intp)
    for start in range(0, rows, BLOCK_ROWS):
        block = codes[:, start : start + BLOCK_ROWS]
        flat = index[: block.shape[1]]
        for g, (group, its) in enumerate(zip(groups, columns, strict=True)):
            flat[:] = 0
            for size, column in zip(group.shape, its, strict=True):
                np.multiply(flat, size, out=flat)
                np.add(flat, block[column], out=flat, casting="unsafe")
            counts[g] += np.bincount(flat, minlength=group.cells)
    return counts
