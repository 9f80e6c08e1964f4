"""What to measure, from public sizes alone: families merged into tables, and each table's share of the budget.

For tables with noise of their own: with delta, first looks (`stages`), and as the start of `groups`.

A family F inside another family needs no table of its own. Two tables merge into one over their union where
that pays: one table at the summed budget has less noise per cell, but a family is then a sum of more cells.

Cost of a table t with share e of the budget: cells_t^MERGE / e times the sum over its families of cells^FAMILY.
(With both exponents 1/2 this is the summed deviation of all cells of the families. Shrinkage makes the many
empty cells of large tables and families cheaper than that, hence the smaller exponents.) Shares of epsilon that
minimise the sum of costs are in proportion to the roots of the numerators c, and the minimum is the square of
the sum of those roots: so merging pays exactly if it lowers the sum of roots. With delta, shares are of the
precision (of rho, if noise is Gaussian), deviations in proportion to 1/root(share), and the same holds with c^(2/3).

A table of many thousand cells stays hopeless whatever it is given. So beyond LARGE cells a size counts as LARGE when
the budget is split, and a node that stands in such tables only gets a table of its own: its margin can be told.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from dpbn.domain import Schema
from dpbn.margins import Names
from dpbn.network import MAX_TABLE_AXES, MAX_TOTAL_CELLS, Structure

Key = TypeVar("Key")
Item = TypeVar("Item")

MERGE = 0.35
FAMILY = 0.25
LARGE = 1000
LARGEST_MERGED = 5000  # cells of a table that others merge to
LEAST = 0.01  # of an equal share: every CPT is released, so every table is measured well enough to be no nuisance
OF_EPSILON, OF_PRECISION = 1 / 2, 2 / 3  # powers of the costs that shares are in proportion to


@dataclass(frozen=True)
class Strategy:
    """Tables to measure (names in schema order) and their shares of epsilon or of the precision, which sum to 1."""

    tables: tuple[Names, ...]
    shares: tuple[float, ...]


def plan_tables(
    structure: Structure,
    public: Iterable[str] = (),
    weights: Mapping[str, float] | None = None,
    *,
    power: float = OF_EPSILON,
) -> Strategy:
    """The tables for all families but those of `public` nodes, whose CPTs are known.

    `weights` say how much an error in each node's CPT matters; 1 by default. `power` says what is shared.
    """
    matters, families = family_weights(structure, public, weights)
    costs = table_costs(structure, merged(structure, families, power, MERGE), families)
    costs |= of_their_own(structure, costs, matters)
    tables = sorted(in_order(structure.schema, names) for names in costs)
    parts = [costs[frozenset(names)] ** power for names in tables]
    least = LEAST * math.fsum(parts) / max(len(parts), 1)
    parts = [max(part, least) for part in parts]
    whole = math.fsum(parts)
    return Strategy(tuple(tables), tuple(part / whole for part in parts))


def can_count(structure: Structure) -> bool:
    """Whether the tables of every choice can be counted: families, what merging may add to each, one for every node."""
    cells = sum(structure.cells(node) + LARGEST_MERGED + structure.schema[node].size for node in structure.nodes)
    return cells <= MAX_TOTAL_CELLS


def family_weights(
    structure: Structure, public: Iterable[str], weights: Mapping[str, float] | None
) -> tuple[dict[str, float], dict[frozenset[str], float]]:
    """How much each node that is not public matters, and its family: no two nodes of a DAG share one."""
    known = set(public)
    matters = {node: 1.0 if weights is None else weights[node] for node in structure.nodes if node not in known}
    return matters, {frozenset(structure.family(node).names): weight for node, weight in matters.items()}


def table_costs(
    structure: Structure, tables: Iterable[frozenset[str]], families: Mapping[frozenset[str], float]
) -> dict[frozenset[str], float]:
    """The numerator of every table's cost, each family counted where the table is smallest."""
    cells = {names: structure.schema.cells(names) for names in sorted(tables, key=sorted)}
    holders = holders_of({names: names for names in cells})
    weights = dict.fromkeys(cells, 0.0)
    for family, weight in families.items():
        home = min(holding(holders, family), key=lambda names: (cells[names], sorted(names)))
        weights[home] += weight * _counted(structure.schema.cells(family)) ** FAMILY
    return {names: _counted(size) ** MERGE * weights[names] for names, size in cells.items()}


