"""From a clique's table to the table over some of its variables, and back; tables are flat here.

Trailing axes are handled as one block by a matrix of zeros and ones: BLAS sums (or spreads) short axes far
faster than element loops do. Leading axes have long rows behind them, so numpy's own loops are fast there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.inference.contraction import Array, Scope

BLOCK = 16  # cells a trailing block should reach
MATRIX_WORK = 1 << 18  # multiplications up to which OpenBLAS stays on one thread
VECTOR_WORK = 9_000
WHOLE = 9_000  # cells of a matrix up to which a clique is one block


class Projection:
    """Sum a flat table over `scope` down to `onto`; multiply one by a flat table over `onto`."""

    __slots__ = (
        "_block",
        "_index",
        "_lead",
        "_matrix",
        "_rows_in",
        "_rows_out",
        "_spread",
        "_summed",
        "_transposed",
        "cells",
        "shape",
    )

    def __init__(self, scope: Scope, onto: Scope, sizes: Sequence[int]):
        kept = set(onto)
        if tuple(v for v in scope if v in kept) != onto:
            raise AssertionError("a projection keeps the axis order of its clique")
        self.shape = tuple(sizes[v] for v in scope)
        self.cells = math.prod(sizes[v] for v in onto)
        total = math.prod(self.shape)
        split = len(scope)
        block = 1
        whole = total * self.cells <= WHOLE
        while split and (whole or block < BLOCK):
            split -= 1
            block *= self.shape[split]
        self._block = block
        lead = scope[:split]
        self._lead = tuple(sizes[v] for v in lead)
        self._summed = _runs(self._lead, [v in kept for v in lead])
        trailing = [v in kept for v in scope[split:]]
        matrix = _zeros_and_ones(self.shape[split:], trailing) if not all(trailing) else None
        self._matrix = matrix
        self._transposed = None if matrix is None else np.ascontiguousarray(matrix.T)
        inner = block if matrix is None else matrix.shape[1]
        self._rows_in = _thread_free(total // block, block, inner)
        self._rows_out = _thread_free(self.cells // inner, inner, block)
        self._spread = (tuple(sizes[v] if v in kept else 1 for v in lead), inner)
        self._index: NDArray[np.int64] | None = None

    def sum(self, table: Array) -> Array:
        """Flat table over the kept variables."""
        if self._lead:
            found = table
            if self._matrix is not None:
                found = table.reshape(self._rows_in) @ self._matrix
            for before, run in self._summed:
                found = np.add.reduce(found.reshape(before, run, -1), axis=1)
            return found.reshape(-1)
        return table if self._matrix is None else table @ self._matrix

    def multiply(self, table: Array, factor: Array) -> Array:
        """A new flat table: `table` times `factor` spread over the clique."""
        if not self._lead:
            return table * factor if self._transposed is None else table * (factor @ self._transposed)
        shape = self._spread[0]
        spread = factor
        if self._transposed is not None:
            spread = factor.reshape(self._rows_out) @ self._transposed
        product = table.reshape(*self._lead, self._block) * spread.reshape(*shape, self._block)
        return product.reshape(-1)

    @property
    def index(self) -> NDArray[np.int64]:
        """For every cell of the clique, the cell of the kept table it belongs to."""
        if self._index is None:
            shape, inner = self._spread
            cells = np.arange(self.cells).reshape(-1, inner)
            if self._transposed is not None:
                cells = cells[:, np.argmax(self._transposed, axis=0)]
            full = np.broadcast_to(cells.reshape(*shape, self._block), (*self._lead, self._block))
            self._index = np.ascontiguousarray(full).reshape(-1)
        return self._index


def _runs(shape: Sequence[int], kept: Sequence[bool]) -> list[tuple[int, int]]:
    """Neighbouring axes to be summed as one, first ones first: (kept cells before, cells summed).

    One run at a time keeps long rows behind the axis, and halves the table for the next.
    """
    runs: list[tuple[int, int]] = []
    before, open_run = 1, False
    for size, keep in zip(shape, kept, strict=True):
        if keep:
            before *= size
        elif open_run:
            runs[-1] = (before, runs[-1][1] * size)
        else:
            runs.append((before, size))
        open_run = not keep
    return runs


def _thread_free(rows: int, inner: int, columns: int) -> tuple[int, ...]:
    """A shape that cuts a matrix product into pieces BLAS runs on one thread.

    The pieces are memory-bound, so threads gain little, and on a busy machine waiting for each other costs a lot.
    """
    piece = largest_piece(rows, (MATRIX_WORK if min(rows, columns) > 1 else VECTOR_WORK) // (inner * columns))
    return (inner,) if rows == 1 else (rows, inner) if piece == rows else (rows // piece, piece, inner)


def largest_piece(rows: int, allowed: int) -> int:
    """The largest number of rows, `allowed` at most, into which they can be cut evenly."""
    piece = max(1, min(rows, allowed))
    while rows % piece:
        piece -= 1
    return piece


def _zeros_and_ones(shape: Sequence[int], kept: Sequence[bool]) -> Array:
    """Rows: cells of `shape`; columns: cells of its kept axes; one where they agree."""
    index = np.zeros(1, dtype=np.int64)
    columns = 1
    for size, keep in zip(shape, kept, strict=True):
        index = (index[:, None] * size + np.arange(size) if keep else np.repeat(index[:, None], size, 1)).reshape(-1)
        columns *= size if keep else 1
    matrix = np.zeros((len(index), columns))
    matrix[np.arange(len(index)), index] = 1.0
    return matrix
