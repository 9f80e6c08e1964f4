"""A straight-line program of contractions: compiled once from scopes and an order, run on any tables.

The program is a binary tree over its inputs, so one backward pass over the same steps gives the derivative of
its value by every cell of every input, without a division (zeros need no special case).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpbn.inference.contraction import BATCH, Array, Contraction, Reduction, Scope, Sizes, arrange

TINY = 1e-200  # below this a product may have underflowed on the way: the program is run again with scaling


@dataclass(slots=True)
class Trace:
    """Every slot's table from one forward pass, and the factor each step was divided by (none if unscaled)."""

    values: list[Array]
    peaks: list[Array]

    @property
    def log_scale(self) -> Array | float:
        return sum((np.log(peak) for peak in self.peaks), start=np.zeros(())) if self.peaks else 0.0


class Program:
    """Σ over all variables outside `output` of the product of the inputs."""

    __slots__ = ("_backward", "cells", "inputs", "largest", "output", "scopes", "sizes", "steps")

    def __init__(self, inputs: Sequence[Scope], order: Sequence[int], output: Scope, sizes: Sizes):
        self.inputs = tuple(inputs) or ((),)  # an empty product is the number one
        self.output = output
        self.sizes = sizes
        self.scopes: list[Scope] = list(self.inputs)
        self.steps: list[tuple[int, int, Contraction | Reduction]] = []
        self._backward: dict[tuple[int, int, int], Contraction] = {}
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
                ordered = sorted(slots, key=lambda s: (self._size(s), s))
                if len(ordered) == 1:
                    (slot,) = ordered
                    keep = self._needed([slot], holders, kept)
                    if len(keep) < len(self.scopes[slot]):
                        replace([slot], Reduction(self.scopes[slot], keep, self.sizes))
                    return
                a, b = ordered[:2]
                if not last and len(ordered) > 2:
                    b = min(ordered[1:], key=lambda s: (self._union_size(a, s), s))
                keep = self._needed([a, b], holders, kept)
                slots -= {a, b}
                slots.add(replace([a, b], Contraction(self.scopes[a], self.scopes[b], keep, self.sizes)))

        for variable in order:
            combine(set(holders.get(variable, ())), last=False)
        combine(set(live), last=True)

    def _size(self, slot: int) -> int:
        cells = 1
        for variable in self.scopes[slot]:
            cells *= self.sizes[variable]
        return cells

    def _union_size(self, a: int, b: int) -> int:
        cells = 1
        for variable in {*self.scopes[a], *self.scopes[b]}:
            cells *= self.sizes[variable]
        return cells

    def _needed(self, slots: Sequence[int], holders: dict[int, set[int]], kept: set[int]) -> set[int]:
        mine = set(slots)
        return {v for s in slots for v in self.scopes[s] if v in kept or not holders[v] <= mine}

    def run(self, tables: Sequence[Array]) -> tuple[Array, Array | float]:
        """The value, axes as `output`, and the logarithm of the factor it was divided by."""
        trace = self.forward(tables)
        return self.value(trace), trace.log_scale

    def value(self, trace: Trace) -> Array:
        """The result of a forward pass, axes as `output`."""
        return arrange(np.asarray(trace.values[-1]), self.scopes[-1], self.output, self.sizes)

    def forward(self, tables: Sequence[Array]) -> Trace:
        """Every slot's table; scaled only where plain products would have come near underflow."""
        trace = self._forward(tables, scaled=False)
        largest = np.max(trace.values[-1], axis=_all_but_batch(self.scopes[-1]), initial=0.0)
        return trace if np.all(largest > TINY) else self._forward(tables, scaled=True)

    def _forward(self, tables: Sequence[Array], *, scaled: bool) -> Trace:
        values = list(tables) or [np.ones(())]
        peaks: list[Array] = []
        for a, b, step in self.steps:
            value = step(values[a]) if isinstance(step, Reduction) else step(values[a], values[b])
            if scaled:
                peak = np.max(value, axis=_all_but_batch(step.scope), initial=0.0)
                peak = np.where(peak > 0, peak, 1.0)
                value = value / peak  # the batch is the last axis, so this broadcasts
                peaks.append(peak)
            values.append(value)
        return Trace(values, peaks)

    def gradient(self, trace: Trace, seed: Array, seed_scope: Scope) -> list[Array]:
        """Derivative by every input of Σ seed·value; axes of `seed` beyond `output` lead each derivative.

        Derivatives come divided by the same factor as the value they belong to.
        """
        extra = tuple(v for v in seed_scope if v not in self.output)
        gradients: list[Array | None] = [None] * len(self.scopes)
        gradients[-1] = arrange(seed, seed_scope, (*extra, *self.scopes[-1]), self.sizes)
        for index in range(len(self.steps) - 1, -1, -1):
            a, b, step = self.steps[index]
            slot = len(self.inputs) + index
            above, above_scope = gradients[slot], (*extra, *self.scopes[slot])
            gradients[slot] = None
            assert above is not None
            if trace.peaks:
                above = above / trace.peaks[index]
            for mine, other in ((a, b), (b, a)):
                if mine < 0:
                    continue
                wanted = (*extra, *self.scopes[mine])
                if isinstance(step, Reduction):
                    gradients[mine] = arrange(above, above_scope, wanted, self.sizes)
                    continue
                back = self._back(index, mine, above_scope, self.scopes[other], wanted)
                gradients[mine] = arrange(np.asarray(back(above, trace.values[other])), back.scope, wanted, self.sizes)
        return [g if g is not None else np.zeros(()) for g in gradients[: len(self.inputs)]]

    def _back(self, index: int, mine: int, above: Scope, other: Scope, wanted: Scope) -> Contraction:
        key = (index, mine, len(above))
        if key not in self._backward:
            self._backward[key] = Contraction(above, other, set(wanted), self.sizes)
        return self._backward[key]


def _all_but_batch(scope: Scope) -> tuple[int, ...]:
    return tuple(i for i, v in enumerate(scope) if v != BATCH)
