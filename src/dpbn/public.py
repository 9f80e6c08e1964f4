"""What is public beside the structure: CPTs that are known already, and pseudo-counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, received
from dpbn.network import Structure, checked_cpt

Array = NDArray[np.float64]
LARGEST_PRIOR = 1e100  # sums of more would leave the range of floats


def checked_cpts(structure: Structure, cpts: Mapping[str, Any] | None) -> dict[str, Array]:
    """CPTs that are given, not learned, in the shape that `structure` asks for."""
    if not isinstance(cpts, Mapping | None):
        raise InputError(f"public_cpts must map nodes to tables, got {type(cpts).__name__}")
    return {node: checked_cpt(structure, node, cpt) for node, cpt in (cpts or {}).items()}


def dirichlet_prior(structure: Structure, prior: float | Mapping[str, Any] | None) -> dict[str, Array]:
    """Public pseudo-counts per node in the shape of its CPT, from one number or one entry per node."""
    if prior is None:
        return {}
    entries = prior if isinstance(prior, Mapping) else dict.fromkeys(structure.nodes, prior)
    result = {}
    for node, alpha in entries.items():
        shape = structure.shape(node)
        try:
            array = np.broadcast_to(np.asarray(alpha, dtype=np.float64), shape)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"prior of {node!r} must be a number or an array of shape {shape}, got {received(alpha)}"
            ) from None
        if not ((array >= 0) & (array <= LARGEST_PRIOR)).all():
            raise InputError(f"prior of {node!r} must be in 0..{LARGEST_PRIOR:g}, got {received(alpha)}")
        result[node] = array
    return result
