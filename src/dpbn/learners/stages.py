"""A split of the budget that depends on the data, by gradual release: look coarsely, decide, refine.

Every table of the strategy is shown at a part of its public share; an estimate from these coarse tables predicts
the error of every table at every finer level; the rest of the budget goes where it buys the largest fall. The
fine tables are the coarse ones with noise taken away (`privacy/gradual.py`), so the looking costs nothing.

Predicted error of a family in a table with noise variance v: a cell with expected count mu is guessed with variance
mu v / (mu + v) (see `refinement`), so a family cell that sums such cells has the root of their sum as deviation.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.estimate import estimate, family_homes, family_margin, layout
from dpbn.learners.influence import influences
from dpbn.learners.refinement import CHEAP_CELLS, model_margins
from dpbn.learners.strategy import Strategy
from dpbn.margins import Names
from dpbn.measure import Curator
from dpbn.measurement import Ladder, Measurement, Moments, Request, estimated_rows
from dpbn.network import Structure
from dpbn.privacy import accounting
from dpbn.workload import Workload

Array = NDArray[np.float64]

STEP = 1.25  # of epsilon between two rungs, about
MOST = 2.5  # times its public share is the finest level a table can reach


def measure_in_stages(
    structure: Structure,
    curator: Curator,
    strategy: Strategy,
    part: float,
    *,
    prior: Mapping[str, Array],
    public_cpts: Mapping[str, Array],
    workload: Workload | None = None,
) -> tuple[Measurement, ...]:
    """The finest measurement of every table, after showing all at `part` of their public share and deciding."""
    rungs = math.ceil(-math.log(part) / math.log(STEP))
    above = math.floor(math.log(MOST) / math.log(STEP))
    factors = [*(part ** (1 - rung / rungs) for rung in range(rungs)), *(STEP**rung for rung in range(above + 1))]
    shares = accounting.split(curator.budget.epsilon, strategy.shares)
    ladders = [
        Ladder(names, tuple(accounting.laplace_scale(share * factor, curator.sensitivity.l1) for factor in factors))
        for names, share in zip(strategy.tables, shares, strict=True)
    ]
    shown = curator.gradual(ladders, stage="one")
    margins = model_margins(structure, strategy.tables)
    if margins.largest > CHEAP_CELLS:  # nothing to predict with: the public split
        levels = [rungs] * len(ladders)
    else:
        cpts = estimate(structure, shown.measurements, prior=prior, public_cpts=public_cpts)
        rows = estimated_rows(shown.measurements)
        expected = [rows * table for table in margins({node: cpt[None] for node, cpt in cpts.items()})]
        weights = _weights(structure, workload, cpts)
        scales = [ladder.scales for ladder in ladders]
        errors = predicted_errors(structure, strategy.tables, expected, scales, weights)
        losses = [
            np.array([curator.loss(Request(ladder.names, scale)) for scale in ladder.scales]) for ladder in ladders
        ]
        levels = best_levels(errors, losses, curator.budget.epsilon)
    finer = {ladder.names: level for ladder, level in zip(ladders, levels, strict=True) if level > 0}
    shown.refine(finer, stage="two")
    return shown.measurements


def _weights(structure: Structure, workload: Workload | None, cpts: Mapping[str, Array]) -> dict[str, float]:
    """What a unit of deviation in a cell of each node's family does to the questions, at the network estimated."""
    if not workload:
        return dict.fromkeys(structure.nodes, 1.0)
    found = influences(structure, workload, cpts)
    return {node: weight / math.sqrt(structure.cells(node)) for node, weight in found.items()}


def predicted_errors(
    structure: Structure,
    tables: tuple[Names, ...],
    expected: Sequence[Array],
    scales: Sequence[Sequence[float]],
    weights: Mapping[str, float],
) -> list[Array]:
    """Per table, the weighted sum of deviations of the cells of the families read from it, at every level."""
    plan = layout(structure.schema, tables)
    homes = family_homes(structure, plan, [Moments.alone(2 * ladder[0] ** 2) for ladder in scales])
    errors = [np.zeros(len(ladder)) for ladder in scales]
    for node, index in homes.items():
        for level, scale in enumerate(scales[index]):
            spread = expected[index] * (2 * scale**2 / (expected[index] + 2 * scale**2))
            family = family_margin(structure.schema, plan, index, spread, structure.family(node).names)
            errors[index][level] += weights[node] * float(np.sqrt(family).sum())
    return errors


def best_levels(errors: Sequence[Array], losses: Sequence[Array], budget: float) -> list[int]:
    """One level per table within `budget`: again and again the step, over one rung or several, that buys most."""
    levels = [0] * len(errors)
    exact = [[Fraction(float(loss)) for loss in rungs] for rungs in losses]
    left = Fraction(budget) - sum(rungs[0] for rungs in exact)
    while True:
        best: tuple[float, int, int] | None = None
        for index, (error, loss, level) in enumerate(zip(errors, losses, levels, strict=True)):
            steps = np.arange(level + 1, bisect_right(exact[index], exact[index][level] + left))
            if len(steps):
                rates = (error[level] - error[steps]) / (loss[steps] - loss[level])
                top = int(np.argmax(rates))
                if best is None or rates[top] > best[0]:
                    best = (float(rates[top]), index, int(steps[top]))
        if best is None:
            return levels
        _, index, level = best
        left -= exact[index][level] - exact[index][levels[index]]
        levels[index] = level
