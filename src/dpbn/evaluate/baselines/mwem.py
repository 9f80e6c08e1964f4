"""MWEM: a joint table over the whole domain, improved by multiplicative weights on the worst-answered family.

Output: CPTs read off the fitted joint.
Guarantee: epsilon-DP: a noisy total (5 % of epsilon), then T rounds, half of each for choosing, half for measuring.
Sensitivity: a cell's error changes by at most 1 when a record comes or goes, so the exponential mechanism runs at
sensitivity 1 over all family cells; the table of the chosen cell is then measured whole, its cells being disjoint.
Source: Hardt, Ligett, McSherry, "A simple and practical algorithm for differentially private data release" (NIPS 2012),
with its refinements: whole marginals measured at once, all past measurements replayed every round; the last iterate is
the output (the average over rounds, which the analysis uses, errs more). The table has one cell per point of the
domain: small networks only.
"""

from __future__ import annotations

import numpy as np

from dpbn.errors import TooLargeError
from dpbn.evaluate.baselines.common import Array, cpts_from_tables, families, maximal
from dpbn.margins import Names, project, spread
from dpbn.measure import CountSource
from dpbn.network import Structure
from dpbn.privacy.noise import InsecureNoise

MOST_CELLS = 2_000_000
ROUNDS, TOTAL_SHARE = 10, 0.05
REPLAYS = 100  # a round: the more the closer to the measurements


def learn_mwem(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """Select, measure, reweight; return the last iterate."""
    nodes, schema = structure.nodes, structure.schema
    cells = schema.cells(nodes)
    if cells > MOST_CELLS:
        raise TooLargeError(
            f"MWEM holds one weight per point of the domain and must have at most {MOST_CELLS:.0e}, got {cells:.2e}"
        )
    generator, noise = np.random.default_rng(seed), InsecureNoise(seed + 1)
    wanted = maximal(list(families(structure).values()))
    counts = source.counts(wanted)
    records = np.atleast_1d(np.asarray(counts[wanted[0]].sum(), dtype=np.int64))
    total = max(float(noise.laplace(records, 1.0 / (TOTAL_SHARE * epsilon))[0]), 1.0)
    per_step = (1.0 - TOTAL_SHARE) * epsilon / (2 * ROUNDS)

    joint = np.full(schema.shape(nodes), total / cells)
    measured: list[tuple[Names, Array]] = []
    for _ in range(ROUNDS):
        errors = [np.abs(counts[names] - project(joint, nodes, names)).ravel() for names in wanted]
        chosen = wanted[_exponential(np.concatenate(errors), [e.size for e in errors], per_step, generator)]
        measured.append((chosen, noise.laplace(counts[chosen], 1.0 / per_step).astype(np.float64)))
        for _ in range(REPLAYS):
            for names, noisy in measured:
                gap = noisy - project(joint, nodes, names)
                joint = joint * spread(np.exp(np.clip(gap / (2.0 * total), -20.0, 20.0)), names, nodes)
                joint *= total / joint.sum()
    return cpts_from_tables({n: project(joint, nodes, names) for n, names in families(structure).items()})


def _exponential(scores: Array, sizes: list[int], epsilon: float, generator: np.random.Generator) -> int:
    """The index of the table whose cell the exponential mechanism picks (score sensitivity 1)."""
    keys = epsilon * scores / 2.0 + generator.gumbel(size=scores.size)
    return int(np.searchsorted(np.cumsum(sizes), int(keys.argmax()), side="right"))
