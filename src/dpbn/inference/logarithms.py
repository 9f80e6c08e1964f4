"""The same programs on logarithms: slower, and no product of positive numbers becomes zero.

One scale per table is not enough. Of two states of a node one can be 10^400 times as probable as the other after half
of the findings and less probable after all of them; divided by the larger one, the smaller one is gone by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpbn.inference.contraction import Array, Reduction, Scope, aligned

if TYPE_CHECKING:
    from dpbn.inference.program import Program


def logarithms(tables: Sequence[Array]) -> list[Array]:
    with np.errstate(divide="ignore"):
        return [np.log(table) for table in tables]


def log_forward(program: Program, tables: Sequence[Array]) -> list[Array]:
    """The logarithm of every slot's table."""
    values = logarithms(tables) or [np.zeros(())]
    for a, b, step in program.steps:
        other, other_scope = (values[b], program.scopes[b]) if b >= 0 else (np.zeros(()), ())
        values.append(log_sum(values[a], program.scopes[a], other, other_scope, step.scope))
    return values


def log_gradient(program: Program, values: Sequence[Array]) -> list[Array]:
    """The logarithm of the derivative of the sum of the value's cells by every input; axes as in `Program.gradient`."""
    gradients: list[Array] = [np.zeros(())] * len(program.scopes)
    gradients[-1] = np.zeros(tuple(program.sizes[v] for v in program.scopes[-1]))
    for index in range(len(program.steps) - 1, -1, -1):
        a, b, step = program.steps[index]
        slot = len(program.inputs) + index
        above, scope = gradients[slot], program.scopes[slot]
        if isinstance(step, Reduction):
            gradients[a] = aligned(above, scope, program.scopes[a])
            continue
        for mine, other in ((a, b), (b, a)):
            gradients[mine] = log_sum(above, scope, values[other], program.scopes[other], program.scopes[mine])
    return gradients[: len(program.inputs)]


def log_sum(a: Array, a_scope: Scope, b: Array, b_scope: Scope, wanted: Scope) -> Array:
    """ln Σ exp(a + b) over all variables outside `wanted`; axes as `wanted`, of length 1 where neither mentions one."""
    summed = tuple(v for v in dict.fromkeys((*a_scope, *b_scope)) if v not in wanted)
    full = (*summed, *wanted)
    total = aligned(a, a_scope, full) + aligned(b, b_scope, full)
    return log_total(total, tuple(range(len(summed)))) if summed else total


def log_total(logs: Array, axes: tuple[int, ...]) -> Array:
    """ln Σ exp over some axes."""
    peak = np.max(logs, axis=axes, keepdims=True)
    peak = np.where(peak > -np.inf, peak, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.add.reduce(np.exp(logs - peak), axis=axes)) + np.squeeze(peak, axis=axes))
