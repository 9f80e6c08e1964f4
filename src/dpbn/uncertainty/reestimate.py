"""Estimate again from other noisy tables of the same kind: what error bars and forecasts repeat.

Given the public side of a release (structure, method, measurements' names and scales, details), returns the
deterministic map from noisy table values to CPTs that the learner applied. Post-processing: never sees data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError
from dpbn.learners.icml2020 import weighted_mean
from dpbn.learners.procedure1 import node_tables, parameters_from

if TYPE_CHECKING:
    from dpbn.release import Release

Array = NDArray[np.float64]
Tables = Sequence[NDArray[np.int64]]


def estimator_of(release: Release) -> Callable[[Tables], Mapping[str, Array]]:
    """The map from the values of `release.measurements` (in order) to CPTs of every measured node."""
    if release.method == "uniform":
        return lambda tables: _procedure1(release, release.allocation, tables)
    if release.method == "icml2020":
        return lambda tables: _two_stages(release, tables)
    raise InputError(f"a method with noise must be given for error bars, got {release.method!r}")


def _priors(release: Release) -> dict[str, Array]:
    return {node: np.asarray(alpha, dtype=np.float64) for node, alpha in release.prior.items()}


def _procedure1(release: Release, shares: Mapping[str, float], tables: Tables) -> Mapping[str, Array]:
    return parameters_from(release.structure, shares, tables, _priors(release)).cpts


def _two_stages(release: Release, tables: Tables) -> Mapping[str, Array]:
    shares: Mapping[str, float] = release.details["stage_two"]
    middle = sum(len(node_tables(release.structure, node)) for node in shares)
    one = release.details["stage_one_epsilon"] / len(shares)
    first = _procedure1(release, dict.fromkeys(shares, one), tables[:middle])
    second = _procedure1(release, shares, tables[middle:])
    return weighted_mean(first, second, one, shares)
