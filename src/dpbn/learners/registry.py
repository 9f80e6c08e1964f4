"""The private methods by name. A learner asks a Curator for noisy tables and never sees a count."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dpbn.errors import InputError, did_you_mean, received
from dpbn.learners.icml2020 import learn_icml2020
from dpbn.learners.learned import Learned
from dpbn.learners.optimized import learn_optimized
from dpbn.learners.uniform import learn_uniform

LEARNERS: Mapping[str, Callable[..., Learned]] = {
    "optimized": learn_optimized,
    "uniform": learn_uniform,
    "icml2020": learn_icml2020,
}
PURE = ("uniform", "icml2020")
_COMMON = ("structure", "curator", "prior", "public_cpts", "workload")


def learner_of(
    method: str, options: Mapping[str, Any], delta: float, workload: Any, caller: Callable[..., Any] | None = None
) -> Callable[..., Learned]:
    """The learner called `method`, with its own `options` (and the workload, if it takes one) filled in.

    Options may be mistyped arguments of the `caller`.
    """
    if method == "exact":
        raise InputError("options and forecasts must be of a method with noise, got method 'exact'")
    known_methods = sorted([*LEARNERS, "exact"])
    if method not in known_methods:  # a list: what cannot be hashed is no method either
        raise InputError(
            f"method must be one of {known_methods}, got {received(method)}{did_you_mean(method, known_methods)}"
        )
    if method in PURE and delta:
        raise InputError(f"delta must be 0 for method {method!r}, which is pure, got {delta!r}")
    learner = LEARNERS[method]
    own = sorted(set(inspect.signature(learner).parameters) - set(_COMMON))
    stray = sorted(set(options) - set(own))
    if stray:
        arguments = inspect.signature(caller).parameters.values() if caller else ()
        named = [argument.name for argument in arguments if argument.kind is not argument.VAR_KEYWORD]
        hint = did_you_mean(stray[0], [*own, *named])
        told = ", ".join(own) or "it has none"
        raise InputError(f"arguments must be known, or options of method {method!r} ({told}), got {stray}{hint}")
    filled = dict(options)
    if takes_workload(method):
        filled["workload"] = workload
    elif workload:
        raise InputError(f"a workload must be given to a method that uses one, got method {method!r}")
    return partial(learner, **filled)  # another process can have it, unlike a lambda


def takes_workload(method: str) -> bool:
    """Whether `method` is one that can steer its budget by a workload."""
    known = isinstance(method, str) and method in LEARNERS
    return known and "workload" in inspect.signature(LEARNERS[method]).parameters
