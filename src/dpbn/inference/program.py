"""A straight-line program of contractions: compiled once from scopes and an order, run on any tables.

The program is a binary tree over its inputs, so one backward pass over the same steps gives the derivative of
its value by every cell of every input, without a division (zeros need no special case).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.inference.contraction import BATCH, Array, Contraction, Reduction, Scope, Sizes, arrange
from dpbn.inference.logarithms import log_forward, log_gradient

TINY = 1e-200  # below this, parts of a sum may have underflowed on the way: the program is run again on logarithms


@dataclass(frozen=True, slots=True)
class Trace:
    """Every slot's table from one forward pass; `logs`: their logarithms."""

    values: list[Array]
    logs: bool = False


class Program:
    """Σ over all variables outside `output` of the product of the inputs."""

    __slots__ = ("_backward", "cells", "inputs", "largest", "output", "scopes", "sizes", "steps")

    def __init__(self, inputs: Sequence[Scope], order: Sequence[int], output: Scope, sizes: Sizes):
        self.inputs = tuple(inputs) or ((),)  # an empty product is the number one
        self.output = output
        self.sizes = sizes
        self.scopes: list[Scope] = list(self.inputs)
        self.steps: list[tuple[int, int, Contraction | Reduction]] = []
        self._backward: dict[int, Contraction] = {}
        self._compile(order)
        made = [step.cells for _, _, step in self.steps]
        self.largest = max(made, default=1)
        self.cells = sum(made)

    def _compile(self, order: Sequence[int]) -> None:
        holders: dict[int, set[int]] = {}  # variable -> live slots that mention it
        for slot, scope in enumerate(self.scopes):
            for variable in scope:
                holders.setdefault(variable, set()).add(slot)
        live = set(range(len(self.inputs)))
        kept = set(self.output)

        def replace(used: Sequence[int], step: Contraction | Reduction) -> int:
            slot = len(self.scopes)
            for old in used:
                live.discard(old)
                for variable in self.scopes[old]:
                    holders[variable].discard(old)
            self.scopes.append(step.scope)
            self.steps.append((used[0], used[-1] if len(used) > 1 else -1, step))
            live.add(slot)
            for variable in step.scope:
                holders[variable].add(slot)
            return slot

        def combine(slots: set[int], last: bool) -> None:
            """Multiply the slots pairwise, smallest first, and sum what no other slot mentions."""
            while slots:
                ordered = sorted(slots, key=lambda s: (self._size(self.scopes[s]), s))
                if len(ordered) == 1:
                    (slot,) = ordered
                    keep = self._needed([slot], holders, kept)
                    if len(keep) < len(self.scopes[slot]):
                        replace([slot], Reduction(self.scopes[slot], keep, self.sizes))
                    return
                a, b = ordered[:2]
                if not last and len(ordered) > 2:
                    b = min(ordered[1:], key=lambda s: (self._size({*self.scopes[a], *self.scopes[s]}), s))
                keep = self._needed([a, b], holders, kept)
                slots -= {a, b}
                slots.add(replace([a, b], Contraction(self.scopes[a], self.scopes[b], keep, self.sizes)))

        for variable in order:
            combine(set(holders.get(variable, ())), last=False)
        combine(set(live), last=True)

    def _size(self, variables: Iterable[int]) -> int:
        return math.prod(map(self.sizes.__getitem__, variables))

    def _needed(self, slots: Sequence[int], holders: dict[int, set[int]], kept: set[int]) -> set[int]:
        mine = set(slots)
        return {v for s in slots for v in self.scopes[s] if v in kept or not holders[v] <= mine}

    def run(self, tables: Sequence[Array]) -> tuple[Array, Array | float]:
        """The value, axes as `output`, and the logarithm of the factor it was divided by."""
        plain = Trace(self._forward(tables))
        faint = self._faint(plain.values)
        if not faint.any():
            return self.value(plain)
        if faint.all():
            return self.value(Trace(log_forward(self, tables), logs=True))
        chosen = np.flatnonzero(faint)  # of a batch, only where it is needed
        some = [t[..., chosen] if BATCH in scope else t for t, scope in zip(tables, self.inputs, strict=True)]
        value, scale = np.array(self.value(plain)[0]), np.zeros(len(faint))
        value[..., chosen], scale[chosen] = self.value(Trace(log_forward(self, some), logs=True), len(chosen))
        return value, scale

    def value(self, trace: Trace, width: int | None = None) -> tuple[Array, Array | float]:
        """The result of a forward pass, axes as `output`, and the logarithm of the factor it was divided by."""
        sizes = self.sizes if width is None else [*(self.sizes[v] for v in range(len(self.sizes) - 1)), width]
        table = arrange(np.asarray(trace.values[-1]), self.scopes[-1], self.output, sizes)
        if not trace.logs:
            return table, 0.0
        scale = np.max(table, axis=_all_but_batch(self.output), initial=-np.inf)
        scale = np.where(scale > -np.inf, scale, 0.0)
        return np.exp(table - scale), scale  # the batch is the last axis, so this broadcasts

    def plain(self, tables: Sequence[Array]) -> Array:
        """The value whatever has underflowed on the way."""
        return self.value(Trace(self._forward(tables)))[0]

    def logs(self, tables: Sequence[Array]) -> Array:
        """The logarithm of every cell of the value."""
        return arrange(np.asarray(log_forward(self, tables)[-1]), self.scopes[-1], self.output, self.sizes)

    def forward(self, tables: Sequence[Array]) -> Trace:
        """Every slot's table; logarithms only where plain products would have come near underflow."""
        values = self._forward(tables)
        return Trace(log_forward(self, tables), logs=True) if self._faint(values).any() else Trace(values)

    def _faint(self, values: Sequence[Array]) -> NDArray[np.bool_]:
        """Where all cells of the value are too small to be trusted."""
        return np.asarray(~(np.max(values[-1], axis=_all_but_batch(self.scopes[-1]), initial=0.0) > TINY))

    def _forward(self, tables: Sequence[Array]) -> list[Array]:
        values = list(tables) or [np.ones(())]
        for a, b, step in self.steps:
            values.append(step(values[a]) if isinstance(step, Reduction) else step(values[a], values[b]))
        return values

    def gradient(self, trace: Trace) -> list[Array]:
        """Derivative by every input of the sum of the value's cells, divided by the same factor as the value."""
        if trace.logs:
            scale = self.value(trace)[1]
            return [self._unscaled(log, scale, slot) for slot, log in enumerate(log_gradient(self, trace.values))]
        gradients: list[Array | None] = [None] * len(self.scopes)
        gradients[-1] = np.ones(tuple(self.sizes[v] for v in self.scopes[-1]))
        for index in range(len(self.steps) - 1, -1, -1):
            a, b, step = self.steps[index]
            slot = len(self.inputs) + index
            above, gradients[slot] = gradients[slot], None
            assert above is not None
            if isinstance(step, Reduction):
                gradients[a] = arrange(above, self.scopes[slot], self.scopes[a], self.sizes)
                continue
            for mine, other in ((a, b), (b, a)):
                back = self._back(slot, mine, other)
                table = np.asarray(back(above, trace.values[other]))
                gradients[mine] = arrange(table, back.scope, self.scopes[mine], self.sizes)
        return [g if g is not None else np.zeros(()) for g in gradients[: len(self.inputs)]]

    def marginals(self, trace: Trace) -> list[Array]:
        """Every input times its derivative: what each of its cells contributes to the value."""
        if not trace.logs:
            gradients = self.gradient(trace)
            return [table * gradient for table, gradient in zip(trace.values, gradients, strict=False)]
        scale = self.value(trace)[1]
        pairs = zip(trace.values, log_gradient(self, trace.values), strict=False)
        return [self._unscaled(table + log, scale, slot) for slot, (table, log) in enumerate(pairs)]

    def _unscaled(self, logs: Array, scale: Array | float, slot: int) -> Array:
        """exp(logs - scale), repeated to the whole of a slot; a slot without the batch is divided by the largest."""
        scope = self.scopes[slot]
        table = np.exp(logs - (scale if BATCH in scope else np.max(scale)))
        return np.broadcast_to(table, tuple(self.sizes[v] for v in scope))

    def _back(self, slot: int, mine: int, other: int) -> Contraction:
        """From the derivative by `slot` to that by `mine`, which was multiplied with `other` to make it."""
        if mine not in self._backward:
            self._backward[mine] = Contraction(
                self.scopes[slot], self.scopes[other], set(self.scopes[mine]), self.sizes
            )
        return self._backward[mine]


def _all_but_batch(scope: Scope) -> tuple[int, ...]:
    return tuple(i for i, v in enumerate(scope) if v != BATCH)
