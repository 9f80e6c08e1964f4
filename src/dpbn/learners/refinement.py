"""Let the graph speak: a few steps of expectation-maximisation towards the network that explains the tables.

Tables alone know nothing of the independences of the graph. A network does: it predicts mu, the expected count of
every cell of every measured table. Given mu, a count varies like a Poisson variable (variance mu) and its
noisy value y by v more, so the best linear guess of the count is mu + mu/(mu+v) (y - mu) = mu (1 + (y-mu)/(mu+v)).
CPTs made from these guesses predict a new mu, and so on. Without noise (v = 0) the first step returns the
counts themselves. Run to convergence the steps fit noise; `STEPS` of them, from a good start, keep most of the gain.

Pseudo-counts keep rows that the tables cannot see from becoming certain. Spread evenly over the states they would
pull every row of a large even table a few percent towards uniform in each step, while the guesses, which move by
mu/(mu+v), hardly pull back: so where a table cannot tell its cells apart they go to states as the node's margin does.

Real records need not follow the graph. Where the network contradicts a measured table by more than noise
explains, the steps leave that table's own estimate alone: a wrong graph then costs the refinement, not more.

All mu come from one pass forward and one back: P(table) is the derivative of the network's total probability
by a table of ones over that scope.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpbn.elimination import cheapest_elimination
from dpbn.inference.contraction import BATCH
from dpbn.inference.program import Program
from dpbn.margins import Names
from dpbn.network import Structure

Array = NDArray[np.float64]

STEPS = 2  # at a time: `agreement` follows, and then both again
CONTRADICTS = 3.0  # deviations of the mean square by which a table must miss what the network expects
LEAST = 0.05  # a step lowers no cell's guess below this part of what the network expects
CHEAP_CELLS = 4_000_000  # of the largest factor: beyond it the network is left as it is
CHUNK_CELLS = 500_000  # of the largest factor over a chunk of networks: stays in cache
AT_ONCE = 16  # networks in a chunk nevertheless: most factors are small, and calls cost more than they do
MOST_CELLS = 16_000_000  # of all factors over such a chunk


class ModelMargins:
    """P(table) under a network, for several tables and a batch of networks at once."""

    def __init__(self, structure: Structure, tables: Sequence[Names]):
        position = structure.schema.position
        self._nodes = structure.nodes
        self._sizes = [variable.size for variable in structure.schema]
        families = [tuple(position(name) for name in structure.family(node).names) for node in structure.nodes]
        extra = [tuple(position(name) for name in names) for names in tables]
        self._scopes = [*families, *extra]
        self._shapes = [structure.schema.shape(names) for names in tables]
        elimination = cheapest_elimination(self._scopes, self._sizes, limit=CHEAP_CELLS)
        self.largest = elimination.largest
        self._width = max(1, CHUNK_CELLS // self.largest, min(AT_ONCE, MOST_CELLS // elimination.cells))
        self._order = elimination.order
        self._programs: dict[int, Program] = {}

    def _program(self, width: int) -> Program:
        if width not in self._programs:
            scopes = [(*scope, BATCH) for scope in self._scopes]
            self._programs[width] = Program(scopes, self._order, (BATCH,), [*self._sizes, width])
        return self._programs[width]

    def __call__(self, cpts: Mapping[str, Array]) -> list[Array]:
        ones = [np.ones((len(next(iter(cpts.values()))), *shape)) for shape in self._shapes]
        return self._derivatives(cpts, ones)[len(self._nodes) :]

    def by_cpts(self, cpts: Mapping[str, Array], factors: Sequence[Array]) -> dict[str, Array]:
        """The derivative by every CPT of the mean of the product of `factors`, one over the cells of each table."""
        return dict(zip(self._nodes, self._derivatives(cpts, factors), strict=False))

    def _derivatives(self, cpts: Mapping[str, Array], factors: Sequence[Array]) -> list[Array]:
        """By every CPT, then by every factor."""
        inputs = [*(cpts[node] for node in self._nodes), *factors]
        repetitions = len(inputs[0])
        width = min(repetitions, self._width)
        parts = [
            self._chunk([table[start : start + width] for table in inputs]) for start in range(0, repetitions, width)
        ]
        return [np.concatenate(arrays) if len(arrays) > 1 else arrays[0] for arrays in zip(*parts, strict=True)]

    def _chunk(self, inputs: Sequence[Array]) -> list[Array]:
        width = inputs[0].shape[0]
        program = self._program(width)
        trace = program.forward([np.ascontiguousarray(table.transpose(*range(1, table.ndim), 0)) for table in inputs])
        gradients = program.gradient(trace)
        return [gradient.transpose(-1, *range(gradient.ndim - 1)) for gradient in gradients]


@lru_cache(maxsize=8)
def model_margins(structure: Structure, tables: tuple[Names, ...]) -> ModelMargins:
    return ModelMargins(structure, tables)


def expected_counts(expected: Array, value: Array, variance: float) -> Array:
    """mu (1 + (y - mu) / (mu + v)), kept positive."""
    return expected * np.maximum(1.0 + (value - expected) / (expected + variance), LEAST)


def resolution(expected: Array, variance: float) -> Array:
    """Per repetition, mu/(mu+v) of the cell of an average record: near 1 where cells stand out of the noise."""
    flat = expected.reshape(expected.shape[0], -1)
    return np.asarray((flat * flat / (flat + variance)).sum(axis=1) / flat.sum(axis=1))


def over_states(family: Array, resolved: Array) -> Array:
    """Pseudo-counts of mean 1 for the rows of a family: even where cells are resolved, else like the node's margin."""
    states = family.shape[-1]
    margin = family.reshape(len(family), -1, states).sum(axis=1)
    share = margin / margin.sum(axis=1, keepdims=True)
    even = np.minimum(1.0, 2.0 * np.square(resolved))[:, None]
    spread = even + (1.0 - even) * states * share
    return np.asarray(spread.reshape(len(family), *[1] * (family.ndim - 2), states))


def contradicts(expected: Array, value: Array, variance: float) -> NDArray[np.bool_]:
    """Per repetition: is the mean square of (y - mu) / root(mu + v) too large for noise alone?

    A squared unit Laplace variable has variance 5 (a squared Gaussian 2), so the mean over k cells has deviation
    root(5 / k) at most.
    """
    squares = np.square(value - expected) / (expected + variance)
    mean = squares.reshape(squares.shape[0], -1).mean(axis=1)
    return np.asarray(mean > 1.0 + CONTRADICTS * math.sqrt(5.0 * squares.shape[0] / squares.size))
