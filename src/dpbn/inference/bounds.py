"""The paper's bounds on the L1 error of one sum-product term, and the normalised error μ of a query.

Symbols: η = largest in-degree plus out-degree of a node, plus one; κ = treewidth of the moral graph;
d = largest domain; δ = |φ − φ̃| per cell and φ = the true probability per cell, over all CPTs.
    LB = sqrt(η − 1)·δ_min·φ_min^(η − 2)        UB = 2·η·d^κ·δ_max        μ = (L1 − LB) / (UB − LB)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpbn.errors import InputError, StructureError
from dpbn.graph import treewidth
from dpbn.network import BayesianNetwork


@dataclass(frozen=True, slots=True)
class ErrorBounds:
    """LB and UB with everything they are made of; `exact` says whether κ is the treewidth or an upper bound of it."""

    eta: int
    kappa: int
    exact: bool
    largest_domain: int
    delta_min: float
    delta_max: float
    phi_min: float
    lower: float
    upper: float

    def normalised(self, error: float) -> float:
        """μ of a query whose L1 error is `error`."""
        if not (math.isfinite(error) and error >= 0):
            raise InputError(f"an L1 error must be finite and >= 0, got {error!r}")
        if not self.upper > self.lower:
            raise InputError(f"bounds must differ to normalise an error, got LB {self.lower!r} and UB {self.upper!r}")
        return (error - self.lower) / (self.upper - self.lower)


def error_bounds(true: BayesianNetwork, released: BayesianNetwork, *, effort: int = 50_000) -> ErrorBounds:
    """Bounds for queries on `released` against `true`; `effort` bounds the search for the exact treewidth."""
    if true.structure != released.structure:
        raise StructureError("bounds must compare networks of one structure, got different ones")
    dag = true.structure.dag
    eta = max(len(dag.parents[node]) + len(dag.children(node)) for node in dag.nodes) + 1
    low, high = treewidth(dag, effort=effort)
    errors = np.concatenate([np.abs(true.cpt(node) - released.cpt(node)).ravel() for node in true.nodes])
    phi_min = min(float(true.cpt(node).min()) for node in true.nodes)
    delta_min, delta_max = float(errors.min()), float(errors.max())
    largest = max(len(true.states(node)) for node in true.nodes)
    # without a neighbour (η = 1) no product is formed and the printed power is meaningless: no lower bound then
    lower = math.sqrt(eta - 1) * delta_min * phi_min ** (eta - 2) if eta >= 2 else 0.0
    upper = 2.0 * eta * float(largest) ** high * delta_max
    return ErrorBounds(eta, high, low == high, largest, delta_min, delta_max, phi_min, lower, upper)
