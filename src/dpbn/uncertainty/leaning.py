"""Which answers lean on CPT rows that rest on too few records to be learned at this budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbn.graph import Dag, requisite
from dpbn.inference.evidence import Evidence, Vocabulary
from dpbn.support import supports

if TYPE_CHECKING:
    from dpbn.inference import Inference

LEAST = 0.01  # of the probability, for a row to be named


@dataclass(frozen=True)
class WeakRow:
    """A row of `node` below the noise floor, and how probable its parents' states are given the evidence."""

    node: str
    parents: dict[str, str]
    weight: float

    def __hash__(self) -> int:
        return hash((self.node, *self.parents.items(), self.weight))

    def __str__(self) -> str:
        given = ", ".join(f"{name}={state}" for name, state in self.parents.items())
        return f"P({self.node}{' | ' + given if given else ''})"


@dataclass(frozen=True)
class Leaning:
    """What one answer leans on: the rows, heaviest first, and the largest part of its probability on one node's."""

    rows: tuple[WeakRow, ...]

    @property
    def share(self) -> float:
        """Of the node whose weak rows weigh most: how probable it is, given the evidence, to be in one of them."""
        totals: dict[str, float] = {}
        for row in self.rows:
            totals[row.node] = totals.get(row.node, 0.0) + row.weight
        return min(max(totals.values(), default=0.0), 1.0)


def weak_rows_behind(ask: Inference, targets: Sequence[str], evidence: Evidence | None) -> list[WeakRow]:
    """Weak rows of relevant nodes that carry at least `LEAST` of the probability given the evidence, heaviest first."""
    evidence = _told(ask, evidence)
    return _weak_rows(ask, relevant(ask.source.structure.dag, targets, evidence), evidence)


def leanings(ask: Inference, evidence: Evidence | None) -> dict[str, Leaning]:
    """What the posterior of every node that is not observed leans on; nodes whose posterior leans on none left out."""
    evidence, dag = _told(ask, evidence), ask.source.structure.dag
    rows = _weak_rows(ask, dag.nodes, evidence)
    found = {}
    for target in dag.nodes:
        if target not in _observed(evidence):
            behind = relevant(dag, [target], evidence)
            its = tuple(row for row in rows if row.node in behind)
            if its:
                found[target] = Leaning(its)
    return found


def relevant(dag: Dag, targets: Sequence[str], evidence: Evidence) -> set[str]:
    """Nodes whose CPTs can matter to P(targets | evidence)."""
    children, observed = {node: dag.children(node) for node in dag.nodes}, _observed(evidence)
    return requisite(dag.parents, children, targets, observed, evidence.keys() - observed)


def _told(ask: Inference, evidence: Evidence | None) -> dict[str, Any]:
    words = Vocabulary(ask.source.structure)
    return words.told(evidence, words.findings(evidence))


def _observed(evidence: Mapping[str, Any]) -> dict[str, str]:
    """Hard evidence only: soft evidence leaves a node open."""
    return {name: state for name, state in evidence.items() if isinstance(state, str)}


def _weak_rows(ask: Inference, nodes: Collection[str], evidence: Mapping[str, Any]) -> list[WeakRow]:
    release, observed = ask.source, _observed(evidence)
    structure = release.structure
    found: list[WeakRow] = []
    for node, support in supports(structure, release.measurements, release.public_nodes).items():
        if node not in nodes or not support.below_floor.any():
            continue
        parents = structure.parents(node)
        open_parents = [name for name in parents if name not in observed]
        mass = ask.query(open_parents, evidence).values if open_parents else np.ones(())
        fixed = tuple(
            structure.schema[name].index(observed[name]) if name in observed else slice(None) for name in parents
        )
        weak = support.below_floor[fixed]
        for cell in np.argwhere(weak & (mass >= LEAST)):
            codes = dict(zip(open_parents, cell, strict=True))
            states = {n: observed[n] if n in observed else structure.states(n)[int(codes[n])] for n in parents}
            found.append(WeakRow(node, states, float(mass[tuple(cell)])))
    return sorted(found, key=lambda row: -row.weight)
