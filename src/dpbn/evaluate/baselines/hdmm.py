"""HDMM with marginal strategies: weights over marginals optimised for the workload of families.

Output: CPTs from the least-squares family tables, clipped at 0 and normalised.
Guarantee: epsilon-DP, discrete Laplace noise on every cell of each chosen marginal, shares w_A with sum 1.
Sensitivity: adding or removing a record changes one cell of each marginal by 1; marginals compose.
Source: McKenna, Miklau, Hay, Machanavajjhala, "Optimizing error of high-dimensional statistical queries under
differential privacy" (VLDB 2018), OPT_M. The candidates are all subsets of families (OPT_M takes all 2^n subsets;
a marginal that is in no family only adds noise it must share). The weights are public: they depend on the domain
only. In the residual basis the expected squared error of the workload is, up to a constant,
  sum_S dim(S) * (sum_{F contains S} 1/|F|) / (sum_{A contains S} w_A^2 / |A|)     with sum w_A = 1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpbn.errors import TooLargeError
from dpbn.evaluate.baselines.common import Array, cpts_from_tables, families, maximal, measure_tables
from dpbn.evaluate.baselines.residuals import closure, least_squares, residual_dimension
from dpbn.margins import Names
from dpbn.measure import CountSource
from dpbn.network import Structure

STEPS, NEGLIGIBLE, MOST_CANDIDATES = 400, 1e-3, 4000


@lru_cache(maxsize=32)
def marginal_weights(structure: Structure) -> dict[Names, float]:
    """The shares that minimise the workload's expected squared error, found by descent; tiny ones dropped."""
    workload = list(families(structure).values())
    candidates = closure(workload)
    if len(candidates) > MOST_CANDIDATES:
        raise TooLargeError(
            f"HDMM's marginal strategies must have at most {MOST_CANDIDATES} candidates, got {len(candidates)}"
        )
    schema = structure.schema
    contains = np.array([[set(s) <= set(a) for a in candidates] for s in candidates], dtype=np.float64)
    needed = np.array([sum(1.0 / schema.cells(f) for f in workload if set(s) <= set(f)) for s in candidates])
    needed = needed * np.array([residual_dimension(schema, s) for s in candidates])
    cells = np.array([schema.cells(a) for a in candidates], dtype=np.float64)
    largest = {tuple(sorted(names)) for names in maximal(workload)}
    starts = (np.ones(len(candidates)), np.array([1.0 if a in largest else 0.05 for a in candidates]))
    best = min((_descend(start, contains, needed, cells) for start in starts), key=lambda found: found[0])[1]
    kept = {names: float(w) for names, w in zip(candidates, best, strict=True) if w > NEGLIGIBLE / len(workload)}
    for names in workload:  # least squares needs every family inside some measured marginal
        if not any(set(names) <= set(other) for other in kept):
            kept[tuple(sorted(names))] = NEGLIGIBLE / len(workload)
    total = sum(kept.values())
    return {names: w / total for names, w in kept.items()}


def _descend(weights: Array, contains: Array, needed: Array, cells: Array) -> tuple[float, Array]:
    """Multiplicative steps: at a stationary point slope / error is 2 wherever the weight is not 0."""
    best, found, power = np.inf, weights, 1.0
    for _ in range(STEPS):
        weights = weights / weights.sum()
        precision = contains @ (weights**2 / cells)
        error = float((needed / precision).sum())
        if error < best:
            best, found = error, weights
        else:
            power = max(power / 2, 1 / 64)
        slope = 2.0 * weights / cells * (contains.T @ (needed / precision**2))
        weights = weights * (slope / (2.0 * error)) ** power
    return best, found


def learn_hdmm(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """Measure the weighted marginals, solve for the families."""
    shares = {names: epsilon * w for names, w in marginal_weights(structure).items()}
    noisy = measure_tables(source, epsilon, seed, shares)
    variances = {names: 2.0 / share**2 for names, share in shares.items()}
    wanted = families(structure)
    tables = least_squares(structure.schema, noisy, variances, list(wanted.values()))
    return cpts_from_tables({node: tables[names] for node, names in wanted.items()})
