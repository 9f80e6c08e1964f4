"""Every method of the comparison under one interface: counts, epsilon and a seed in, CPTs out.

Experiments only: noise is seeded (InsecureNoise), so nothing here is private. The guarantee named is that
of the same mechanism on secure noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, did_you_mean
from dpbn.evaluate.baselines import BASELINES
from dpbn.evaluate.baselines.common import Learner, experiment_curator
from dpbn.learners.exact import learn_exact
from dpbn.learners.registry import learner_of
from dpbn.measure import CountSource
from dpbn.network import Structure

Array = NDArray[np.float64]
DELTA = 1e-6


@dataclass(frozen=True)
class Method:
    """A row of the comparison. `delta` is the delta of its guarantee; `exact` has none at all."""

    name: str
    title: str
    learn: Learner
    guarantee: str
    delta: float = 0.0


@dataclass(frozen=True)
class LibraryLearner:
    """A learner of `dpbn.learn`, on seeded noise."""

    method: str
    delta: float = 0.0

    def __call__(self, structure: Structure, source: CountSource, epsilon: float, seed: int) -> Mapping[str, Array]:
        if self.method == "exact":
            return learn_exact(structure, source, prior={}, public_cpts={}).cpts
        learner = learner_of(self.method, {}, self.delta, None)
        return learner(
            structure, experiment_curator(source, epsilon, seed, delta=self.delta), prior={}, public_cpts={}
        ).cpts


_OWN = (
    Method("exact", "no privacy", LibraryLearner("exact"), "none"),
    Method("uniform", "D-Ind", LibraryLearner("uniform"), "ε-DP"),
    Method("icml2020", "Algorithm 1 (ICML 2020)", LibraryLearner("icml2020"), "ε-DP"),
    Method("optimized", "dpbn optimized", LibraryLearner("optimized"), "ε-DP"),
    Method(
        "optimized-delta",
        "dpbn optimized, δ = 1e-6",
        LibraryLearner("optimized", DELTA),
        "(ε, 1e-6)-DP",
        DELTA,
    ),
)
METHODS: Mapping[str, Method] = {
    **{method.name: method for method in _OWN},
    **{name: Method(name, entry.title, entry.learn, entry.guarantee) for name, entry in BASELINES.items()},
}


def method(name: str) -> Method:
    if name not in METHODS:
        raise InputError(f"method must be one of {sorted(METHODS)}, got {name!r}{did_you_mean(name, METHODS)}")
    return METHODS[name]
