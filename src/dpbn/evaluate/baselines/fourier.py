"""Laplace noise in the Fourier domain: one noisy spectrum, so all family tables agree from the start.

Output: CPTs, posterior means under a flat Dirichlet prior given the noisy family tables (negative cells clipped at 0).
Guarantee: epsilon-DP, continuous Laplace noise (seeded; floating point, so for experiments only).
Sensitivity: one record adds phi_a(x) to each coefficient a. The basis of a variable with d states is the cosine
basis (for d = 2 exactly the +-1 parity of the source); with b_i = max_x sum_{j >= 1} |phi_j(x)| the L1 norm of a record
over the subsets S of families is at most sum_S prod_{i in S} b_i, which for binary variables is |J|, the source's value
(its neighbours replace a record, hence its factor 2).
Source: Zhang, Rubinstein, Dimitrakakis, "On the Differential Privacy of Bayesian Inference" (AAAI 2016), section on
the Fourier approach (after Barak et al. 2007). The source then raises the constant coefficient until all cells are
positive with high probability; clipping, used here, errs less.
"""

from __future__ import annotations

import numpy as np

from dpbn.evaluate.baselines.common import Array, families
from dpbn.evaluate.baselines.residuals import closure, subsets
from dpbn.learners.procedure1 import normalised_rows
from dpbn.margins import Names, project, spread
from dpbn.measure import CountSource
from dpbn.network import Structure

FLAT_PRIOR = 1.0


def cosine_basis(size: int) -> Array:
    """Rows 1..size-1 of the cosine basis: orthogonal, each sums to 0 over states, squares sum to `size`."""
    frequency, state = np.mgrid[1:size, 0:size]
    return np.asarray(np.sqrt(2.0) * np.cos(np.pi * frequency * (state + 0.5) / size))


def spectral_sensitivity(structure: Structure, sets: list[Names]) -> float:
    """The most one record adds to the L1 norm of the coefficients on `sets`."""
    bound = {v.name: float(np.abs(cosine_basis(v.size)).sum(axis=0).max(initial=0.0)) for v in structure.schema}
    return float(sum(np.prod([bound[name] for name in onto]) for onto in sets))


def learn_fourier(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """Noise every coefficient of the families' downward closure, transform back, normalise."""
    generator = np.random.default_rng(seed)
    wanted = families(structure)
    sets = closure(wanted.values())
    scale = spectral_sensitivity(structure, sets) / epsilon
    bases = {v.name: cosine_basis(v.size) for v in structure.schema}
    counts = source.counts(list(wanted.values()))
    spectrum: dict[Names, Array] = {}
    for names in wanted.values():
        for onto in subsets(names):
            if onto not in spectrum:
                margin = project(counts[names].astype(np.float64), names, onto)
                exact = _apply(margin, [bases[name] for name in onto])
                spectrum[onto] = exact + generator.laplace(0.0, scale, exact.shape)
    cpts = {}
    for node, names in wanted.items():
        table = np.zeros(structure.shape(node))
        for onto in subsets(names):
            part = _apply(spectrum[onto], [bases[name].T for name in onto])
            table = table + spread(part, onto, names) / table.size
        cpts[node] = normalised_rows(np.maximum(table, 0.0) + FLAT_PRIOR)
    return cpts


def _apply(table: Array, matrices: list[Array]) -> Array:
    """One matrix along each axis."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return np.asarray(table)
