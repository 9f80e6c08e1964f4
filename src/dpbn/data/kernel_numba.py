"""The packed kernel compiled by numba (extra `numba`). Imported only when it is used.

It releases the interpreter lock: a plain thread pool over row ranges is steadier than prange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dpbn.data.encode import Codes
from dpbn.data.packing import Group

_BLOCK_ROWS = 1 << 14
_SMALL = np.uint16
_ONE = np.uint32(1)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # nowhere to keep the compiled code
        return numba.njit(nogil=True)(function)


def count_numba(codes: Codes, groups: Sequence[Group], columns: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """Flat counts of every group, the same as `count_numpy`."""
    firsts = np.cumsum([0, *(len(its) for its in columns)]).astype(np.int64)
    offsets = np.cumsum([0, *(group.cells for group in groups)]).astype(np.int64)
    members = np.array([column for its in columns for column in its], dtype=np.int64)
    sizes = np.array([size for group in groups for size in group.shape], dtype=np.int64)
    counts = np.zeros(int(offsets[-1]), dtype=np.int64)
    if max(group.cells for group in groups) <= 1 << 16:
        _count_small(codes, members, sizes, firsts, offsets, counts)
    else:
        _count_large(codes, members, sizes, firsts, offsets, counts)
    return [counts[offsets[g] : offsets[g + 1]] for g in range(len(groups))]


@_compiled
def _count_small(codes, members, sizes, firsts, offsets, counts):  # type: ignore[no-untyped-def]
    """Sixteen-bit indices, so that the index steps become wide vector instructions.

    Two tallies take turns: an increment would wait for the one before it where neighbouring records are equal.
    """
    rows = codes.shape[1]
    index = np.zeros(_BLOCK_ROWS, np.uint16)
    tallies = np.zeros((2, len(counts)), np.uint32)
    since = 0
    for start in range(0, rows, _BLOCK_ROWS):
        length = min(_BLOCK_ROWS, rows - start)
        for g in range(len(firsts) - 1):
            for j in range(length):
                index[j] = 0
            for k in range(firsts[g], firsts[g + 1]):
                column = codes[members[k], start : start + length]
                size = _SMALL(sizes[k])
                for j in range(length):
                    index[j] = _SMALL(index[j] * size) + column[j]
            even, odd = tallies[0, offsets[g] : offsets[g + 1]], tallies[1, offsets[g] : offsets[g + 1]]
            for j in range(length // 2):
                even[index[2 * j]] += _ONE
                odd[index[2 * j + 1]] += _ONE
            if length % 2:
                even[index[length - 1]] += _ONE
        since += length
        if since > 1 << 30 or start + length == rows:  # empty the 32-bit tallies long before they could overflow
            for i in range(len(counts)):
                counts[i] += np.int64(tallies[0, i]) + np.int64(tallies[1, i])
                tallies[0, i] = tallies[1, i] = 0
            since = 0


@_compiled
def _count_large(codes, members, sizes, firsts, offsets, counts):  # type: ignore[no-untyped-def]
    for g in range(len(firsts) - 1):
        tally = counts[offsets[g] : offsets[g + 1]]
        for row in range(codes.shape[1]):
            index = np.int64(0)
            for k in range(firsts[g], firsts[g + 1]):
                index = index * sizes[k] + np.int64(codes[members[k], row])
            tally[index] += 1


@_compiled
def translate(indices, lookup, out):  # type: ignore[no-untyped-def]
    """out = lookup[indices], without widening the indices first; the last entry stands for any wrong index."""
    last = np.uint64(len(lookup) - 1)
    for row in range(len(indices)):
        out[row] = lookup[min(np.uint64(indices[row]), last)]  # a negative index becomes a huge one
