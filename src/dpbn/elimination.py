"""Elimination orders of an undirected graph, and its treewidth.

Graphs here are lists of bit masks: `adjacency[v]` has bit u set when u and v are neighbours, never bit v.
Python integers make neighbourhoods cheap to intersect and to count.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

HEURISTICS = ("min-fill", "weighted-min-fill", "min-weight")


@dataclass(frozen=True, slots=True)
class Elimination:
    """An order, the clique each step makes (a mask, the eliminated vertex included), and its cost."""

    order: tuple[int, ...]
    cliques: tuple[int, ...]
    width: int  # largest clique minus one
    largest: int  # cells of the largest clique
    cells: int  # cells of all cliques together
    heuristic: str


def bits(mask: int) -> Iterator[int]:
    """The vertices of a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def graph_of_scopes(count: int, scopes: Sequence[Sequence[int]]) -> list[int]:
    """The graph in which variables that share a scope are neighbours (the moral graph, for families)."""
    adjacency = [0] * count
    for scope in scopes:
        mask = 0
        for variable in scope:
            mask |= 1 << variable
        for variable in scope:
            adjacency[variable] |= mask
    return [neighbours & ~(1 << v) for v, neighbours in enumerate(adjacency)]


class _Greedy:
    """A graph being eliminated: neighbourhoods, their weights (log cells), and the score of a vertex."""

    def __init__(self, adjacency: Sequence[int], sizes: Sequence[int], heuristic: str):
        self.graph = list(adjacency)
        self.logs = [math.log(size) + 1e-9 for size in sizes]
        self.weights = [self.logs[v] + sum(self.logs[u] for u in bits(its)) for v, its in enumerate(adjacency)]
        self.sizes = sizes
        classes: dict[int, int] = {}
        for v, size in enumerate(sizes):
            classes[size] = classes.get(size, 0) | 1 << v
        self.classes = tuple(classes.items())  # few distinct sizes: a weighted sum is a few bit counts
        self.score: Callable[[int], tuple[float, float]] = {
            "min-fill": self._min_fill,
            "weighted-min-fill": self._weighted_min_fill,
            "min-weight": self._min_weight,
        }[heuristic]

    def _min_fill(self, vertex: int) -> tuple[float, float]:
        graph, neighbours = self.graph, self.graph[vertex]
        missing = -neighbours.bit_count()  # every neighbour misses itself
        left = neighbours
        while left:
            low = left & -left
            missing += (neighbours & ~graph[low.bit_length() - 1]).bit_count()
            left ^= low
        return missing // 2, self.weights[vertex]

    def _weighted_min_fill(self, vertex: int) -> tuple[float, float]:
        graph, neighbours, total = self.graph, self.graph[vertex], 0
        left = neighbours
        while left:
            low = left & -left
            other = low.bit_length() - 1
            left ^= low
            missing = neighbours & ~graph[other] & ~low
            if missing:
                total += self.sizes[other] * sum(size * (missing & its).bit_count() for size, its in self.classes)
        return total, self.weights[vertex]

    def _min_weight(self, vertex: int) -> tuple[float, float]:
        return self.weights[vertex], 0.0

    def without(self, old: float, other: int, vertex: int, neighbours: int) -> tuple[float, float]:
        """The score of a neighbour of `vertex`, removed without a new edge, from its old fill: fewer pairs miss one.

        Scoring it again would take time for every neighbour: a hub with n leaves, n squared in all.
        """
        lost = self.graph[other] & ~neighbours
        if self.score == self._min_fill:
            return old - lost.bit_count(), self.weights[other]
        pairs = sum(size * (lost & its).bit_count() for size, its in self.classes)
        return old - 2 * self.sizes[vertex] * pairs, self.weights[other]

    def remove(self, vertex: int) -> int:
        """Eliminate `vertex`; returns the mask of the vertices whose fill may have changed."""
        graph, logs = self.graph, self.logs
        neighbours = graph[vertex]
        affected = neighbours
        gone = ~(1 << vertex)
        for other in bits(neighbours):
            before = graph[other]
            after = (before | neighbours) & gone & ~(1 << other)
            graph[other] = after
            added = after & ~before
            self.weights[other] -= logs[vertex]
            if added:
                affected |= after  # new edges change the fill of common neighbours too
                self.weights[other] += sum(logs[new] for new in bits(added))
        graph[vertex] = 0
        return affected


def eliminate(adjacency: Sequence[int], sizes: Sequence[int], heuristic: str, *, keep: int = 0) -> Elimination:
    """Greedy elimination of every vertex outside the mask `keep`, by one heuristic."""
    found = _eliminate(adjacency, sizes, heuristic, keep, math.inf)
    assert found is not None  # nothing is beyond infinity
    return found


def _eliminate(
    adjacency: Sequence[int], sizes: Sequence[int], heuristic: str, keep: int, limit: float
) -> Elimination | None:
    """The elimination, or None as soon as a clique has clearly more than `limit` cells."""
    greedy = _Greedy(adjacency, sizes, heuristic)
    beyond = math.log(limit) + 1.0 if limit < math.inf else math.inf
    graph, score = greedy.graph, greedy.score
    current = {v: score(v) for v in range(len(graph)) if not keep >> v & 1}
    heap = [(*value, v) for v, value in current.items()]
    heapq.heapify(heap)
    order: list[int] = []
    cliques: list[int] = []
    while current:
        first, second, vertex = heapq.heappop(heap)
        if current.get(vertex) != (first, second):
            continue  # an outdated entry: a newer one is in the heap
        if greedy.weights[vertex] > beyond:
            return None
        del current[vertex]
        order.append(vertex)
        cliques.append(graph[vertex] | 1 << vertex)
        neighbours = graph[vertex]
        affected = greedy.remove(vertex)
        by_fill = heuristic != "min-weight"
        for other in bits(affected if by_fill else neighbours):
            if other in current:
                simplicial = by_fill and first == 0
                value = greedy.without(current[other][0], other, vertex, neighbours) if simplicial else score(other)
                if value != current[other]:
                    current[other] = value
                    heapq.heappush(heap, (*value, other))
    return _cost(order, cliques, sizes, heuristic)


