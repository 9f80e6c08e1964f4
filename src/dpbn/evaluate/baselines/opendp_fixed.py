"""OpenDP's prespecified marginals (the `Fixed` algorithm of its contingency tables) on the families.

Output: CPTs read off the Markov random field fitted to OpenDP's noisy tables.
Guarantee: epsilon-DP: OpenDP composes one discrete Laplace release per family at one common scale, the smallest at
which its own privacy map states a loss of at most epsilon.
Sensitivity: adding or removing a record changes one cell of each table by 1; tables compose.
Source: OpenDP library, opendp.extras.mbi (`Fixed`, `make_contingency_table`). Its front door reads rows through polars
1.36 and fits with mbi 1.1, both pinned; beside newer ones only its release step loads, so this calls that step on the
counts and fits with the installed mbi, as `private_pgm` does. Noise comes from OpenDP and cannot be seeded:
these rows of a table of results change from run to run.
"""

from __future__ import annotations

import numpy as np

from dpbn.errors import extra
from dpbn.evaluate.baselines.common import Array, families
from dpbn.evaluate.baselines.private_pgm import STEPS, TOLERANCE, check_size, import_mbi, model_cpts
from dpbn.measure import CountSource
from dpbn.network import Structure


def learn_opendp(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """OpenDP's release of all family tables, then mirror descent. `seed` has no effect."""
    del seed
    mbi = import_mbi()
    with extra("opendp.extras.mbi", "bench"):
        import opendp.prelude as opendp
        from opendp.extras.mbi._utilities import make_noise_marginals, typed_dict_distance, typed_dict_domain
        from opendp.extras.numpy import arrayd_domain
    opendp.enable_features("contrib", "honest-but-curious")
    cliques = list(dict.fromkeys(families(structure).values()))
    schema = structure.schema
    model_domain = mbi.Domain(structure.nodes, schema.shape(structure.nodes))
    check_size(mbi, model_domain, cliques)
    domain = typed_dict_domain({names: arrayd_domain(shape=schema.shape(names), T="i32") for names in cliques})
    metric = typed_dict_distance(opendp.l1_distance(T="u32"))
    nearby = dict.fromkeys(cliques, 1)
    scale = len(cliques) / epsilon
    release = make_noise_marginals(domain, metric, opendp.max_divergence(), cliques, scale)
    while release.map(nearby) > epsilon:
        scale *= 1 + 1e-12
        release = make_noise_marginals(domain, metric, opendp.max_divergence(), cliques, scale)
    counts = source.counts(cliques)
    measurements = release({names: counts[names].astype(np.int32) for names in cliques})
    model = mbi.estimation.MirrorDescent().estimate(model_domain, measurements, iters=STEPS, tol=TOLERANCE)
    return model_cpts(structure, model)
