"""D-Ind, the paper's baseline: Procedure 1 with equal shares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.learned import Learned
from dpbn.learners.procedure1 import compute_parameters
from dpbn.measure import Curator
from dpbn.network import Structure

# Shares are rounded down by this much, so that the accountant's total, rounded up, stays within budget.
ROUNDING = 1e-12


def learn_uniform(
    structure: Structure,
    curator: Curator,
    *,
    prior: Mapping[str, NDArray[np.float64]],
    public_cpts: Mapping[str, NDArray[np.float64]],
) -> Learned:
    """ComputeParameters(D, [epsilon/n, ...]) over the nodes whose CPT is not public already."""
    nodes = [node for node in structure.nodes if node not in public_cpts]
    if not nodes:
        return Learned(dict(public_cpts), {})
    shares = dict.fromkeys(nodes, curator.budget.epsilon / len(nodes) * (1 - ROUNDING))
    parameters = compute_parameters(structure, curator, shares, prior, stage="all")
    return Learned({**parameters.cpts, **public_cpts}, shares)
