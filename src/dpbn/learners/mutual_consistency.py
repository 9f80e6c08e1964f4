"""Mutual consistency (Procedure 1, line 3; the step of PriView): tables agree on all they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Key = TypeVar("Key")


def intersection_closure(sets: list[frozenset[str]]) -> list[frozenset[str]]:
    """All intersections of two or more of `sets`, by size from the empty set."""
    distinct = list(dict.fromkeys(sets))
    closure: set[frozenset[str]] = {frozenset()}
    fresh = {a & b for i, a in enumerate(distinct) for b in distinct[i + 1 :]}
    fresh |= {a for a in distinct if sets.count(a) > 1}
    while fresh - closure:
        added = fresh - closure
        closure |= added
        fresh = {a & b for a in added for b in closure}
    return sorted(closure, key=lambda a: (len(a), sorted(a)))


def make_consistent(
    tables: Mapping[Key, tuple[tuple[str, ...], Array]], weights: Mapping[Key, float]
) -> dict[Key, Array]:
    """Average the projections on every shared set A, and spread the correction evenly over cells:
    M_t += |dom A| / |dom t| * (M_A - M_t[A])."""
    values = {key: np.array(table, dtype=np.float64) for key, (_, table) in tables.items()}
    axes = {key: names for key, (names, _) in tables.items()}
    sets = {key: frozenset(names) for key, names in axes.items()}
    for shared in intersection_closure(list(sets.values())):
        order = tuple(sorted(shared))
        members = [key for key in values if shared <= sets[key]]
        if len(members) < 2:
            continue
        margins = {key: project(values[key], axes[key], order) for key in members}
        total = sum(weights[key] for key in members)
        target = sum(weights[key] / total * margins[key] for key in members)
        for key in members:
            correction = (target - margins[key]) * (margins[key].size / values[key].size)
            values[key] += spread(correction, order, axes[key])
    return values


def project(table: NDArray[Any], names: tuple[str, ...], onto: tuple[str, ...]) -> NDArray[Any]:
    """Sum out all but `onto`; axes in the order of `onto`."""
    kept = [name for name in names if name in onto]
    margin = table.sum(axis=tuple(i for i, name in enumerate(names) if name not in onto))
    return np.transpose(margin, [kept.index(name) for name in onto])


def spread(table: Array, names: tuple[str, ...], over: tuple[str, ...]) -> Array:
    """View of `table` over `names` that broadcasts against a table over `over`."""
    kept = [name for name in over if name in names]
    ordered = np.transpose(table, [names.index(name) for name in kept])
    return ordered.reshape([ordered.shape[kept.index(name)] if name in names else 1 for name in over])
