"""Distances between a true and a learned network of one structure.

Theta and Theta~ are the true and the learned CPT of a node; axes are parents in order, child last.

| measure      | meaning                                                                                  |
|--------------|------------------------------------------------------------------------------------------|
| `row`        | per CPD row sum_x |Theta - Theta~|; mean over a node's rows, then over nodes              |
| `weighted`   | the same, rows weighted by the true P(parents)                                           |
| `row_kl`     | per CPD row KL(Theta || Theta~ mixed with the uniform); means as in `row`                |
| `joint_kl`   | KL(true joint || learned joint), learned CPTs mixed with the uniform: a sum over families|
| `query_error`| sum |P - P~| of the answers to one query                                                 |

Learned CPTs are mixed with `MIXTURE` of the uniform before any logarithm, so that a zero where the
truth is positive costs much but not infinity.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError
from dpbn.inference import Inference
from dpbn.network import BayesianNetwork
from dpbn.workload import Query

MIXTURE = 1e-4
Array = NDArray[np.float64]


def _same_structure(truth: BayesianNetwork, learned: BayesianNetwork) -> None:
    for node in truth.nodes:
        if node not in learned.structure.schema or truth.structure.shape(node) != learned.structure.shape(node):
            raise InputError(f"networks must share one structure, got a difference at {node!r}")
        if truth.parents(node) != learned.parents(node):
            raise InputError(f"networks must share one structure, got other parents at {node!r}")


def row_errors(truth: BayesianNetwork, learned: BayesianNetwork) -> dict[str, Array]:
    """Per node, sum_x |Theta - Theta~| of every CPD row (axes: parents in order)."""
    _same_structure(truth, learned)
    return {node: np.abs(truth.cpt(node) - learned.cpt(node)).sum(axis=-1) for node in truth.nodes}


def divergences(truth: BayesianNetwork, learned: BayesianNetwork, mixture: float = MIXTURE) -> dict[str, Array]:
    """Per node, KL(true row || learned row) of every CPD row, in nats."""
    _same_structure(truth, learned)
    result = {}
    for node in truth.nodes:
        true = truth.cpt(node)
        mixed = (1 - mixture) * learned.cpt(node) + mixture / true.shape[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(true > 0, true * (np.log(true) - np.log(mixed)), 0.0)
        result[node] = terms.sum(axis=-1)
    return result


def row(truth: BayesianNetwork, learned: BayesianNetwork) -> float:
    return float(np.mean([errors.mean() for errors in row_errors(truth, learned).values()]))


def weighted(truth: BayesianNetwork, learned: BayesianNetwork, parents: Mapping[str, Array]) -> float:
    """`parents[node]` is the true P(parents of node), axes in the order of the parents."""
    return float(np.mean([(errors * parents[node]).sum() for node, errors in row_errors(truth, learned).items()]))


def row_kl(truth: BayesianNetwork, learned: BayesianNetwork) -> float:
    return float(np.mean([rows.mean() for rows in divergences(truth, learned).values()]))


def joint_kl(
    truth: BayesianNetwork, learned: BayesianNetwork, parents: Mapping[str, Array], mixture: float = MIXTURE
) -> float:
    """KL of the whole joint: by the chain rule, the sum over nodes of E_parents KL(row)."""
    return float(sum((rows * parents[node]).sum() for node, rows in divergences(truth, learned, mixture).items()))


def query_error(truth: Inference, learned: Inference, question: Query) -> float:
    true, found = (ask.query(question.variables, question.evidence).values for ask in (truth, learned))
    return float(np.abs(true - found).sum())
