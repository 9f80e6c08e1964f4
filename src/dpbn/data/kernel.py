"""Counting packed groups over matrices of codes: numpy always, numba for many rows if it is installed.

Columns lie one after another and rows are taken in blocks that fit the cache. A group's index is
built column by column (index * size + code) in 8 or 16 bits, then counted. Rows are shared out to threads.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpbn.data.encode import Codes
from dpbn.data.packing import Group, Table

NUMPY_BLOCK_ROWS = 1 << 18  # larger than the cache would like: numpy holds the interpreter lock between blocks
ROWS_PER_THREAD = 1 << 17
ROWS_WORTH_COMPILING = 2_000_000
MANY_CELLS = 1 << 16  # indices beyond need more than 16 bits, and counters are not copied for every thread


@cache
def has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Tally:
    """Running counts of `groups`; `positions` says which row of a code matrix holds which variable."""

    def __init__(self, groups: Sequence[Group], positions: dict[str, int], kernel: str = "auto"):
        self._groups = tuple(groups)
        self._columns = [[positions[name] for name in group.names] for group in groups]
        self._counts = [np.zeros(group.cells, dtype=np.int64) for group in groups]
        self._kernel, self._rows = kernel, 0

    def add(self, codes: Codes) -> None:
        """Count a matrix of known codes: one row per variable, one column per record."""
        rows = codes.shape[1]
        self._rows += rows
        if not rows:
            return
        small = [g for g, group in enumerate(self._groups) if group.cells <= MANY_CELLS]
        large = [g for g, group in enumerate(self._groups) if group.cells > MANY_CELLS]
        workers = max(1, min(threads(), rows // ROWS_PER_THREAD))
        bounds = np.linspace(0, rows, workers + 1).astype(int)
        jobs = [(codes[:, bounds[w] : bounds[w + 1]], small) for w in range(workers)] if small else []
        jobs += [(codes, [g]) for g in large]  # one after another adds into the same counters: no copies
        if len(jobs) == 1:
            parts = [self._count(*jobs[0])]
        else:
            with ThreadPoolExecutor(threads()) as pool:
                parts = list(pool.map(lambda job: self._count(*job), jobs))
        for (_, chosen), counts in zip(jobs, parts, strict=True):
            for g, counted in zip(chosen, counts, strict=True):
                self._counts[g] += counted

    def _count(self, codes: Codes, chosen: Sequence[int]) -> list[NDArray[np.int64]]:
        groups, columns = [self._groups[g] for g in chosen], [self._columns[g] for g in chosen]
        if self._kernel == "numba" or (self._kernel == "auto" and self._rows >= ROWS_WORTH_COMPILING and has_numba()):
            from dpbn.data.kernel_numba import count_numba

            return count_numba(codes, groups, columns)
        return count_numpy(codes, groups, columns)

    @property
    def supersets(self) -> list[Table]:
        return [counts.reshape(group.shape) for counts, group in zip(self._counts, self._groups, strict=True)]


def count_numpy(codes: Codes, groups: Sequence[Group], columns: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """Flat counts of every group. An index is held in the narrowest type that its columns so far allow.

    Small tables are counted in two halves that take turns: an increment would wait for the one before it
    where neighbouring records are equal.
    """
    rows = codes.shape[1]
    length = min(rows, NUMPY_BLOCK_ROWS)
    buffers = {kind: np.empty(length, dtype=kind) for kind in (np.uint8, np.uint16, np.intp)}
    turns = {halves: (np.arange(length) % halves).astype(np.uint8) for halves in (1, 2)}
    counts = [np.zeros((2 if 2 * group.cells < MANY_CELLS else 1, group.cells), dtype=np.int64) for group in groups]
    plans = []
    for group, its, counted in zip(groups, columns, counts, strict=True):
        cells = np.cumprod([len(counted), *group.shape])[1:]
        kinds = [np.uint8 if reach < 1 << 8 else np.uint16 if reach < MANY_CELLS else np.intp for reach in cells]
        plans.append(list(zip(kinds, group.shape, its, strict=True)))
    for start in range(0, rows, NUMPY_BLOCK_ROWS):
        block = codes[:, start : start + NUMPY_BLOCK_ROWS]
        width = block.shape[1]
        for plan, counted in zip(plans, counts, strict=True):
            index = turns[len(counted)][:width]
            for kind, size, column in plan:
                index = np.multiply(index, kind(size), out=buffers[kind][:width], dtype=kind)
                np.add(index, block[column], out=index, casting="unsafe")
            whole = buffers[np.intp][:width]
            whole[:] = index  # bincount would make this copy anew every time
            np.add(counted, np.bincount(whole, minlength=counted.size).reshape(counted.shape), out=counted)
    return [counted.sum(axis=0) for counted in counts]
