"""What methods share: the interface, a curator on seeded noise, and from family tables to CPTs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.procedure1 import normalised_rows
from dpbn.margins import Names, project
from dpbn.measure import CountSource, Curator
from dpbn.measurement import Request
from dpbn.network import Structure
from dpbn.privacy import accounting
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.noise import InsecureNoise

Array = NDArray[np.float64]
ROUNDING = 1e-12  # shares are rounded down, so that the accountant's total, rounded up, stays within budget


class Learner(Protocol):
    def __call__(self, structure: Structure, source: CountSource, epsilon: float, seed: int) -> Mapping[str, Array]: ...


@dataclass(frozen=True)
class Method:
    """A row of the comparison. `guarantee` is that of the same mechanism on secure noise, `delta` its delta."""

    title: str
    learn: Learner
    guarantee: str = "ε-DP"
    delta: float = 0.0


def experiment_curator(source: CountSource, epsilon: float, seed: int, *, delta: float = 0.0) -> Curator:
    """The library's own boundary on seeded noise: the accountant still refuses to overspend."""
    return Curator(source, InsecureNoise(seed), Budget(epsilon, delta), Sensitivity())


def measure_tables(source: CountSource, epsilon: float, seed: int, shares: Mapping[Names, float]) -> dict[Names, Array]:
    """Laplace noise at shares[names] on the table over `names`, each table once, within `epsilon`."""
    scales = {names: accounting.laplace_scale(share * (1 - ROUNDING), 1) for names, share in shares.items()}
    made = experiment_curator(source, epsilon, seed).measure([Request(names, scale) for names, scale in scales.items()])
    return {m.names: m.values.astype(np.float64) for m in made}


def maximal(sets: Sequence[Names]) -> list[Names]:
    """Those not contained in another; of equal ones the first."""
    kept: list[Names] = []
    for names in sorted(dict.fromkeys(sets), key=len, reverse=True):
        if not any(set(names) <= set(other) for other in kept):
            kept.append(names)
    return kept


def families(structure: Structure) -> dict[str, Names]:
    """Axis order of every CPT: parents in order, child last."""
    return {node: structure.family(node).names for node in structure.nodes}


def cpts_from_tables(tables: Mapping[str, Array]) -> dict[str, Array]:
    """Family tables by node -> CPTs: negative cells clipped at 0, rows normalised, empty rows uniform."""
    return {node: normalised_rows(np.maximum(table, 0.0)) for node, table in tables.items()}


def smallest_cover(structure: Structure, tables: Mapping[Names, Array]) -> dict[str, Array]:
    """Each family's table, summed out of the smallest of `tables` that contains it."""
    result = {}
    for node, names in families(structure).items():
        covering = [other for other in tables if set(names) <= set(other)]
        best = min(covering, key=lambda other: tables[other].size)
        result[node] = project(tables[best], best, names)
    return result
