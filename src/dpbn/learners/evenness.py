"""How even the rows of a CPT are, and about what: a prior for weak rows, learned from the noisy tables themselves.

Rows of a node with S states are taken as draws from a Dirichlet distribution. Its concentration a per state says how
even they are: far above 1 all rows are near the uniform one, far below most of a row is on few states. The noisy counts
(variance v) of a row with n records tell it: their part that sums to 0, less n/S, has per degree of freedom the mean
square

    v + n/S + n^2 / (S (S a + 1)),

of noise, of the sample and of the row itself. Where noise drowns a node's rows, its likelihood over the grid of a says
little, so the weights of the grid are those of all nodes of the network (expectation-maximisation).

This is about uniform rows. That errs on the safe side: rows that are alike but not even count as sharp. A node's margin
is known better than its rows, though, and rows need not pull it to uniform with them: `visible` says how far it stands
out of the noise, the positive part of 1 - DOUBT times noise over what is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.stein import Rows

Array = NDArray[np.float64]

GRID = np.geomspace(0.08, 10.0, 17)  # of concentrations
STEPS = 30  # of expectation-maximisation
SPREAD = 0.3  # nodes' worth of weight that every point of the grid has beforehand
EVEN, SHARPLY = 0.5, 8  # the concentration of rows that are half even, and how quickly that turns
DOUBT = 2.0


@dataclass(frozen=True)
class Evenness:
    """A prior for the rows of one CPT; one number per repetition."""

    part: Array  # from 0, rows are sharp and nothing is known of them, to 1
    records: Array  # what the prior is worth in every row
    visible: Array  # from 0, rows are even about the uniform one, to 1, about the node's margin


def evenness(rows: Mapping[str, Rows], margins: Mapping[str, tuple[Array, float]]) -> dict[str, Evenness]:
    """Of every CPT. `margins` has the node's noisy counts (repetition, state) and their variance."""
    result = {}
    for node, concentration in concentrations(rows).items():
        states = rows[node].seen.shape[-1]
        part = 1.0 / (1.0 + (EVEN / concentration) ** SHARPLY)
        result[node] = Evenness(part, states * concentration, visible(*margins[node]))
    return result


def concentrations(rows: Mapping[str, Rows]) -> dict[str, Array]:
    """Per node and repetition, the mean of a in logarithms."""
    if not rows:
        return {}
    scores = np.stack([_log_likelihood(row) for row in rows.values()], axis=1)  # repetition, node, grid
    likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.ones((len(likely), 1, len(GRID)))
    for _ in range(STEPS):
        posterior = likely * weights
        posterior /= posterior.sum(axis=-1, keepdims=True)
        weights = posterior.sum(axis=1, keepdims=True) + SPREAD
    means = np.exp(posterior @ np.log(GRID))
    return {node: means[:, index] for index, node in enumerate(rows)}


def _log_likelihood(rows: Rows) -> Array:
    """Per repetition, of every concentration of the grid."""
    states = rows.seen.shape[-1]
    seen = rows.seen.reshape(len(rows.seen), -1, states)
    records = rows.records.reshape(len(seen), -1)
    squares = np.square(seen - seen.mean(axis=-1, keepdims=True)).sum(axis=-1)
    free = states - 1
    result = np.empty((len(seen), len(GRID)))
    for index, concentration in enumerate(GRID):
        spread = rows.variance + records / states + np.square(records) / (states * (states * concentration + 1.0))
        result[:, index] = -0.5 * (squares / spread + free * np.log(spread)).sum(axis=-1)
    return result


def visible(margin: Array, variance: float) -> Array:
    """Per repetition, how far noisy counts of a node's states (repetition, state) differ from even ones."""
    states = margin.shape[-1]
    seen = np.square(margin - margin.mean(axis=-1, keepdims=True)).sum(axis=-1)
    return np.asarray(np.maximum(0.0, 1.0 - DOUBT * (states - 1) * variance / np.maximum(seen, 1e-300)))