def of_their_own(
    structure: Structure, tables: Iterable[frozenset[str]], matters: Mapping[str, float]
) -> dict[frozenset[str], float]:
    """Tables for nodes that stand in large tables only, with their costs: as a margin, and as a family if a root."""
    schema = structure.schema
    holders = holders_of({names: names for names in tables})
    return {
        frozenset([node]): (1.0 if structure.parents(node) else 2.0) * weight * schema[node].size ** (MERGE + FAMILY)
        for node, weight in matters.items()
        if frozenset([node]) not in holders[node] and min(schema.cells(names) for names in holders[node]) > LARGE
    }


def _counted(cells: int) -> int:
    return min(cells, LARGE)


def in_order(schema: Schema, names: Iterable[str]) -> Names:
    """`names` in the order of the schema."""
    return tuple(sorted(names, key=schema.position))


def holders_of(tables: Mapping[Key, Iterable[str]]) -> dict[str, set[Key]]:
    """Per name the keys of the tables that contain it."""
    holders: dict[str, set[Key]] = {}
    for key, names in tables.items():
        for name in names:
            holders.setdefault(name, set()).add(key)
    return holders


def holding(holders: Mapping[str, set[Key]], names: Iterable[str]) -> set[Key]:
    """The keys of the tables that contain all of `names`, of which there must be one."""
    return set.intersection(*(holders.get(name, set()) for name in names))


def maximal(families: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The families that are not inside another, in a fixed order."""
    distinct = sorted(set(families), key=lambda f: (-len(f), sorted(f)))
    holders: dict[str, set[frozenset[str]]] = {}
    result = []
    for family in distinct:
        if not family or not holding(holders, family):
            result.append(family)
            for name in family:
                holders.setdefault(name, set()).add(family)
    return result


class _Merged(NamedTuple):
    names: frozenset[str]
    cells: int
    weight: float  # of the families inside


def merged(
    structure: Structure, families: Mapping[frozenset[str], float], power: float, exponent: float
) -> list[frozenset[str]]:
    """The maximal families, merged where that pays, the largest relative gain first."""
    schema = structure.schema
    tables = maximal(families)
    holders = holders_of(dict(enumerate(tables)))
    cells, weights = [schema.cells(names) for names in tables], [0.0] * len(tables)
    for family in sorted(families, key=sorted):
        home = min(holding(holders, family), key=lambda index: (cells[index], index))
        weights[home] += families[family] * schema.cells(family) ** FAMILY

    def part(table: _Merged) -> float:
        return float((table.cells**exponent * table.weight) ** power)

    def union(one: _Merged, other: _Merged) -> _Merged:
        names = one.names | other.names
        return _Merged(names, schema.cells(names), one.weight + other.weight)

    def gain(one: _Merged, other: _Merged) -> float:
        both = union(one, other)
        if both.cells > LARGEST_MERGED or len(both.names) > MAX_TABLE_AXES:
            return 0.0
        return 1.0 - part(both) / (part(one) + part(other))

    apart = map(_Merged, tables, cells, weights)
    return [table.names for table in join_greedily(apart, gain, union, lambda table: table.names)]


def join_greedily(
    items: Iterable[Item],
    gain: Callable[[Item, Item], float],
    join: Callable[[Item, Item], Item],
    names: Callable[[Item], Iterable[str]],
) -> list[Item]:
    """While some pair of items that share one of their `names` gains, `join` the pair that gains most."""
    present = dict(enumerate(items))
    holders = holders_of({index: names(item) for index, item in present.items()})
    queue: list[tuple[float, int, int]] = []

    def consider(i: int, j: int) -> None:
        if (found := gain(present[i], present[j])) > 0:
            heapq.heappush(queue, (-found, i, j))

    def near(index: int) -> set[int]:
        return {other for name in names(present[index]) for other in holders[name]} - {index}

    for i in present:
        for j in near(i):
            if i < j:
                consider(i, j)
    fresh = itertools.count(len(present))
    while queue:
        _, i, j = heapq.heappop(queue)
        if i not in present or j not in present:
            continue
        new = next(fresh)
        present[new] = join(present.pop(i), present.pop(j))
        for name in names(present[new]):
            holders[name] -= {i, j}
            holders[name].add(new)
        for other in sorted(near(new)):
            consider(other, new)
    return list(present.values())
