"""Which answers lean on CPT rows that rest on too few records to be learned at this budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpbn.graph import ancestors
from dpbn.inference.evidence import Evidence
from dpbn.support import supports

if TYPE_CHECKING:
    from dpbn.inference import Inference
    from dpbn.release import Release


@dataclass(frozen=True)
class WeakRow:
    """A row of `node` below the noise floor, and how probable its parents' states are given the evidence."""

    node: str
    parents: dict[str, str]
    weight: float

    def __str__(self) -> str:
        given = ", ".join(f"{name}={state}" for name, state in self.parents.items())
        return f"P({self.node}{' | ' + given if given else ''})"


def weak_rows_behind(
    ask: Inference, release: Release, targets: Sequence[str], evidence: Evidence | None, least: float = 0.01
) -> list[WeakRow]:
    """Weak rows of relevant nodes that carry at least `least` of the probability given the evidence, heaviest first."""
    structure = release.structure
    evidence = dict(evidence or {})
    observed = {name: state for name, state in evidence.items() if isinstance(state, str)}
    relevant = ancestors(structure.dag, [*targets, *evidence])
    found: list[WeakRow] = []
    for node, support in supports(structure, release.measurements).items():
        if node not in relevant or not support.below_floor.any():
            continue
        parents = structure.parents(node)
        open_parents = [name for name in parents if name not in observed]
        mass = ask.query(open_parents, evidence).values if open_parents else np.ones(())
        fixed = tuple(
            structure.schema[name].index(observed[name]) if name in observed else slice(None) for name in parents
        )
        weak = support.below_floor[fixed]
        for cell in np.argwhere(weak & (mass >= least)):
            codes = dict(zip(open_parents, cell, strict=True))
            states = {n: observed[n] if n in observed else structure.states(n)[int(codes[n])] for n in parents}
            found.append(WeakRow(node, states, float(mass[tuple(cell)])))
    return sorted(found, key=lambda row: -row.weight)
