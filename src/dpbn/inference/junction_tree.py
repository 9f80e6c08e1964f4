"""Junction trees: cliques, separators and a root, built from an elimination; structure only, no tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpbn.elimination import Elimination, bits
from dpbn.inference.contraction import Scope

SMALL_CLIQUE = 64  # cells: joining neighbours up to here saves more calls than it costs cells


@dataclass(frozen=True)
class JunctionTree:
    """A rooted tree of cliques, numbered parents first; all scopes follow one order of variables.

    `home[v]` is the smallest clique that holds v.
    """

    cliques: tuple[Scope, ...]
    separators: tuple[Scope, ...]  # to the parent; () at the root
    parents: tuple[int, ...]  # -1 at the root
    children: tuple[tuple[int, ...], ...]
    depth: tuple[int, ...]
    home: tuple[int, ...]
    masks: tuple[int, ...]
    cells: tuple[int, ...]

    def holding(self, mask: int) -> int | None:
        """The smallest clique that holds all of `mask`."""
        found = [i for i, its in enumerate(self.masks) if its & mask == mask]
        return min(found, key=lambda i: self.cells[i]) if found else None

    @property
    def width(self) -> int:
        return max(len(clique) for clique in self.cliques) - 1


def junction_tree(elimination: Elimination, sizes: Sequence[int]) -> JunctionTree:
    """Maximal cliques of an elimination of all variables, joined where that is cheap, rooted at the middle."""
    position = {v: i for i, v in enumerate(elimination.order)}
    bags = dict(enumerate(elimination.cliques))
    links: dict[int, set[int]] = {i: set() for i in bags}
    first_root: int | None = None
    for i, (vertex, clique) in enumerate(zip(elimination.order, elimination.cliques, strict=True)):
        separator = clique & ~(1 << vertex)
        if separator:
            other = min(position[v] for v in bits(separator))
        elif first_root is None:
            first_root = i
            continue
        else:
            other = first_root  # separate components hang together by an empty separator
        links[i].add(other)
        links[other].add(i)
    _join(bags, links, sizes)
    return _rooted(bags, links, sizes, len(elimination.order), position)


def _cells(mask: int, sizes: Sequence[int]) -> int:
    return math.prod(sizes[v] for v in bits(mask))


def _join(bags: dict[int, int], links: dict[int, set[int]], sizes: Sequence[int]) -> None:
    """Join neighbours when one contains the other or their union is small."""
    waiting = list(bags)
    while waiting:
        bag = waiting.pop()
        if bag not in bags:
            continue
        best, cost = -1, 0
        for other in links[bag]:
            union = bags[bag] | bags[other]
            if union in (bags[bag], bags[other]):
                best = other
                break
            if not bags[bag] & bags[other]:
                continue
            cells = _cells(union, sizes)
            if cells <= SMALL_CLIQUE and (best < 0 or cells < cost):
                best, cost = other, cells
        if best < 0:
            continue
        bags[bag] |= bags.pop(best)
        for far in links.pop(best):
            links[far].discard(best)
            if far != bag:
                links[far].add(bag)
                links[bag].add(far)
        waiting.append(bag)
        waiting.extend(links[bag])


def _farthest(links: dict[int, set[int]], start: int) -> tuple[list[int], dict[int, int]]:
    """Breadth first from `start`: the visit order (the last is farthest) and who was reached from whom."""
    came = {start: -1}
    order = [start]
    for bag in order:  # grows while it is read
        for other in sorted(links[bag]):
            if other not in came:
                came[other] = bag
                order.append(other)
    return order, came


def _scope(mask: int, position: dict[int, int]) -> Scope:
    """Variables eliminated first come last: those are the ones a message mostly sums."""
    return tuple(sorted(bits(mask), key=position.__getitem__, reverse=True))


def _rooted(
    bags: dict[int, int], links: dict[int, set[int]], sizes: Sequence[int], count: int, position: dict[int, int]
) -> JunctionTree:
    end = _farthest(links, next(iter(bags)))[0][-1]
    order, came = _farthest(links, end)
    path = [order[-1]]
    while came[path[-1]] >= 0:
        path.append(came[path[-1]])
    order, came = _farthest(links, path[len(path) // 2])  # the middle of a longest path: shallow trees
    number = {bag: i for i, bag in enumerate(order)}
    parents = [number[came[bag]] if came[bag] >= 0 else -1 for bag in order]
    masks = [bags[bag] for bag in order]
    cliques: list[Scope] = []
    separators: list[Scope] = []
    depth: list[int] = []
    children: list[list[int]] = [[] for _ in order]
    for i, mask in enumerate(masks):
        shared = mask & masks[parents[i]] if i else 0
        cliques.append(_scope(mask, position))
        separators.append(_scope(shared, position))
        depth.append(depth[parents[i]] + 1 if i else 0)
        if i:
            children[parents[i]].append(i)
    cells = [_cells(mask, sizes) for mask in masks]
    home = [-1] * count
    for i in sorted(range(len(order)), key=cells.__getitem__, reverse=True):
        for v in cliques[i]:
            home[v] = i
    return JunctionTree(
        tuple(cliques),
        tuple(separators),
        tuple(parents),
        tuple(tuple(its) for its in children),
        tuple(depth),
        tuple(home),
        tuple(masks),
        tuple(cells),
    )
