"""The paper's bounds on the L1 error of one answer, and the error they normalise.

LB = sqrt(eta - 1) * delta_min * phi_min^(eta - 2)      UB = 2 * eta * d^kappa * delta_max
eta the largest in-degree plus out-degree, plus 1 · kappa the treewidth · d the largest domain · delta the error of a
parameter, phi a true parameter, both per cell over all CPTs. mu = (L1 - LB) / (UB - LB).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpbn.elimination import exact_treewidth, graph_of_scopes, treewidth_bounds
from dpbn.network import BayesianNetwork, Structure


@dataclass(frozen=True)
class Bounds:
    lower: float
    upper: float

    def normalised(self, error: float) -> float:
        """mu; 0 where there is nothing to normalise by (a network learned without error)."""
        return (error - self.lower) / (self.upper - self.lower) if self.upper > self.lower else 0.0


@lru_cache(maxsize=64)
def _width(structure: Structure) -> int:
    """The treewidth of the moral graph, or an upper bound where the search does not settle it."""
    position = {name: i for i, name in enumerate(structure.nodes)}
    scopes = [[position[name] for name in family.names] for family in structure.dag.families]
    graph = graph_of_scopes(len(position), scopes)
    exact = exact_treewidth(graph)
    return treewidth_bounds(graph)[1] if exact is None else exact


def error_bounds(truth: BayesianNetwork, learned: BayesianNetwork) -> Bounds:
    dag = truth.structure.dag
    eta = max(len(dag.parents[node]) + len(dag.children(node)) for node in dag.nodes) + 1
    largest = max(variable.size for variable in truth.structure.schema)
    errors = np.concatenate([np.abs(truth.cpt(node) - learned.cpt(node)).ravel() for node in truth.nodes])
    smallest = min(float(truth.cpt(node).min()) for node in truth.nodes)
    lower = math.sqrt(eta - 1) * float(errors.min()) * (smallest ** (eta - 2) if eta >= 2 else 1.0)
    upper = 2.0 * eta * float(largest) ** _width(truth.structure) * float(errors.max())
    return Bounds(lower, upper)
