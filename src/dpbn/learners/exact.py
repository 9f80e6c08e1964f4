"""The non-private estimate, for comparison. What it returns is never called private."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.learned import Learned
from dpbn.learners.procedure1 import normalised_rows
from dpbn.measure import CountSource
from dpbn.network import Structure


def learn_exact(
    structure: Structure,
    source: CountSource,
    *,
    prior: Mapping[str, NDArray[np.float64]],
    public_cpts: Mapping[str, NDArray[np.float64]],
) -> Learned:
    """Relative frequencies (plus prior) of every family; a parent row never seen becomes uniform."""
    families = {node: structure.family(node).names for node in structure.nodes if node not in public_cpts}
    tables = source.counts(list(families.values()))
    cpts = {
        node: normalised_rows(tables[names].astype(np.float64) + prior.get(node, 0.0))
        for node, names in families.items()
    }
    return Learned({**cpts, **public_cpts}, {})
