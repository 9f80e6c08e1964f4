"""Multiply two tables and sum out variables: the one numerical step of every sum-product computation.

A scope is a tuple of variable numbers, one per axis. The layout (transposes, reshapes, matrix product or
broadcast) is chosen once from the scopes and sizes; running it is a handful of numpy calls. BATCH stands for
an index that is never summed (rows, or networks); it is kept on the last axis so that inner loops are long.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scope = tuple[int, ...]
Sizes = Sequence[int] | Mapping[int, int]

BATCH = -1
SMALL_PRODUCT = 64  # cells below which a call to BLAS per slice costs more than it saves
WORTH_MOVING = 3  # products per cell of both tables and the result that pay for putting the batch first


def _ordered(variables: Sequence[int]) -> Scope:
    """The same variables with BATCH last."""
    return (*(v for v in variables if v != BATCH), *(v for v in variables if v == BATCH))


class Contraction:
    """Σ over variables outside `keep` of a·b; `scope` is the axis order of the result."""

    __slots__ = ("_a", "_b", "_batched", "_mode", "_shape", "_sum_a", "_sum_b", "_summed", "_swapped", "cells", "scope")
    _a: tuple[tuple[int, ...], Any]  # transpose, then a shape (matrix product) or an index (broadcast)
    _b: tuple[tuple[int, ...], Any]

    def __init__(self, a: Scope, b: Scope, keep: frozenset[int] | set[int], sizes: Sizes):
        in_a, in_b = set(a), set(b)
        self._sum_a = tuple(i for i, v in enumerate(a) if v not in keep and v not in in_b)
        self._sum_b = tuple(i for i, v in enumerate(b) if v not in keep and v not in in_a)
        a = tuple(v for v in a if v in keep or v in in_b)
        b = tuple(v for v in b if v in keep or v in in_a)
        in_a, in_b = set(a), set(b)
        shared = [v for v in a if v in in_b and v in keep]
        summed = [v for v in a if v in in_b and v not in keep]
        left = [v for v in a if v not in in_b]
        right = [v for v in b if v not in in_a]

        def cells(variables: Sequence[int]) -> int:
            return math.prod(sizes[v] for v in variables)

        m, k, n = cells(left), cells(summed), cells(right)
        self.cells = cells(shared) * m * n
        inner = m * k * n
        stays = BATCH in shared and inner < WORTH_MOVING * (m * k + k * n + m * n)  # the batch, on the last axis
        self._swapped = False
        if not summed:
            self._mode = "multiply"
            scope = _ordered((*a, *right) if cells(a) >= cells(b) else (*b, *left))
            full: Scope = scope
        elif cells(shared) > 1 and (inner < SMALL_PRODUCT or stays):
            self._mode = "multiply and sum"
            scope = _ordered((*shared, *left, *right))
            full = (*summed, *scope)
            self.cells *= k
        else:
            self._mode = "matrix product"
            self._swapped = BATCH in left
            if self._swapped:  # the batch must end up on the last axis of the result
                a, b, left, right, self._sum_a, self._sum_b = b, a, right, left, self._sum_b, self._sum_a
            right = list(_ordered(right))
            scope = _ordered((*shared, *left, *right))
            self._batched = BATCH in shared  # a product of matrices for each of the batch
            shared.sort(key=lambda v: v != BATCH)
            batch, m, k, n = cells(shared), cells(left), cells(summed), cells(right)
            self._a = (_axes(a, (*shared, *left, *summed)), (batch, m, k) if batch > 1 else (m, k))
            self._b = (_axes(b, (*shared, *summed, *right)), (batch, k, n) if batch > 1 else (k, n))
            self._shape = tuple(sizes[v] for v in scope)
            self.scope = scope
            return
        self._a = _broadcast(a, full)
        self._b = _broadcast(b, full)
        self._summed = tuple(range(len(summed)))
        self.scope = scope

    def __call__(self, a: Array, b: Array) -> Array:
        if self._swapped:
            a, b = b, a
        if self._sum_a:
            a = np.add.reduce(a, axis=self._sum_a)
        if self._sum_b:
            b = np.add.reduce(b, axis=self._sum_b)
        if self._mode == "matrix product":
            (axes_a, shape_a), (axes_b, shape_b) = self._a, self._b
            product = np.matmul(a.transpose(axes_a).reshape(shape_a), b.transpose(axes_b).reshape(shape_b))
            if self._batched:
                product = np.ascontiguousarray(product.reshape(self._shape[-1], -1).T)
            return product.reshape(self._shape)
        (axes_a, index_a), (axes_b, index_b) = self._a, self._b
        product = np.multiply(a.transpose(axes_a)[index_a], b.transpose(axes_b)[index_b], order="C")
        return np.add.reduce(product, axis=self._summed) if self._summed else product


def _axes(scope: Scope, wanted: Sequence[int]) -> tuple[int, ...]:
    return tuple(scope.index(v) for v in wanted)


@lru_cache(maxsize=1 << 14)
def _broadcast(scope: Scope, full: Scope) -> tuple[tuple[int, ...], tuple[slice | None, ...]]:
    """Transpose to the order of `full`, then the index that inserts the axes `scope` lacks."""
    present = set(scope)
    return (
        _axes(scope, [v for v in full if v in present]),
        tuple(slice(None) if v in present else None for v in full),
    )


class Reduction:
    """Σ over variables outside `keep` of one table."""

    __slots__ = ("_axes", "cells", "scope")

    def __init__(self, a: Scope, keep: frozenset[int] | set[int], sizes: Sizes):
        self._axes = tuple(i for i, v in enumerate(a) if v not in keep)
        self.scope = tuple(v for v in a if v in keep)
        self.cells = math.prod(sizes[v] for v in self.scope)

    def __call__(self, a: Array) -> Array:
        return np.add.reduce(a, axis=self._axes)


def aligned(table: Array, scope: Scope, wanted: Scope) -> Array:
    """A view of `table` with the axes of `wanted`; those it does not mention have length 1."""
    axes, index = _broadcast(scope, wanted)
    return table.transpose(axes)[index]


def arrange(table: Array, scope: Scope, wanted: Scope, sizes: Sizes) -> Array:
    """A view of `table` with the axes of `wanted`; variables it does not mention are repeated."""
    view = aligned(table, scope, wanted)
    shape = tuple(sizes[v] for v in wanted)
    return view if view.shape == shape else np.broadcast_to(view, shape)
