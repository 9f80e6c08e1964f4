"""What a tree without evidence answers at once: P(every node behind a separator | that separator).

For an edge into a subtree no finding lies in, (new μ)·P(X | S) gives all posteriors behind it in one product.
Matrices are kept for the edges where that is cheaper than walking the subtree, within a bound on memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.elimination import bits
from dpbn.inference.contraction import Array, Scope
from dpbn.inference.evidence import Findings
from dpbn.inference.junction_tree import JunctionTree
from dpbn.inference.model import Model, root_ancestors
from dpbn.inference.projection import VECTOR_WORK, Projection, largest_piece

Index = NDArray[np.int64]
Way = tuple[Scope, int]  # a separator and its cells

CALL_CELLS = 4_000  # a clique visited costs about as much as touching this many cells
MATRIX_CELLS = 1 << 18
MEMORY_CELLS = 8_000_000
EFFORT_CELLS = 100_000_000  # spent on making matrices: a few tenths of a second
SEVERAL = 4  # edges of a clique over one separator that are worth looking at together
PAIR_COST = 3  # of a cell summed by index, in cells read
PRODUCT_GAIN = 8  # multiplications of a matrix product in the time of one cell read


@dataclass(slots=True)
class Edge:
    """A directed edge of the tree, as the walk away from the evidence sees it."""

    to: int
    downward: bool
    scope: Scope  # of the separator
    here: Projection  # from the clique it leaves onto the separator
    there: Projection  # from the clique it enters
    separator: Array
    behind: int  # mask of the nodes whose home lies behind
    places: list[tuple[slice, slice]]  # where the answers go, and which part of the product
    states: int
    cliques: int
    cells: int
    shadow: Array | None = field(default=None, repr=False)

    def column(self, place: int) -> int:
        """The column of the matrix that answers this place of all posteriors."""
        where, part = self.places[0] if place < self.places[0][0].stop else self.places[-1]
        return place - where.start + part.start

    def local(self, where: slice) -> slice:
        """The columns of the matrix that answer the stretch `where` of all posteriors."""
        start = self.column(where.start)
        return slice(start, start + where.stop - where.start)


class Shadows:
    """Edges of every clique with their matrices, and the layout of the vector of all posteriors."""

    def __init__(
        self,
        model: Model,
        tree: JunctionTree,
        tables: Sequence[Array],
        separators: Sequence[Array],
        up: Sequence[Projection],
        down: Sequence[Projection],
        nodes: Sequence[Projection],
    ):
        self.model = model
        self.tree = tree
        homes: list[list[int]] = [[] for _ in tree.cliques]
        for v, clique in enumerate(tree.home):
            homes[clique].append(v)
        starts, stretches = self._layout(homes)
        sizes = model.sizes
        self.slices = [slice(starts[v], starts[v] + sizes[v]) for v in range(len(sizes))]
        self.residents = [[(nodes[v], self.slices[v]) for v in its] for its in homes]
        self.priors = np.zeros(sum(sizes))
        for v in range(len(sizes)):
            prior = nodes[v].sum(tables[tree.home[v]])
            self.priors[self.slices[v]] = prior / np.add.reduce(prior)
        self.edges = _edges(tree, separators, up, down, homes, stretches)
        self._fill(tables)
        self.all_shadowed = all(edge.shadow is not None for edges in self.edges for edge in edges)

    def _layout(self, homes: Sequence[Sequence[int]]) -> tuple[list[int], list[tuple[int, int]]]:
        """Where each node's states begin, such that every subtree is one stretch; the stretches."""
        starts, stretches = [0] * len(self.model.sizes), [(0, 0)] * len(homes)
        place = 0
        stack = [(0, False)]
        while stack:
            i, done = stack.pop()
            if done:
                stretches[i] = stretches[i][0], place
                continue
            stretches[i] = place, place
            for v in homes[i]:
                starts[v] = place
                place += self.model.sizes[v]
            stack.append((i, True))
            stack.extend((child, False) for child in reversed(self.tree.children[i]))
        return starts, stretches

    def _fill(self, tables: Sequence[Array]) -> None:
        """Matrices from the leaves inward, within memory and effort; an edge needs those of all edges behind it."""
        memory, effort = MEMORY_CELLS, EFFORT_CELLS
        around = [_by_separator(edges) for edges in self.edges]
        states = [{way: sum(edge.states for edge in its) for way, its in ways.items()} for ways in around]
        missing = [len(edges) for edges in self.edges]  # without a matrix
        backward = {(i, edge.to): edge for i, edges in enumerate(self.edges) for edge in edges}
        seen: dict[tuple[int, Way], Array] = {}
        for i, edge in sorted(
            ((i, edge) for i, edges in enumerate(self.edges) for edge in edges), key=lambda item: item[1].cliques
        ):
            size = edge.here.cells * edge.states
            walk = 3 * edge.cells + CALL_CELLS * edge.cliques
            if size > min(walk, MATRIX_CELLS, memory):
                continue
            back, ways, mine = backward[edge.to, i], around[edge.to], (edge.scope, edge.here.cells)
            if missing[edge.to] > (back.shadow is None):
                continue
            work = 0
            for way, its in ways.items():
                if len(its) > 1 or its[0] is not back:
                    behind = states[edge.to][way] - (back.states if way == mine else 0)
                    work += PAIR_COST * (tables[edge.to].size + edge.here.cells * way[1])
                    work += edge.here.cells * way[1] * behind // PRODUCT_GAIN
            if work > effort:
                continue
            if len(ways[mine]) < SEVERAL or edge.downward or missing[edge.to]:
                others = [[other for other in its if other is not back] for its in ways.values()]
                found = np.zeros((edge.here.cells, edge.states))
                self._look(found, edge, [its for its in others if its], tables[edge.to], edge.local)
            else:  # many edges see the same but for what is behind themselves
                if (edge.to, mine) not in seen:
                    seen[edge.to, mine] = np.zeros((edge.here.cells, len(self.priors)))
                    self._look(seen[edge.to, mine], edge, list(ways.values()), tables[edge.to], lambda where: where)
                found = np.concatenate([seen[edge.to, mine][:, where] for where, _ in edge.places], axis=1)
            edge.shadow = found.reshape(*piece_rows(*found.shape), edge.states)
            missing[i] -= 1
            memory -= size
            effort -= work

    def _look(
        self, found: Array, edge: Edge, ways: Sequence[Sequence[Edge]], table: Array, column: Callable[[slice], slice]
    ) -> None:
        """P(X | S) of what is in the clique that `edge` enters, and behind its edges `ways`, into `found`."""
        rows, index = edge.here.cells, edge.there.index
        for projection, where in self.residents[edge.to]:
            found[:, column(where)] = _pairs(index, projection.index, table, rows, projection.cells)
        for same in ways:
            moved = _pairs(index, same[0].here.index, table, rows, same[0].here.cells)
            for other in same:
                assert other.shadow is not None
                values = moved @ other.shadow.reshape(-1, other.states)
                for where, part in other.places:
                    found[:, column(where)] = values[:, part]
        found /= edge.separator[:, None]

    @staticmethod
    def seen_through(edge: Edge, message: Array) -> Array:
        """Everything behind the edge from the new table of its separator."""
        shadow = edge.shadow
        assert shadow is not None
        if shadow.ndim == 2:
            return message @ shadow
        return np.add.reduce(np.matmul(message.reshape(shadow.shape[0], 1, -1), shadow), axis=(0, 1))

    def affected(self, findings: Findings) -> int:
        """Mask of the nodes whose posterior may differ from the prior: descendants of the findings' ancestors."""
        if self.all_shadowed:
            return -1
        ancestors, descendants = self._relatives
        mask = 0
        for v in (*findings.hard, *findings.soft):
            for root in bits(ancestors[v]):
                mask |= descendants[root]
        return mask

    @cached_property
    def _relatives(self) -> tuple[list[int], list[int]]:
        """For each node its root ancestors, and for each root all its descendants (itself included)."""
        model = self.model
        position = model.vocabulary.positions
        order = [position[name] for name in model.structure.dag.order]
        descendants = [1 << v for v in range(len(order))]
        for v in reversed(order):
            for parent in model.parents[v]:
                descendants[parent] |= descendants[v]
        return root_ancestors(model), descendants

    def split(self, values: Array) -> list[Array]:
        """One array per node, in node order."""
        return [values[where] for where in self.slices]


