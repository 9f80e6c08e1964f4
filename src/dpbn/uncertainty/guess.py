"""A public guess where no CPTs are known: networks as skewed as those in the literature."""

from __future__ import annotations

import numpy as np

from dpbn.network import BayesianNetwork, Structure, check_cells

# CPT rows are drawn from a symmetric Dirichlet with this total concentration. One number for all networks, but chosen
# by looking at forecasts of published ones (docs/uncertainty.md says which values were tried and why it moved).
CONCENTRATION = 0.85

# The least and the most even of the 24 networks of the bnlearn repository, by the mean of sum p^2 over their CPT rows
# (munin3 and survey; benchmarks/forecast.py --evenness): what a structure alone cannot tell.
LEAST_EVEN, MOST_EVEN = 0.25, 2.75


def typical_network(structure: Structure, seed: int, concentration: float = CONCENTRATION) -> BayesianNetwork:
    """A network with random CPTs over `structure`."""
    check_cells(structure)
    random = np.random.default_rng(seed)
    cpts = {}
    for node in structure.nodes:
        shape = structure.shape(node)
        rows = random.gamma(concentration / shape[-1], size=shape) + 1e-12
        cpts[node] = rows / rows.sum(axis=-1, keepdims=True)
    return BayesianNetwork(structure, cpts)
