"""Bucket elimination with a way back: what traceback (MPE, MAP) and backward sampling share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpbn.inference.contraction import Array, Scope, aligned, arrange
from dpbn.inference.logarithms import logarithms

Combine = Callable[[Array], Array]  # removes the last axis: by maximum, or by sum


@dataclass(frozen=True, slots=True)
class Bucket:
    """One eliminated variable: the slots multiplied, and the other variables of their product."""

    variable: int
    rest: Scope
    slots: tuple[int, ...]
    scopes: tuple[Scope, ...]


class Buckets:
    """Eliminate variables one by one, keeping each product; axes of a product are `rest`, then the variable."""

    __slots__ = ("_constants", "buckets", "sizes")

    def __init__(self, inputs: Sequence[Scope], order: Sequence[int], sizes: Sequence[int]):
        self.sizes = sizes
        live = dict(enumerate(inputs))
        self.buckets: list[Bucket] = []
        for variable in order:
            used = tuple(slot for slot, scope in live.items() if variable in scope)
            rest = tuple(sorted({v for slot in used for v in live[slot]} - {variable}))
            self.buckets.append(Bucket(variable, rest, used, tuple(live.pop(slot) for slot in used)))
            live[len(inputs) + len(self.buckets) - 1] = rest
        self._constants = tuple(live)  # every variable is gone: scalars are left

    def sweep(self, tables: Sequence[Array], combine: Combine) -> tuple[list[Array], float]:
        """Every bucket's product, scaled, and the log of the value of the whole (-inf if it is zero).

        Where a product underflows, on logarithms: a cell lost could be the one that other buckets want.
        """
        try:
            with np.errstate(under="raise"):
                return self._sweep(tables, combine)
        except FloatingPointError:
            return self.log_sweep(logarithms(tables), combine)

    def _sweep(self, tables: Sequence[Array], combine: Combine) -> tuple[list[Array], float]:
        values: list[Array] = list(tables)
        products: list[Array] = []
        log = 0.0
        for bucket in self.buckets:
            full = (*bucket.rest, bucket.variable)
            product: Array = np.ones(tuple(self.sizes[v] for v in full)) if not bucket.slots else np.ones(())
            for slot, scope in zip(bucket.slots, bucket.scopes, strict=True):
                product = np.multiply(product, arrange(values[slot], scope, full, self.sizes))
            peak = float(np.max(product))
            if not peak > 0:
                return [], -math.inf
            product = product / peak
            log += math.log(peak)
            products.append(product)
            values.append(combine(product))
        for slot in self._constants:
            value = float(values[slot])
            if not value > 0:
                return [], -math.inf
            log += math.log(value)
        return products, log

    def log_sweep(self, logs: Sequence[Array], combine: Combine) -> tuple[list[Array], float]:
        """The same from logarithms of the tables; the largest cell of every row of a product is 1."""
        values: list[Array] = list(logs)
        products: list[Array] = []
        for bucket in self.buckets:
            full = (*bucket.rest, bucket.variable)
            total: Array = np.zeros(tuple(self.sizes[v] for v in full))
            for slot, scope in zip(bucket.slots, bucket.scopes, strict=True):
                total = total + aligned(values[slot], scope, full)
            peak = np.max(total, axis=-1)
            product = np.exp(total - np.where(peak > -math.inf, peak, 0.0)[..., None])
            products.append(product)
            values.append(peak + np.log(np.where(peak > -math.inf, combine(product), 1.0)))
        log = sum(float(values[slot]) for slot in self._constants)
        return (products, log) if log > -math.inf else ([], -math.inf)
