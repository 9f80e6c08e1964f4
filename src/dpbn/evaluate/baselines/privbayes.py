"""PrivBayes' noisy conditionals, with the structure given.

Output: CPTs from noisy family tables, clipped at 0 and normalised; no consistency step.
Guarantee: epsilon-DP, discrete Laplace noise on every cell; the budget in equal shares.
Sensitivity: adding or removing a record changes one cell of each table by 1; tables compose.
Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao, "PrivBayes: Private Data Release via Bayesian Networks"
(SIGMOD 2014, TODS 2017), Algorithm NoisyConditionals. There the first k nodes are read off the table of
node k + 1; here likewise every family contained in another is read off that one, and costs nothing.
The structure is public, so the half of the budget PrivBayes spends on choosing it is not spent.
"""

from __future__ import annotations

from dpbn.evaluate.baselines.common import Array, cpts_from_tables, families, maximal, measure_tables, smallest_cover
from dpbn.measure import CountSource
from dpbn.network import Structure


def learn_privbayes(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """Equal shares over the maximal families."""
    tables = maximal(list(families(structure).values()))
    noisy = measure_tables(source, epsilon, seed, dict.fromkeys(tables, epsilon / len(tables)))
    return cpts_from_tables(smallest_cover(structure, noisy))