def _cost(order: Sequence[int], cliques: Sequence[int], sizes: Sequence[int], heuristic: str) -> Elimination:
    cells = [math.prod(sizes[v] for v in bits(clique)) for clique in cliques]
    width = max((clique.bit_count() - 1 for clique in cliques), default=0)
    return Elimination(tuple(order), tuple(cliques), width, max(cells, default=1), sum(cells), heuristic)


def cheapest_elimination(
    scopes: Sequence[Sequence[int]], sizes: Sequence[int], *, keep: Sequence[int] = (), limit: float
) -> Elimination:
    """All variables that `scopes` mention but `keep`, by the best of several heuristics: fewest cells in all cliques.

    The caller refuses cliques of more than `limit` cells. Where the quickest heuristic makes one, the slower ones stop
    as soon as they do too: a graph of hopeless width is then told after a part of the search.
    """
    here = sorted({v for scope in scopes for v in scope})
    place = {v: i for i, v in enumerate(here)}
    graph = graph_of_scopes(len(here), [[place[v] for v in scope] for scope in scopes])
    widths, kept = [sizes[v] for v in here], sum(1 << place[v] for v in keep)
    *slower, quickest = HEURISTICS
    quick = eliminate(graph, widths, quickest, keep=kept)
    if quick.largest > limit:
        others = slower if len(set(widths)) > 1 else slower[:1]  # with equal sizes the weighted fill is no other
        tried = [_eliminate(graph, widths, heuristic, kept, limit) for heuristic in others]
        best = min((quick, *(e for e in tried if e)), key=lambda e: (e.largest > limit, e.cells, e.largest))
    else:
        found = [eliminate(graph, widths, heuristic, keep=kept) for heuristic in slower]
        best = min((*found, quick), key=lambda e: (e.cells, e.largest))
    cliques = tuple(sum(1 << here[i] for i in bits(clique)) for clique in best.cliques)
    return replace(best, order=tuple(here[i] for i in best.order), cliques=cliques)


def treewidth_bounds(adjacency: Sequence[int], *, effort: int) -> tuple[int, int]:
    """A lower and an upper bound of the treewidth; equal where `effort` search states settle it."""
    lower, upper = _least_width(adjacency), eliminate(adjacency, [2] * len(adjacency), "min-fill").width
    remaining = [effort]
    while lower < upper:
        narrower = _reaches(adjacency, upper - 1, remaining)
        if narrower is None:
            return lower, upper
        if not narrower:
            break
        upper -= 1
    return upper, upper


def _least_width(adjacency: Sequence[int]) -> int:
    """A lower bound of the treewidth: the contraction degeneracy."""
    graph = dict(enumerate(adjacency))
    lower = 0
    while len(graph) > 1:
        vertex = min(graph, key=lambda v: graph[v].bit_count())
        neighbours = graph.pop(vertex)
        lower = max(lower, neighbours.bit_count())
        if not neighbours:
            continue
        # contract into the neighbour that shares the fewest others: a minor, so its degrees bound from below
        into = min(bits(neighbours), key=lambda u: (graph[u] & neighbours).bit_count())
        for other in bits(neighbours):
            graph[other] &= ~(1 << vertex)
            if other != into:
                graph[other] |= 1 << into
                graph[into] |= 1 << other
    return lower


def _reaches(adjacency: Sequence[int], goal: int, remaining: list[int]) -> bool | None:
    """Whether some order has a width of `goal` at most; None when the effort is spent.

    Depth-first over eliminated sets; what is left after a set does not depend on its order, so sets are remembered.
    """
    seen: set[int] = set()

    def search(graph: dict[int, int], alive: int) -> bool | None:
        if alive.bit_count() <= goal + 1:
            return True
        if alive in seen:
            return False
        if remaining[0] <= 0:
            return None
        remaining[0] -= 1
        for vertex in bits(alive):  # a simplicial vertex may always go first
            if graph[vertex].bit_count() <= goal and _fill_of(graph, vertex) == 0:
                answer = search(_without(graph, vertex), alive & ~(1 << vertex))
                if answer is False:
                    seen.add(alive)
                return answer
        spent = False
        candidates = sorted(
            (v for v in bits(alive) if graph[v].bit_count() <= goal), key=lambda v: (_fill_of(graph, v), v)
        )
        for vertex in candidates:
            answer = search(_without(graph, vertex), alive & ~(1 << vertex))
            if answer:
                return True
            spent = spent or answer is None
        if spent:
            return None
        seen.add(alive)
        return False

    return search(dict(enumerate(adjacency)), (1 << len(adjacency)) - 1)


def _fill_of(graph: dict[int, int], vertex: int) -> int:
    neighbours = graph[vertex]
    return sum((neighbours & ~graph[u]).bit_count() - 1 for u in bits(neighbours)) // 2


def _without(graph: dict[int, int], vertex: int) -> dict[int, int]:
    left = dict(graph)
    neighbours = left.pop(vertex)
    for other in bits(neighbours):
        left[other] = (left[other] | neighbours) & ~(1 << vertex) & ~(1 << other)
    return left
