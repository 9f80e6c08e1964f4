"""Procedure 1 of the paper, ComputeParameters(D, E[1..n]): noisy tables -> consistent joints -> CPTs.

Symbols: E[i] share of node i · T_i counts over parents and node · T_pa_i counts over parents ·
M_i joint table of the family · theta_i the CPT.

Readings where the paper is silent: a node without parents has no parent table, so
its whole share goes to T_i; M_i is (T_i normalised per parent row) x (T_pa_i normalised); negative
cells are clipped at 0, before and after consistency; an empty row becomes uniform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpbn.learners.consistency import make_consistent
from dpbn.measure import Curator
from dpbn.measurement import Request
from dpbn.network import Structure
from dpbn.privacy import accounting

Array = NDArray[np.float64]
EMPTY = 1e-9  # a row with less than this many records holds rounding dust only


@dataclass(frozen=True)
class Parameters:
    """What Procedure 1 returns: theta and the noisy tables it came from, by node."""

    cpts: Mapping[str, Array]
    family_counts: Mapping[str, Array]
    parent_counts: Mapping[str, Array]


def compute_parameters(
    structure: Structure,
    curator: Curator,
    shares: Mapping[str, float],
    prior: Mapping[str, Array],
    *,
    stage: str,
    rate: Fraction = Fraction(1),
) -> Parameters:
    """CPTs of the nodes in `shares`, spending shares[i] on node i."""
    requests: list[Request] = []
    for node, share in shares.items():  # line 1: Lap(2/E[i]) in every cell of T_i and T_pa_i
        tables = node_tables(structure, node)
        scale = accounting.laplace_scale(share / len(tables), curator.sensitivity.l1)
        requests += [Request(names, scale) for names in tables]
    measured = curator.measure(requests, stage=stage, rate=rate)
    return parameters_from(structure, shares, [m.values for m in measured], prior)


def node_tables(structure: Structure, node: str) -> list[tuple[str, ...]]:
    """T_i, then T_pa_i if the node has parents."""
    family = structure.family(node)
    return [family.names, family.parents] if family.parents else [family.names]


def parameters_from(
    structure: Structure, shares: Mapping[str, float], tables: Sequence[NDArray[np.int64]], prior: Mapping[str, Array]
) -> Parameters:
    """Lines 2-4 of the procedure, from the noisy tables of line 1 in the order of `node_tables`."""
    noisy = iter(tables)
    family_counts, parent_counts, joints = {}, {}, {}
    for node in shares:
        counts = np.maximum(next(noisy).astype(np.float64), 0.0)
        parents = np.maximum(next(noisy), 0) if structure.parents(node) else counts.sum()
        family_counts[node], parent_counts[node] = counts, np.asarray(parents, dtype=np.float64)
        joints[node] = normalised_rows(counts) * normalised(parent_counts[node])[..., None]  # line 2
    families = {node: (structure.family(node).names, joints[node]) for node in shares}
    consistent = make_consistent(families, shares)  # line 3
    cpts = {}
    for node in shares:  # line 4, Eq. 2
        counts = np.maximum(consistent[node], 0.0) * max(float(parent_counts[node].sum()), 1.0)
        cpts[node] = normalised_rows(counts + prior.get(node, 0.0))
    return Parameters(cpts, family_counts, parent_counts)


def normalised_rows(table: Array) -> Array:
    """Each row (last axis) of counts divided by its sum; a row without mass becomes uniform."""
    sums = table.sum(axis=-1, keepdims=True)
    full = sums > EMPTY
    return np.where(full, table / np.where(full, sums, 1.0), 1.0 / table.shape[-1])


def normalised(table: Array) -> Array:
    """The whole table divided by its sum; a table without mass becomes uniform."""
    total = table.sum()
    return table / total if total > 0 else np.full_like(table, 1.0 / table.size)
