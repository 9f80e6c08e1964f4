"""Every method of the comparison under one interface: counts, epsilon and a seed in, CPTs out.

Experiments only: noise is seeded (InsecureNoise), so nothing here is private.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, did_you_mean
from dpbn.evaluate.baselines import BASELINES
from dpbn.evaluate.baselines.common import Learner, Method, experiment_curator
from dpbn.learners.exact import learn_exact
from dpbn.learners.registry import learner_of
from dpbn.measure import CountSource
from dpbn.network import Structure

Array = NDArray[np.float64]
DELTA = 1e-6


def _exact(structure: Structure, source: CountSource, epsilon: float, seed: int) -> Mapping[str, Array]:
    del epsilon, seed
    return learn_exact(structure, source, prior={}, public_cpts={}).cpts


def _private(method: str, delta: float = 0.0) -> Learner:
    """A learner of `dpbn.learn`, on seeded noise."""
    learner = learner_of(method, {}, delta, None)

    def learn(structure: Structure, source: CountSource, epsilon: float, seed: int) -> Mapping[str, Array]:
        curator = experiment_curator(source, epsilon, seed, delta=delta)
        return learner(structure, curator, prior={}, public_cpts={}).cpts

    return learn


METHODS: Mapping[str, Method] = {
    "exact": Method("no privacy", _exact, "none"),
    "uniform": Method("D-Ind", _private("uniform")),
    "icml2020": Method("Algorithm 1 (ICML 2020)", _private("icml2020")),
    "optimized": Method("dpbn optimized", _private("optimized")),
    "optimized-delta": Method("dpbn optimized, δ = 1e-6", _private("optimized", DELTA), "(ε, 1e-6)-DP", DELTA),
    **BASELINES,
}


def method(name: str) -> Method:
    if name not in METHODS:
        raise InputError(f"method must be one of {sorted(METHODS)}, got {name!r}{did_you_mean(name, METHODS)}")
    return METHODS[name]
