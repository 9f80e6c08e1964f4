"""PriView: noisy views that cover every pair of attributes, made consistent, answered by maximum entropy.

Output: CPTs from maximum-entropy family tables.
Guarantee: epsilon-DP, discrete Laplace noise on every cell of w views, epsilon / w each.
Sensitivity: adding or removing a record changes one cell of each view by 1; views compose.
Source: Qardaji, Yang, Li, "PriView: practical differentially private release of marginal contingency tables"
(SIGMOD 2014): views from a covering design (here greedy, with as many attributes per view as `VIEW_CELLS` allows;
the source suggests views of 8 binary attributes), mutual consistency, ripple to remove negative cells, consistency
again, and for a set inside no view the maximum-entropy table that matches every view's projection (here by iterative
proportional fitting).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dpbn.evaluate.baselines.common import Array, cpts_from_tables, families, maximal, measure_tables
from dpbn.learners.consistency import make_consistent
from dpbn.margins import Names, project, spread
from dpbn.measure import CountSource
from dpbn.network import Structure

VIEW_CELLS = 256
RIPPLE_BELOW, RIPPLE_ROUNDS, FITTING_ROUNDS = -1.0, 30, 60


@lru_cache(maxsize=32)
def covering_views(structure: Structure) -> tuple[Names, ...]:
    """Views of at most VIEW_CELLS cells that together contain every pair: grown greedily by pairs newly covered."""
    schema, nodes = structure.schema, structure.nodes
    uncovered = {frozenset(pair) for pair in itertools.combinations(nodes, 2)} or {frozenset(nodes)}
    views: list[Names] = []
    while uncovered:
        view = list(min(uncovered, key=sorted))
        while True:
            fitting = [n for n in nodes if n not in view and schema.cells([*view, n]) <= VIEW_CELLS]
            gains = {n: sum(frozenset((n, other)) in uncovered for other in view) for n in fitting}
            best = max(gains, key=lambda n: gains[n] / schema[n].size, default=None)
            if best is None or not gains[best]:
                break
            view.append(best)
        views.append(tuple(name for name in nodes if name in view))
        uncovered -= {frozenset(pair) for pair in itertools.combinations(view, 2)} | {frozenset(view)}
    return tuple(views)


def learn_priview(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """Views, consistency, ripple, consistency, maximum entropy."""
    views = covering_views(structure)
    tables = measure_tables(source, epsilon, seed, dict.fromkeys(views, epsilon / len(views)))
    equal = dict.fromkeys(views, 1.0)
    for _ in range(2):
        agreed = make_consistent({view: (view, tables[view]) for view in views}, equal)
        tables = {view: ripple(agreed[view]) for view in views}
    agreed = make_consistent({view: (view, tables[view]) for view in views}, equal)
    by_view = {view: np.maximum(agreed[view], 0.0) for view in views}
    wanted = families(structure)
    return cpts_from_tables({node: maximum_entropy(by_view, names, structure) for node, names in wanted.items()})


def ripple(table: Array) -> Array:
    """Raise each cell far below 0 to 0 and take the difference evenly from its neighbours (one state changed)."""
    values = np.array(table)
    for _ in range(RIPPLE_ROUNDS):
        low = np.argwhere(values < RIPPLE_BELOW)
        if not len(low):
            break
        for cell in map(tuple, low):
            debt = values[cell]
            values[cell] = 0.0
            neighbours = [
                (*cell[:axis], state, *cell[axis + 1 :])
                for axis in range(values.ndim)
                for state in range(values.shape[axis])
                if state != cell[axis]
            ]
            for neighbour in neighbours:
                values[neighbour] += debt / len(neighbours)
    return values


def maximum_entropy(views: Mapping[Names, Array], names: Names, structure: Structure) -> Array:
    """The table over `names` of largest entropy that matches what every view says about a part of it."""
    parts = maximal([tuple(name for name in names if name in view) for view in views])
    margins = {
        part: np.mean([project(table, view, part) for view, table in views.items() if set(part) <= set(view)], axis=0)
        for part in parts
        if part
    }
    if names in margins:
        return np.asarray(margins[names])
    total = float(np.mean([margin.sum() for margin in margins.values()]))
    shape = structure.schema.shape(names)
    table = np.full(shape, max(total, 1.0) / np.prod(shape))
    for _ in range(FITTING_ROUNDS):
        for part, margin in margins.items():
            target = margin * (total / margin.sum()) if margin.sum() > 0 else margin
            current = project(table, names, part)
            ratio = np.divide(target, current, out=np.zeros_like(current), where=current > 0)
            table = table * spread(ratio, part, names)
    return table
