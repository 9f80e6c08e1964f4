"""Which tables have their noise drawn together, and what each group of them gets of epsilon.

Public sizes and a noisy number of rows decide; no other data. Tables drawn together (`dpbn.privacy.joint`) cost once.
Their noise is as small as if each had a Laplace table of its own with `equivalents` of the group's share, and those add
up to more than 1, the more so the smaller the tables: two of 2 cells have 0.77 each, seventeen of 3 cells 0.14.

Error of a family with f cells, read from a table of t cells with (equivalent) share e of epsilon: w a / (a + e), where
a = NOISE h (t/f)^READ / s, with READ_ROOT if the family is one variable, and s = rows epsilon / l1. That is in
proportion to the noise where it is small, and at most w: what is hopeless at this number of rows gets less, though
never below KEEP of the share it would have if errors had no limit, since sizes do not tell how sparse the data are.
Groups form greedily like merged tables (`strategy`), by the noise alone, and are compared with h = f^SIZE; tables for
the roots alone are added where that lowers the sum of errors. Shares minimise that sum with
h = SHARE_PART (f / (1 + f/F))^SHARE_SIZE, F = FULL root(s): of more cells than F most hold next to nothing.
Tables merge before it is known which of them are drawn together, so less merged ones are grouped too, and compared.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.learners.strategy import (
    LARGE,
    LEAST,
    can_count,
    family_weights,
    holders_of,
    holding,
    in_order,
    join_greedily,
    merged,
    of_their_own,
    table_costs,
)
from dpbn.margins import Names
from dpbn.network import Structure
from dpbn.privacy import joint

Array = NDArray[np.float64]
Group = tuple[frozenset[str], ...]

NOISE = 4.0  # a s of a family with h = 1 in a table of its own
SIZE = 0.6
SHARE_PART, SHARE_SIZE, FULL = 0.475, 0.8, 2.0
READ = 0.35
READ_ROOT = 0.42  # a margin of one variable is a sum over all cells: there shrinkage helps less
MERGE_CLEAR, MERGE_DROWNED = 0.42, 0.5  # size costs more where noise drowns the cells that are empty
CROWDED = 0.15  # the sum of what noise is to all families (`merge_exponent`) half way from the one to the other
LESS_MERGED = (0.5, 0.6)  # powers at which fewer tables merge, tried as well: tables drawn together cost less apart
BETTER = 0.985  # and taken where that lowers the predicted sum of errors to less than this part
LARGEST_PLANNED_RANK = 120  # of the noise of a block: less than the largest that can be drawn, joint.LARGEST_RANK
LARGEST_GROUP = 10_000  # cells of all its tables
LARGEST_BLOCK = 48  # cells of one table in a block: beyond, drawing together gains little and takes long
ALL_PAIRS = 300  # groups: up to this many, those without a common name are tried as well
KEEP = 0.5  # of the share that a group would have if errors had no limit: what looks hopeless may not be
ROUNDS = 60  # of `saturating_shares`
MOST_SIGNAL = 1e100  # beyond, errors would be 0 and nothing would say how to share


@dataclass(frozen=True)
class Grouping:
    """Groups of tables (names in schema order) and their shares of epsilon, which sum to 1."""

    groups: tuple[tuple[Names, ...], ...]
    shares: tuple[float, ...]


def plan_groups(
    structure: Structure,
    signal: float,
    public: Iterable[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Grouping:
    """Groups for all families but those of `public` nodes. `signal` is rows times epsilon over the l1 sensitivity."""
    schema, signal = structure.schema, min(signal, MOST_SIGNAL)
    matters, families = family_weights(structure, public, weights)
    usual = merge_exponent(schema, families, signal)
    tables = merged(structure, families, 0.5, usual)
    own = of_their_own(structure, tables, matters)
    wanted = dict(families)
    for names in own:
        wanted[names] = wanted.get(names, 0.0) + sum(matters[name] for name in names)
    less = [merged(structure, families, 0.5, power) for power in LESS_MERGED if power > usual]
    different = {frozenset(some): some for some in (tables, *less)}
    first, *others = [_joined(schema, table_costs(structure, some, families) | own) for some in different.values()]
    best = min(others, key=lambda groups: _least_error(schema, groups, wanted), default=first)
    better = _least_error(schema, best, wanted) < BETTER * _least_error(schema, first, wanted)
    groups = best if better else first
    choices = [groups, *([*groups, *roots] for roots in _root_groups(structure, groups, wanted))]
    chosen = min(choices, key=lambda some: _shared(schema, some, wanted, signal, _size)[0])
    _, shares = _shared(schema, chosen, wanted, signal, partial(_share_size, FULL * math.sqrt(signal)))
    ordered = sorted(
        (tuple(sorted(in_order(schema, names) for names in group)), share)
        for group, share in zip(chosen, shares.tolist(), strict=True)
    )
    return Grouping(tuple(group for group, _ in ordered), tuple(share for _, share in ordered))


def deviations(schema: Schema, plan: Grouping) -> dict[frozenset[str], float]:
    """Per table, the deviation of the noise on a cell, times epsilon over the l1 sensitivity."""
    result = {}
    for group, share in zip(plan.groups, plan.shares, strict=True):
        sets = tuple(frozenset(names) for names in group)
        for names, equivalent in zip(sets, equivalents(_block_sizes(schema, sets)), strict=True):
            result[names] = math.sqrt(2.0) / (share * equivalent)
    return result


def clear_error(
    structure: Structure,
    groups: Sequence[Sequence[Names]],
    shares: Sequence[float],
    public: Iterable[str] = (),
    weights: Mapping[str, float] | None = None,
) -> float:
    """The predicted sum of errors if none had a limit, up to a factor of all plans for one structure.

    A size beyond LARGE counts as LARGE: what is hopeless under any plan must not choose between them.
    """
    families, sets = family_weights(structure, public, weights)[1], [tuple(map(frozenset, group)) for group in groups]
    weight, half, owner = _errors(structure.schema, sets, families, _size, LARGE)
    return float(np.sum(weight * half / np.asarray(shares)[owner]))


def can_draw(structure: Structure, epsilon: float, l1: int) -> bool:
    """Whether every choice of `plan_groups` can be counted, and joint noise drawn for every group at every share.

    From public facts alone, so that what the count of rows and a look turn out to be cannot make a release fail.
    """
    largest = l1 * 2 * len(structure.nodes) * (1.0 + LEAST) / LEAST  # scale, times epsilon, which may be next to 0
    return largest * LARGEST_GROUP <= joint.LARGEST_WORK * epsilon and can_count(structure)


def merge_exponent(schema: Schema, families: Iterable[frozenset[str]], signal: float) -> float:
    """How much a table's size costs when tables merge: more where the families' noise drowns their counts."""
    crowding = NOISE * math.fsum(schema.cells(family) ** SIZE for family in families) / signal
    return MERGE_DROWNED - (MERGE_DROWNED - MERGE_CLEAR) / (1.0 + (crowding / CROWDED) ** 2)


@lru_cache(maxsize=100_000)
def equivalents(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Per table of a group, with these cells in a block: the share of a Laplace table with the same variance.

    To about 2 %. With D dimensions the radius r of the noise has mean square (D+1)(D+2), the common total has variance
    r^2 / (3 + 0.45 sum (m-2)), and around it cells vary as in the zero-sum part of the ball |z|_1 <= r.
    """
    if len(sizes) == 1:
        return (1.0,)
    dimensions = joint.rank(sizes)
    square = (dimensions + 1.0) * (dimensions + 2.0)
    total = square / (3.0 + 0.45 * sum(max(size - 2, 0) for size in sizes))
    return tuple(math.sqrt(2.0 / (square * _zero_sum_variance(size) + total / size**2)) for size in sizes)


