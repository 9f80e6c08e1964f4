"""What to measure, from public sizes alone: families merged into tables, and each table's share of the budget.

A family F inside another family needs no table of its own. Two tables merge into one over their union where
that pays: one table at the summed budget has less noise per cell, but a family is then a sum of more cells.

Cost of a table t with share e of the budget: cells_t^MERGE / e times the sum over its families of cells^FAMILY.
(With both exponents 1/2 this is the summed deviation of all cells of the families. Shrinkage makes the many
empty cells of large tables and families cheaper than that, hence the smaller exponents.) Shares of epsilon that
minimise the sum of costs are in proportion to the roots of the numerators c, and the minimum is the square of
the sum of those roots: so merging pays exactly if it lowers the sum of roots. Gaussian noise has deviations
in proportion to 1/root(rho), and the same holds with c^(2/3) for shares of rho.

A table of thousands of cells stays hopeless whatever it is given, so once the tables are chosen the shares count
with an error that saturates (`shares`), at a typical size of data: NOISE is what the whole budget's noise on a cell
is taken to be, against the number of records. Where the tables that hold a node are that hopeless,
the node gets a table of its own: its margin at least can be told.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dpbn.learners.shares import Error, best_shares
from dpbn.measure import Names
from dpbn.network import Structure
from dpbn.privacy import accounting
from dpbn.privacy.guarantee import Budget, Sensitivity

MERGE = 0.35
FAMILY = 0.25
NOISE = 0.0003  # Laplace noise of the whole budget, as a part of the records, times the unit of the costs above
HOPELESS = 0.1  # of a node's margin lost in every table that holds it: only then it may get a table of its own
LARGEST_MERGED = 5000
POWERS = {"laplace": 1 / 2, "gaussian": 2 / 3}


@dataclass(frozen=True)
class Strategy:
    """Tables to measure (names in schema order) and their shares of the budget, which sum to 1.

    Shares are of epsilon for Laplace noise and of rho for Gaussian noise; `cost` is the predicted sum of the errors of
    all families, as `shares` has them.
    """

    tables: tuple[Names, ...]
    cells: tuple[int, ...]
    shares: tuple[float, ...]
    mechanism: str
    cost: float

    def __str__(self) -> str:
        lines = [f"{len(self.tables)} tables, {sum(self.cells)} cells, {self.mechanism} noise"]
        for names, cells, share in sorted(zip(self.tables, self.cells, self.shares, strict=True), key=lambda r: -r[2]):
            lines.append(f"  {share:7.2%}  {cells:7d} cells  {', '.join(names)}")
        return "\n".join(lines)


def plan_tables(
    structure: Structure,
    budget: Budget,
    sensitivity: Sensitivity,
    public: Iterable[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Strategy:
    """The tables for all families but those of `public` nodes, whose CPTs are known.

    Laplace noise, or with delta > 0 Gaussian noise where that is predicted to be less (many tables). `weights`
    say how much an error in each node's CPT matters; 1 by default.
    """
    laplace = _strategy(structure, public, weights, "laplace", NOISE)
    if budget.delta == 0:
        return laplace
    rho = accounting.rho_budget(budget.epsilon, budget.delta)
    # mean absolute noise on one cell at the whole budget: l1 / epsilon, or root(2 / pi) times l2 / root(2 rho)
    ratio = math.sqrt(sensitivity.l2_squared / (math.pi * rho)) / (sensitivity.l1 / budget.epsilon)
    gaussian = _strategy(structure, public, weights, "gaussian", NOISE * ratio)
    return min(laplace, gaussian, key=lambda strategy: strategy.cost)


def _strategy(
    structure: Structure,
    public: Iterable[str],
    weights: Mapping[str, float] | None,
    mechanism: str,
    noise: float,
) -> Strategy:
    schema = structure.schema
    known = set(public)
    matters = {node: 1.0 if weights is None else weights[node] for node in structure.nodes if node not in known}
    families: dict[frozenset[str], float] = {}
    for node, weight in matters.items():
        family = frozenset(structure.family(node).names)
        families[family] = families.get(family, 0.0) + weight
    merged = _merge(structure, families, POWERS[mechanism])
    shares, cost = _shares(structure, merged, matters, noise, mechanism == "gaussian")
    tables = sorted(tuple(sorted(names, key=schema.position)) for names in shares)
    return Strategy(
        tuple(tables),
        tuple(schema.cells(names) for names in tables),
        tuple(shares[frozenset(names)] for names in tables),
        mechanism,
        cost,
    )


def _shares(
    structure: Structure,
    merged: Mapping[frozenset[str], tuple[float, float]],
    matters: Mapping[str, float],
    noise: float,
    gaussian: bool,
) -> tuple[dict[frozenset[str], float], float]:
    """The share of every table and of tables for single nodes where they pay, and the error of the families."""
    schema = structure.schema
    tables = dict(merged)
    holders: dict[str, list[frozenset[str]]] = {node: [] for node in structure.nodes}
    for names in merged:
        for name in names:
            holders[name].append(names)
    while True:
        errors = _errors(tables.values(), noise, gaussian)
        shares, price = best_shares(errors)
        share = dict(zip(tables, shares.tolist(), strict=True))
        own = {}
        for node, weight in matters.items():
            alone = frozenset([node])
            if alone in tables or not weight:
                continue
            size = schema[node].size
            held = [(schema.cells(names) ** MERGE * size**FAMILY, 1.0) for names in holders[node]]
            lost = _errors(held, noise, gaussian).at(np.array([share[names] for names in holders[node]])).min()
            if lost < HOPELESS:
                continue
            entry = (float(size ** (MERGE + FAMILY)), 1.0 if structure.parents(node) else 2.0)
            single = _errors([entry], noise, gaussian)
            wanted = single.wanted(price / weight)
            if float(single.at(wanted)[0] + price / weight * wanted[0]) < entry[1] * lost:
                own[alone] = (weight * entry[1] * entry[0], weight * entry[1])
        if not own:
            return share, float(errors.at(shares)[: len(merged)].sum())
        tables |= own


def _errors(entries: Iterable[tuple[float, float]], noise: float, gaussian: bool) -> Error:
    numerators, weights = np.array(list(entries)).T
    return Error(weights, noise * numerators / weights, gaussian)


def maximal(families: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The families that are not inside another, in a fixed order."""
    distinct = sorted(set(families), key=lambda f: (-len(f), sorted(f)))
    holders: dict[str, set[frozenset[str]]] = {}
    result = []
    for family in distinct:
        if not family or not set.intersection(*(holders.get(name, set()) for name in family)):
            result.append(family)
            for name in family:
                holders.setdefault(name, set()).add(family)
    return result


