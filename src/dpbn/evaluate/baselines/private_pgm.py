"""Private-PGM through mbi: a Markov random field fitted to noisy family tables by mirror descent.

Output: CPTs read off the fitted model's family marginals.
Guarantee: epsilon-DP, discrete Laplace noise on every cell of all n family tables, epsilon / n each.
Sensitivity: adding or removing a record changes one cell of each table by 1; tables compose.
Source: McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for differential privacy" (ICML 2019),
package mbi (extra `bench`). Mirror descent runs until the loss no longer improves by `TOLERANCE` in relative terms, at
most `STEPS` steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbn.errors import TooLargeError, extra
from dpbn.evaluate.baselines.common import Array, cpts_from_tables, families, measure_tables
from dpbn.margins import Names
from dpbn.measure import CountSource
from dpbn.network import Structure

STEPS, TOLERANCE, MOST_MODEL_CELLS = 10_000, 1e-5, 5_000_000


def import_mbi() -> Any:
    """mbi in double precision, or an error that names the extra."""
    with extra("mbi", "bench"):
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_enable_compilation_cache", False)
        import mbi
    return mbi


def learn_private_pgm(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """Equal shares over all families, mirror descent, marginals."""
    wanted = list(families(structure).values())
    return fitted_cpts(structure, source, epsilon, seed, dict.fromkeys(wanted, epsilon / len(wanted)))


def fitted_cpts(
    structure: Structure, source: CountSource, epsilon: float, seed: int, shares: Mapping[Names, float]
) -> dict[str, Array]:
    """Measure each table at its share of epsilon, fit by mirror descent, read off CPTs."""
    mbi = import_mbi()
    domain = mbi.Domain(structure.nodes, structure.schema.shape(structure.nodes))
    check_size(mbi, domain, list(shares))
    noisy = measure_tables(source, epsilon, seed, shares)
    measurements = [
        mbi.LinearMeasurement(table.ravel(), names, stddev=float(np.sqrt(2.0) / shares[names]))
        for names, table in noisy.items()
    ]
    model = mbi.estimation.MirrorDescent().estimate(domain, measurements, iters=STEPS, tol=TOLERANCE)
    return model_cpts(structure, model)


def check_size(mbi: Any, domain: Any, cliques: list[Names]) -> None:
    """Refuse a model whose junction tree is too large, before it is built."""
    tree, _ = mbi.junction_tree.make_junction_tree(domain, cliques)
    cells = sum(domain.size(clique) for clique in tree.nodes)
    if cells > MOST_MODEL_CELLS:
        raise TooLargeError(
            f"the junction tree of Private-PGM must have at most {MOST_MODEL_CELLS:.0e} cells, got {cells:.2e}"
        )


def model_cpts(structure: Structure, model: Any) -> dict[str, Array]:
    """CPTs of the structure from a fitted mbi model."""
    tables = {}
    for node, names in families(structure).items():
        factor = model.project(names)
        tables[node] = np.asarray(factor.transpose(names).values, dtype=np.float64)
    return cpts_from_tables(tables)
