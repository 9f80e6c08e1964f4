"""One conditional on a calibrated tree: only the cliques where the ways from the findings to the target meet.

A finding x alone behind a separator S speaks through P(x | S), a column of the matrix prepared for that edge
(`Shadows`); the answer is read through the first such edge on the way to the target. In between lie the cliques
where two ways meet: few findings have few of them, however large the tree. Where no matrix is kept, the way is
walked clique by clique.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpbn.inference.contraction import Array
from dpbn.inference.evidence import Findings
from dpbn.inference.junction_tree import JunctionTree
from dpbn.inference.projection import Projection
from dpbn.inference.shadows import Edge, Shadows

FEW = 16  # findings up to which ways are followed one by one; more are collected through the whole tree


class Leaf(NamedTuple):
    """A finding: its variable and home clique, and its code (hard) or likelihood (soft)."""

    variable: int
    clique: int
    code: int
    likelihood: Array | None


class Conditionals:
    """Unnormalised P(targets, findings) for targets within one clique."""

    def __init__(self, tree: JunctionTree, tables: Sequence[Array], nodes: Sequence[Projection], shadows: Shadows):
        self.tree, self.tables, self.nodes, self.shadows = tree, tables, nodes, shadows
        self.edges: list[dict[int, Edge]] = [{edge.to: edge for edge in edges} for edges in shadows.edges]
        self.above: list[int] = []  # for each clique the mask of the cliques from the root down to it
        for i, parent in enumerate(tree.parents):
            self.above.append(1 << i | (self.above[parent] if parent >= 0 else 0))
        self.unit = [np.eye(projection.cells) for projection in nodes]

    def joint(self, goal: int, target: int | None, projection: Projection, findings: Findings) -> Array:
        """P(targets, findings), flat: `projection` takes clique `goal` to the targets; `target` is set if only one."""
        home = self.tree.home
        leaves = [Leaf(v, home[v], code, None) for v, code in findings.hard.items()]
        leaves += [Leaf(v, home[v], 0, likelihood) for v, likelihood in findings.soft.items()]
        clique = self._meeting(goal, leaves)
        table = self._belief(clique, leaves)
        while clique != goal:
            edge = self.edges[clique][self._next(clique, goal)]
            message = edge.here.sum(table)
            if target is not None and edge.shadow is not None:
                return message @ self._columns(edge, target)
            clique = edge.to
            table = edge.there.multiply(self.tables[clique], message / edge.separator)
        return projection.sum(table)

    def _meeting(self, goal: int, leaves: Sequence[Leaf]) -> int:
        """The clique nearest to `goal` where the ways of all findings have met."""
        if len(leaves) < 2:
            return goal
        above, depth = self.above, self.tree.depth
        mine, first = above[goal], above[leaves[0].clique]
        shared = (mine & first).bit_length()
        best, least = goal, 1 << 62
        for leaf in leaves[1:]:
            # cliques are numbered parents first: the largest common ancestor is the lowest, and of three ways
            # the lowest of the pairwise ones is where they meet
            other = above[leaf.clique]
            place = max(shared, (mine & other).bit_length(), (first & other).bit_length()) - 1
            far = depth[place] - 2 * depth[(mine & above[place]).bit_length() - 1]
            if far < least:
                best, least = place, far
        return best

    def _next(self, clique: int, goal: int) -> int:
        """The neighbour of `clique` on the way to `goal`."""
        way = self.above[goal]
        if way >> clique & 1:
            way >>= clique + 1
            return clique + (way & -way).bit_length()
        return self.tree.parents[clique]

    def _belief(self, clique: int, leaves: Sequence[Leaf]) -> Array:
        """The clique's table with all findings absorbed."""
        table = self.tables[clique]
        ways: dict[int, list[Leaf]] = {}
        for leaf in leaves:
            if leaf.clique == clique:
                table = self.nodes[leaf.variable].multiply(table, self._likelihood(leaf))
            else:
                ways.setdefault(self._next(clique, leaf.clique), []).append(leaf)
        edges = self.edges[clique]
        for neighbour, group in ways.items():
            edge = edges[neighbour]
            if len(group) == 1 and edge.shadow is not None:
                table = edge.here.multiply(table, self._told(edge, group[0]))
            else:
                table = edge.here.multiply(table, self._message(edge, group))
        return table

    def _message(self, edge: Edge, leaves: list[Leaf]) -> Array:
        """P(findings behind the edge | its separator)."""
        stretch: list[Edge] = []
        while not (len(leaves) == 1 and edge.shadow is not None):
            clique = edge.to
            neighbour = self._shared(clique, leaves)
            if neighbour < 0:
                message = edge.there.sum(self._belief(clique, leaves)) / edge.separator
                break
            stretch.append(edge)
            edge = self.edges[clique][neighbour]
        else:
            message = self._told(edge, leaves[0])
        for before in reversed(stretch):
            table = edge.here.multiply(self.tables[before.to], message)
            message = before.there.sum(table) / before.separator
            edge = before
        return message

    def _shared(self, clique: int, leaves: Sequence[Leaf]) -> int:
        """The neighbour all findings lie behind, -1 if there is none."""
        found = -1
        for leaf in leaves:
            if leaf.clique == clique:
                return -1
            neighbour = self._next(clique, leaf.clique)
            if found not in (-1, neighbour):
                return -1
            found = neighbour
        return found

    def _likelihood(self, leaf: Leaf) -> Array:
        return self.unit[leaf.variable][leaf.code] if leaf.likelihood is None else leaf.likelihood

    def _told(self, edge: Edge, leaf: Leaf) -> Array:
        if leaf.likelihood is not None:
            return self._columns(edge, leaf.variable) @ leaf.likelihood
        return self._matrix(edge)[:, edge.column(self.shadows.slices[leaf.variable].start + leaf.code)]

    def _columns(self, edge: Edge, variable: int) -> Array:
        """P(variable | separator), for a variable that lives behind the edge."""
        return self._matrix(edge)[:, edge.local(self.shadows.slices[variable])]

    @staticmethod
    def _matrix(edge: Edge) -> Array:
        """P(every state behind the edge | separator), rows by the separator's cells."""
        assert edge.shadow is not None
        return edge.shadow if edge.shadow.ndim == 2 else edge.shadow.reshape(-1, edge.states)