def _edges(
    tree: JunctionTree,
    separators: Sequence[Array],
    up: Sequence[Projection],
    down: Sequence[Projection],
    homes: Sequence[Sequence[int]],
    stretches: Sequence[tuple[int, int]],
) -> list[list[Edge]]:
    """Both directions of every edge of the tree, by the clique they leave; a subtree's states are one stretch."""
    count, total = len(tree.cliques), stretches[0][1]
    behind = [sum(1 << v for v in its) for its in homes]
    cliques, cells = [1] * count, list(tree.cells)
    for i in range(count - 1, 0, -1):
        parent = tree.parents[i]
        behind[parent] |= behind[i]
        cliques[parent] += cliques[i]
        cells[parent] += cells[i]
    edges: list[list[Edge]] = [[] for _ in range(count)]
    for i in range(1, count):
        parent, scope, separator = tree.parents[i], tree.separators[i], separators[i]
        a, b = stretches[i]
        size, rest = b - a, total - (b - a)
        inside = [(slice(a, b), slice(0, size))]
        outside = [(slice(0, a), slice(0, a)), (slice(b, total), slice(a, rest))]
        below = behind[i], inside, size, cliques[i], cells[i]
        above = behind[0] & ~behind[i], outside, rest, count - cliques[i], cells[0] - cells[i]
        edges[parent].append(Edge(i, True, scope, down[i], up[i], separator, *below))
        edges[i].append(Edge(parent, False, scope, up[i], down[i], separator, *above))
    return edges


def _by_separator(edges: Sequence[Edge]) -> dict[Way, list[Edge]]:
    """Edges of one clique that share a separator see the same message."""
    found: dict[Way, list[Edge]] = {}
    for edge in edges:
        found.setdefault((edge.scope, edge.here.cells), []).append(edge)
    return found


def _pairs(rows: Index, columns: Index, weights: Array, height: int, width: int) -> Array:
    """Σ of weights by (row, column)."""
    found: Any = np.bincount(rows * width + columns, weights, minlength=height * width)
    return np.asarray(found, dtype=np.float64).reshape(height, width)


def piece_rows(rows: int, columns: int) -> tuple[int, ...]:
    """Rows of a matrix cut into pieces whose product with a vector stays on one thread."""
    piece = largest_piece(rows, VECTOR_WORK // max(columns, 1))
    return (rows,) if piece == rows else (rows // piece, piece)
