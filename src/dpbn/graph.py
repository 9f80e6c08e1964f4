"""Directed acyclic graphs: Dag, Family, and the public facts read off them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from dpbn.domain import ordered, repeated
from dpbn.elimination import graph_of_scopes, treewidth_bounds
from dpbn.errors import StructureError, did_you_mean

Node = TypeVar("Node", bound=Hashable)


class Relatives(Protocol[Node]):
    """The parents or the children of every node: by name in a mapping, by number in a list."""

    def __getitem__(self, node: Node, /) -> Iterable[Node]: ...


@dataclass(frozen=True, slots=True)
class Family:
    """A node with its parents. `names` is the axis order everywhere: parents in order, child last."""

    child: str
    parents: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.parents, self.child)


@dataclass(frozen=True, slots=True)
class Dag:
    """A validated directed acyclic graph: nodes in a fixed order, and each node's ordered parents."""

    nodes: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    _order: tuple[str, ...] = field(init=False, repr=False, compare=False, hash=False)
    _children: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        if not ordered(self.nodes):
            raise StructureError(f"nodes must be a sequence of names, got {type(self.nodes).__name__}")
        if not isinstance(self.parents, Mapping):
            raise StructureError(f"parents must be a mapping of node to parents, got {type(self.parents).__name__}")
        nodes = tuple(self.nodes)
        known = set(nodes)
        if twice := repeated(nodes):
            raise StructureError(f"nodes must be distinct, got {twice} twice")
        stray = sorted(set(self.parents) - known)
        if stray:
            raise StructureError(f"parents must be given for known nodes only, got {stray}")
        for node, its in self.parents.items():
            if not ordered(its):
                raise StructureError(f"parents of {node!r} must be a sequence of names, got {its!r}")
        parents = {node: tuple(self.parents.get(node, ())) for node in nodes}
        for node, its in parents.items():
            unknown = [p for p in its if p not in known]
            if unknown:
                hint = did_you_mean(unknown[0], nodes)
                raise StructureError(f"parents of {node!r} must be nodes of the graph, got {unknown}{hint}")
            if len(set(its)) != len(its):
                raise StructureError(f"parents of {node!r} must be distinct, got {its}")
        children: dict[str, list[str]] = {node: [] for node in nodes}
        for node, its in parents.items():
            for parent in its:
                children[parent].append(node)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "_children", {node: tuple(its) for node, its in children.items()})
        object.__setattr__(self, "_order", self._topological_order())

    def __hash__(self) -> int:
        return hash((self.nodes, tuple(self.parents.items())))

    def _topological_order(self) -> tuple[str, ...]:
        waiting = {node: len(its) for node, its in self.parents.items()}
        ready = [node for node in self.nodes if not waiting[node]]
        for node in ready:  # grows while it is read
            for child in self._children[node]:
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(ready) != len(self.nodes):
            raise StructureError(f"a graph must be acyclic, got the cycle {' -> '.join(self._cycle(set(ready)))}")
        return tuple(ready)

    def _cycle(self, sorted_out: set[str]) -> list[str]:
        node = next(n for n in self.nodes if n not in sorted_out)
        seen: dict[str, int] = {}
        while node not in seen:  # every node left over has a parent left over: walk up until one repeats
            seen[node] = len(seen)
            node = next(p for p in self.parents[node] if p not in sorted_out)
        return [node, *reversed(list(seen)[seen[node] :])]

    @property
    def order(self) -> tuple[str, ...]:
        """A topological order (parents first), the same for equal graphs."""
        return self._order

    def children(self, node: str) -> tuple[str, ...]:
        return self._children[node]

    def family(self, node: str) -> Family:
        return Family(node, self.parents[node])

    @property
    def families(self) -> tuple[Family, ...]:
        return tuple(self.family(node) for node in self.nodes)

    @property
    def arcs(self) -> tuple[tuple[str, str], ...]:
        return tuple((parent, node) for node in self.nodes for parent in self.parents[node])


def heights(dag: Dag) -> dict[str, int]:
    """h_i of the paper: the longest directed path from a node down to a leaf, in arcs."""
    height: dict[str, int] = {}
    for node in reversed(dag.order):
        height[node] = max((height[child] + 1 for child in dag.children(node)), default=0)
    return height


def out_degrees(dag: Dag) -> dict[str, int]:
    """o_i of the paper: the number of children."""
    return {node: len(dag.children(node)) for node in dag.nodes}


def ancestors(parents: Relatives[Node], nodes: Iterable[Node]) -> set[Node]:
    """`nodes` and everything above them: whose CPTs matter to a joint probability of `nodes`."""
    seen = set(nodes)
    stack = list(seen)
    while stack:
        for parent in parents[stack.pop()]:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return seen


def requisite(
    parents: Relatives[Node],
    children: Relatives[Node],
    targets: Iterable[Node],
    hard: Collection[Node],
    soft: Collection[Node],
) -> set[Node]:
    """The nodes whose CPTs matter to P(targets | findings), by a Bayes ball (Shachter 1998).

    `top` holds the nodes that passed the ball to their parents: their CPTs matter. `bottom` holds those that
    passed it to their children. A soft finding is an observed child of its node, so it bounces the ball back up.
    """
    top: set[Node] = set()
    bottom: set[Node] = set()
    schedule = [(target, True) for target in targets]
    while schedule:
        node, from_child = schedule.pop()
        up = node not in hard if from_child else node in hard or node in soft
        if up and node not in top:
            top.add(node)
            schedule.extend((parent, True) for parent in parents[node])
        if node not in hard and node not in bottom:
            bottom.add(node)
            schedule.extend((child, False) for child in children[node])
    return top


def treewidth(dag: Dag, *, effort: int = 50_000) -> tuple[int, int]:
    """Bounds (low, high) of the treewidth of the moral graph; equal where `effort` search states settle it."""
    position = {node: i for i, node in enumerate(dag.nodes)}
    scopes = [[position[name] for name in family.names] for family in dag.families]
    return treewidth_bounds(graph_of_scopes(len(dag.nodes), scopes), effort=effort)
