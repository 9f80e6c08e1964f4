"""Estimate again from other noisy tables of the same kind: what error bars repeat.

From the public side of a release (structure, method, names and scales of the measurements, details) comes the
deterministic map from noisy values to CPTs that the learner applied, on a batch. Post-processing: never sees data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import FormatError, InputError
from dpbn.learners.estimate import estimate_batch
from dpbn.learners.icml2020 import weighted_mean
from dpbn.learners.procedure1 import node_tables, parameters_from
from dpbn.measurement import finest

if TYPE_CHECKING:
    from dpbn.release import Release

Array = NDArray[np.float64]
Tables = Sequence[NDArray[np.int64]]  # one per measurement of the release, in order; the replicate is the first axis


def estimator_of(release: Release) -> Callable[[Tables], Mapping[str, Array]]:
    """The map from values like those of `release.measurements` to the CPTs of every measured node."""
    if release.method == "optimized":
        _check_families(release)
        return lambda tables: _optimized(release, tables)
    if release.method == "uniform":
        shares = _shares(release, release.allocation)
        _check_tables(release, shares, 1)
        return _one_by_one(lambda tables: _procedure1(release, shares, tables))
    if release.method == "icml2020":
        shares = _shares(release, release.details.get("stage_two"))
        _check_tables(release, shares, 2)
        one = _share(release.details.get("stage_one_epsilon")) / max(len(shares), 1)
        return _one_by_one(lambda tables: _two_stages(release, one, shares, tables))
    raise InputError(f"a release must be made with noise to have error bars, got method {release.method!r}")


def _shares(release: Release, found: Any) -> dict[str, float]:
    """A budget for every node that is not public; a release file may say anything."""
    nodes = [node for node in release.structure.nodes if node not in release.public_nodes]
    if not isinstance(found, Mapping) or set(found) != set(nodes):
        raise FormatError(f"a release by {release.method} must name a budget for every node measured, got others")
    return {node: _share(found[node]) for node in nodes}


def _check_families(release: Release) -> None:
    for node in release.structure.nodes:
        if node not in release.public_nodes and not any(node in m.names for m in release.measurements):
            raise FormatError(f"a release by {release.method} must hold a table of {node!r}, got none")


def _check_tables(release: Release, shares: Mapping[str, float], stages: int) -> None:
    wanted = [names for node in shares for names in node_tables(release.structure, node)]
    if [m.names for m in release.measurements] != wanted * stages:
        raise FormatError(f"a release by {release.method} must hold the tables that the method asks for, got others")


def _share(found: Any) -> float:
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found <= sys.float_info.max:
        raise FormatError(f"a budget in a release must be a number above 0, got {found!r:.40}")
    return float(found)


def _priors(release: Release) -> dict[str, Array]:
    return {node: np.asarray(alpha, dtype=np.float64) for node, alpha in release.prior.items()}


def _optimized(release: Release, tables: Tables) -> Mapping[str, Array]:
    used = finest(release.measurements)
    values = [table for table, m in zip(tables, release.measurements, strict=True) if m in used]
    return estimate_batch(
        release.structure,
        [m.names for m in used],
        [table.astype(np.float64) for table in values],
        [m.moments for m in used],
        prior=_priors(release),
        public_cpts={node: release.network.cpt(node) for node in release.public_nodes},
    )


def _one_by_one(single: Callable[[Tables], Mapping[str, Array]]) -> Callable[[Tables], Mapping[str, Array]]:
    def batch(tables: Tables) -> Mapping[str, Array]:
        each = [single([table[index] for table in tables]) for index in range(len(tables[0]))]
        return {node: np.stack([cpts[node] for cpts in each]) for node in each[0]}

    return batch


def _procedure1(release: Release, shares: Mapping[str, float], tables: Tables) -> Mapping[str, Array]:
    return parameters_from(release.structure, shares, tables, _priors(release)).cpts


def _two_stages(release: Release, one: float, shares: Mapping[str, float], tables: Tables) -> Mapping[str, Array]:
    middle = sum(len(node_tables(release.structure, node)) for node in shares)
    first = _procedure1(release, dict.fromkeys(shares, one), tables[:middle])
    second = _procedure1(release, shares, tables[middle:])
    return weighted_mean(first, second, one, shares)
