"""Private-PGM on the tables and shares that dpbn chooses for noise drawn apart: mbi with the best tables known here.

Output: CPTs read off the fitted model's family marginals.
Guarantee: epsilon-DP, discrete Laplace noise on every cell of each table, shares that sum to epsilon.
Sensitivity: adding or removing a record changes one cell of each table by 1; tables compose.
Source: as `private_pgm`; the tables are those of `dpbn.learners.strategy`. dpbn's default also draws noise together,
which mbi cannot use, and may merge fewer tables for it; the rest of the difference is the estimate.
"""

from __future__ import annotations

from dpbn.evaluate.baselines.common import Array
from dpbn.evaluate.baselines.private_pgm import fitted_cpts
from dpbn.learners.strategy import plan_tables
from dpbn.measure import CountSource
from dpbn.network import Structure


def learn_private_pgm_tables(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """dpbn's tables, mirror descent, marginals."""
    strategy = plan_tables(structure)
    shares = {names: epsilon * share for names, share in zip(strategy.tables, strategy.shares, strict=True)}
    return fitted_cpts(structure, source, epsilon, seed, shares)
