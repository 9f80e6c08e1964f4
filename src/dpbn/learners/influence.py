"""How much an error in each node's CPT matters to a workload, from public facts alone.

Simulated on made-up networks over the real graph: CPTs are drawn at random, one family table at a time gets
noise, and the change of the workload's answers is recorded. Nodes the questions do not depend on score zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import ImpossibleEvidenceError, TooLargeError
from dpbn.graph import ancestors
from dpbn.inference.networks import BatchInference
from dpbn.learners.refinement import CHEAP_CELLS, ModelMargins
from dpbn.network import Structure
from dpbn.workload import Query, Workload

Array = NDArray[np.float64]

NETWORKS = 400  # simulated in all, shared out over the nodes that can matter
CONCENTRATION = 0.5  # of the made-up CPT rows: skewed, as real ones are
NOISE = 0.003  # deviation of a made-up family cell, as a part of all records
FLOOR = 1e-6  # least weight, as a part of the largest: every CPT is released, so every family is measured


def influences(structure: Structure, workload: Workload, around: Mapping[str, Array] | None = None) -> dict[str, float]:
    """Weight per node: mean L1 change of the answers per unit of noise on its family's cells.

    For `plan_tables` and `plan_groups`. On made-up networks, or on the one with the CPTs `around`.
    """
    names = {name for query in workload for name in query.names}
    above = ancestors(structure.dag.parents, names)
    relevant = [node for node in structure.nodes if node in above]
    scores = _simulated(structure, workload, relevant, around)
    # a family's cells have deviations in proportion to cells^(-1/2) of the table they are summed from
    weights = {node: scores.get(node, 0.0) / math.sqrt(structure.cells(node)) for node in structure.nodes}
    largest = max(weights.values(), default=0.0) or 1.0
    return {node: max(weight / largest, FLOOR) for node, weight in weights.items()}


def _simulated(
    structure: Structure, workload: Workload, relevant: list[str], around: Mapping[str, Array] | None
) -> dict[str, float]:
    generator = np.random.default_rng(0)  # public: no data is involved
    draws = max(2, NETWORKS // max(len(relevant), 1))
    if around is None:
        made_up = {node: _rows(generator, (draws, *structure.shape(node))) for node in structure.nodes}
    else:
        made_up = {node: np.repeat(np.asarray(around[node])[None], draws, axis=0) for node in structure.nodes}
    families = [structure.family(node).names for node in relevant]
    margins = ModelMargins(structure, families)
    if margins.largest > CHEAP_CELLS:
        return dict.fromkeys(relevant, 1.0)
    noisy = {}
    for node, family in zip(relevant, margins(made_up), strict=True):
        table = np.maximum(family + generator.normal(0, NOISE, family.shape), NOISE * 1e-3)
        noisy[node] = table / table.sum(axis=-1, keepdims=True)
    # network 0 of each block is undisturbed, network k has the k-th relevant node disturbed
    blocks = len(relevant) + 1
    cpts = {}
    for node in structure.nodes:
        stacked = np.repeat(made_up[node], blocks, axis=0)
        if node in noisy:
            stacked[relevant.index(node) + 1 :: blocks] = noisy[node]
        cpts[node] = stacked
    try:
        changes = np.mean([_changes(structure, cpts, query, blocks) for query in workload], axis=0)
    except (TooLargeError, ImpossibleEvidenceError):
        return dict.fromkeys(relevant, 1.0)
    return dict(zip(relevant, changes.tolist(), strict=True))


def _rows(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """CPT rows that are skewed but have no zeros."""
    rows = generator.dirichlet(np.full(shape[-1], CONCENTRATION), size=shape[:-1])
    return np.asarray(0.98 * rows + 0.02 / shape[-1])


def _changes(structure: Structure, cpts: dict[str, Array], query: Query, blocks: int) -> Array:
    """Mean L1 change of one answer when each relevant node is disturbed."""
    answers = BatchInference(structure, cpts).query(list(query.variables), dict(query.evidence))
    answers = answers.reshape(-1, blocks, math.prod(answers.shape[1:]))
    return np.asarray(np.abs(answers[:, 1:] - answers[:, :1]).sum(axis=2).mean(axis=0))