def _merge(
    structure: Structure, families: Mapping[frozenset[str], float], power: float
) -> dict[frozenset[str], tuple[float, float]]:
    """Greedy: while some pair of overlapping tables gains, merge the pair with the largest relative gain.

    Returns the tables, each with the numerator of its cost and the weight of its families.
    """
    schema = structure.schema
    tables: dict[int, frozenset[str]] = dict(enumerate(maximal(families)))
    holders: dict[str, set[int]] = {}
    for index, names in tables.items():
        for name in names:
            holders.setdefault(name, set()).add(index)
    cells = {index: schema.cells(names) for index, names in tables.items()}
    weights, plain = dict.fromkeys(tables, 0.0), dict.fromkeys(tables, 0.0)
    for family in sorted(families, key=sorted):
        inside = set.intersection(*(holders[name] for name in family))
        home = min(inside, key=lambda index: (cells[index], index))
        weights[home] += families[family] * schema.cells(family) ** FAMILY
        plain[home] += families[family]

    def part(size: int, weight: float) -> float:
        return float((size**MERGE * weight) ** power)

    queue: list[tuple[float, int, int]] = []

    def consider(i: int, j: int) -> None:
        union = schema.cells(tables[i] | tables[j])
        apart = part(cells[i], weights[i]) + part(cells[j], weights[j])
        gain = 1.0 - part(union, weights[i] + weights[j]) / apart
        if gain > 0 and union <= LARGEST_MERGED:
            heapq.heappush(queue, (-gain, i, j))

    def neighbours(index: int) -> set[int]:
        return {other for name in tables[index] for other in holders[name]} - {index}

    for i in tables:
        for j in neighbours(i):
            if i < j:
                consider(i, j)
    fresh = itertools.count(len(tables))
    while queue:
        _, i, j = heapq.heappop(queue)
        if i not in tables or j not in tables:
            continue
        new = next(fresh)
        tables[new] = tables[i] | tables[j]
        cells[new] = schema.cells(tables[new])
        weights[new], plain[new] = weights[i] + weights[j], plain[i] + plain[j]
        for old in (i, j):
            for name in tables.pop(old):
                holders[name].discard(old)
        for name in tables[new]:
            holders[name].add(new)
        for other in sorted(neighbours(new)):
            consider(min(new, other), max(new, other))
    return {names: (cells[index] ** MERGE * weights[index], plain[index]) for index, names in tables.items()}