@lru_cache(maxsize=1024)
def _zero_sum_variance(size: int) -> float:
    """Variance of a cell when z is uniform over |z|_1 <= 1, sum z = 0: by the number j of positive cells."""
    if size == 1:
        return 0.0
    if size > LARGEST_BLOCK:  # near the variance in the whole ball
        return 2.0 / ((size + 1) * (size + 2))
    ways = [math.comb(size, j) * math.comb(size - 2, j - 1) for j in range(1, size)]
    squares = [2.0 / (j + 1) + 2.0 / (size - j + 1) for j in range(1, size)]  # of both parts, for sums of 1
    mean = sum(way * square for way, square in zip(ways, squares, strict=True)) / sum(ways)
    return mean * 0.25 * (size - 1) / (size + 1) / size  # each part sums to x <= 1/2, with density x^(size - 2)


def _joined(schema: Schema, costs: Mapping[frozenset[str], float]) -> list[Group]:
    """Groups formed where a common draw pays, first of tables with a name in common."""
    cells = {names: schema.cells(names) for names in costs}  # a hundred thousand pairs ask for them
    roots: dict[Group, float] = {}

    def root(group: Group) -> float:
        if group not in roots:
            blocks = schema.cells(frozenset.intersection(*group))
            sizes = tuple([cells[names] // blocks for names in group])
            alone = len(group) > 1 and (
                max(sizes) > LARGEST_BLOCK
                or joint.rank(sizes) > LARGEST_PLANNED_RANK
                or blocks * sum(sizes) > LARGEST_GROUP
            )
            parts = zip(group, equivalents(sizes), strict=True)
            roots[group] = math.inf if alone else math.sqrt(math.fsum(costs[names] / part for names, part in parts))
        return roots[group]

    def gain(one: Group, other: Group) -> float:
        return 1.0 - root(one + other) / (root(one) + root(other))

    alone: list[Group] = [(names,) for names in sorted(costs, key=sorted)]
    groups = join_greedily(alone, gain, operator.add, lambda group: frozenset().union(*group))
    if len(groups) > ALL_PAIRS:
        return groups
    return join_greedily(groups, gain, operator.add, lambda group: ("any",))  # all have that in common


def _block_sizes(schema: Schema, group: Group) -> tuple[int, ...]:
    common = schema.cells(frozenset.intersection(*group))
    return tuple(schema.cells(names) // common for names in group)


def _root_groups(
    structure: Structure, groups: Sequence[Group], wanted: Mapping[frozenset[str], float]
) -> list[list[Group]]:
    """Tables for roots that stand in larger tables only: all of them, or the part that is summed up the most."""
    schema = structure.schema
    tables = [names for group in groups for names in group]
    smallest = {
        node: min(schema.cells(names) for names in tables if node in names) / schema[node].size
        for node in structure.nodes
        if not structure.parents(node) and frozenset([node]) in wanted
    }
    order = sorted((node for node, times in smallest.items() if times > 1), key=lambda node: -smallest[node])
    result = []
    for part in (len(order), len(order) * 3 // 4, len(order) // 2, len(order) // 4):
        chunks: list[Group] = []
        rank = LARGEST_PLANNED_RANK
        for node in order[:part]:
            if rank + schema[node].size > LARGEST_PLANNED_RANK:
                chunks.append(())
                rank = 1
            chunks[-1] += (frozenset([node]),)
            rank += schema[node].size - 1
        if chunks:
            result.append(chunks)
    return result


def _size(cells: float) -> float:
    return cells**SIZE


def _share_size(full: float, cells: float) -> float:
    return SHARE_PART * (cells / (1.0 + cells / full)) ** SHARE_SIZE


def _shared(
    schema: Schema,
    groups: Sequence[Group],
    wanted: Mapping[frozenset[str], float],
    signal: float,
    size: Callable[[float], float],
) -> tuple[float, Array]:
    """The shares that minimise the predicted sum of errors, after that sum."""
    weight, half, owner = _errors(schema, groups, wanted, size)
    return saturating_shares(weight, half * NOISE / signal, owner, len(groups))


def _least_error(schema: Schema, groups: Sequence[Group], wanted: Mapping[frozenset[str], float]) -> float:
    """The least predicted sum of errors if none had a limit: in closed form, up to a factor of all groupings."""
    weight, half, owner = _errors(schema, groups, wanted, _size)
    return float(np.square(np.sqrt(np.bincount(owner, weight * half, len(groups))).sum()))


def _errors(
    schema: Schema,
    groups: Sequence[Group],
    wanted: Mapping[frozenset[str], float],
    size: Callable[[float], float],
    largest: float = math.inf,
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Per family its weight w, its a as a share of its group but for NOISE and s, and its group.

    `size` says what a family of so many cells counts for; beyond `largest` cells count as that many.
    """
    part: dict[frozenset[str], tuple[int, float]] = {}
    for index, group in enumerate(groups):
        for names, equivalent in zip(group, equivalents(_block_sizes(schema, group)), strict=True):
            part[names] = index, equivalent
    holders = holders_of(dict(enumerate(part)))
    tables = list(part)
    weight, half, owner = [], [], []
    for family, importance in wanted.items():
        inside = holding(holders, family)
        names = min((tables[k] for k in inside), key=lambda names: (schema.cells(names), sorted(names)))
        index, equivalent = part[names]
        cells = min(schema.cells(family), largest)
        summed = (min(schema.cells(names), largest) / cells) ** (READ_ROOT if len(family) == 1 else READ)
        weight.append(importance)
        half.append(size(cells) * summed / equivalent)
        owner.append(index)
    return np.array(weight), np.array(half), np.array(owner)


def saturating_shares(weight: Array, half: Array, owner: NDArray[np.intp], groups: int) -> tuple[float, Array]:
    """Shares e (one per group, sum 1) that minimise the sum of weight * half / (half + e[owner]), after that sum.

    At the minimum the derivative is the same for all groups above the least share. Each round multiplies a share by the
    root of its derivative: exact in one round where all errors are far from their limit.
    """
    clear = np.sqrt(np.bincount(owner, weight * half, groups))  # in proportion to the best shares far from the limit
    least = np.maximum(KEEP * clear / clear.sum(), LEAST / groups)
    shares = np.full(groups, 1.0 / groups)
    for _ in range(ROUNDS):
        slope = np.bincount(owner, weight * half / np.square(half + shares[owner]), groups)
        shares = _at_least(shares * np.sqrt(slope), least)
    return float(np.sum(weight * half / (half + shares[owner]))), shares


def _at_least(parts: Array, least: Array) -> Array:
    """Shares in proportion to `parts` that sum to 1, but none below its `least` (which sum to less than 1)."""
    free = np.ones(len(parts), dtype=np.bool_)
    while True:
        scale = (1.0 - least[~free].sum()) / parts[free].sum()
        low = free & (parts * scale < least)
        if not low.any():
            return np.where(free, parts * scale, least)
        free &= ~low
