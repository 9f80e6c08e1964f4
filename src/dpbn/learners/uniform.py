"""D-Ind, the paper's baseline: Procedure 1 with equal shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.learned import Learned
from dpbn.learners.procedure1 import compute_parameters
from dpbn.measure import Curator
from dpbn.network import Structure
from dpbn.privacy import accounting


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
    shares = equal_shares(nodes, curator.budget.epsilon)
    parameters = compute_parameters(structure, curator, shares, prior, stage="all")
    return Learned({**parameters.cpts, **public_cpts}, shares)


def equal_shares(nodes: Sequence[str], budget: float) -> dict[str, float]:
    """The budget over the nodes in equal parts; half of any part, charged twice, still fits."""
    return dict(zip(nodes, accounting.split(budget, [1.0] * len(nodes)), strict=True))
