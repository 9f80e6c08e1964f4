"""All measures of one learned network against a reference, in one call.

Columns (P reference, P~ learned, mixed with a little uniform before logarithms):
  `row`              per CPD row sum_x |P - P~|; mean over a node's rows, then over nodes
  `weighted`         the same, rows weighted by the reference's P(parents)
  `row_kl`           KL(P || P~) per CPD row, means as in `row`
  `weighted_kl`      the same, rows weighted
  `row_kl_printed`   KL(P~ || P) per CPD row, the direction the paper prints (P mixed), means as in `row`
  `joint_kl`         KL of the whole joint
  `query`            L1 of a query's answer, mean over marginal and conditional queries
  `marginal`, `conditional`  the two halves of `query`
  `query_kl`         KL(P || P~) of a query's answer, mean
  `query_kl_printed` KL(P~ || P) of a query's answer, mean
  `map_accuracy`     rho: the share of MAP questions answered with the reference's assignment
  `mu`               (L1 - LB) / (UB - LB) of the paper's bounds, mean over queries; 0 without any error

Where the learned network calls the evidence impossible, its answer counts as uniform and its MAP as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import ImpossibleEvidenceError
from dpbn.evaluate import metrics
from dpbn.evaluate.questions import Questions
from dpbn.inference import Inference
from dpbn.inference.bounds import error_bounds
from dpbn.network import BayesianNetwork
from dpbn.workload import Query

Array = NDArray[np.float64]
MEASURES = (
    "row",
    "weighted",
    "row_kl",
    "weighted_kl",
    "row_kl_printed",
    "joint_kl",
    "query",
    "marginal",
    "conditional",
    "query_kl",
    "query_kl_printed",
    "map_accuracy",
    "mu",
)


class Reference:
    """What learned networks are compared with: a network, its answers to the questions, computed once."""

    def __init__(self, network: BayesianNetwork, questions: Questions):
        self.network, self.questions = network, questions
        ask = Inference(network)
        self.parents: Mapping[str, Array] = {
            node: ask.query(list(network.parents(node))).values if network.parents(node) else np.ones(())
            for node in network.nodes
        }
        self.answers = [_answer(ask, network, query) for query in questions.queries]
        self.assignments = [ask.map(list(query.variables), dict(query.evidence))[0] for query in questions.maps]

    def measure(self, learned: BayesianNetwork) -> dict[str, float]:
        """Every measure of the table above."""
        return {**self._parameters(learned), **self._inference(learned)}

    def _parameters(self, learned: BayesianNetwork) -> dict[str, float]:
        joint = metrics.joint_kl(self.network, learned, self.parents)
        return {
            "row": metrics.row(self.network, learned),
            "weighted": metrics.weighted(self.network, learned, self.parents),
            "row_kl": metrics.row_kl(self.network, learned),
            "weighted_kl": joint / len(self.network.nodes),
            "row_kl_printed": metrics.row_kl(learned, self.network),
            "joint_kl": joint,
        }

    def _inference(self, learned: BayesianNetwork) -> dict[str, float]:
        ask = Inference(learned)
        bounds = error_bounds(self.network, learned)
        absolute, forward, printed, normalised = [], [], [], []
        for query, true in zip(self.questions.queries, self.answers, strict=True):
            found = _answer(ask, learned, query)
            error = float(np.abs(true - found).sum())
            absolute.append(error)
            forward.append(divergence(true, found))
            printed.append(divergence(found, true))
            normalised.append(bounds.normalised(error) if bounds.upper > bounds.lower else 0.0)
        conditional = np.array([bool(query.evidence) for query in self.questions.queries])
        errors = np.array(absolute)
        return {
            "query": _mean(errors),
            "marginal": _mean(errors[~conditional]),
            "conditional": _mean(errors[conditional]),
            "query_kl": _mean(forward),
            "query_kl_printed": _mean(printed),
            "map_accuracy": _mean([self._agrees(ask, i) for i in range(len(self.questions.maps))]),
            "mu": _mean(normalised),
        }

    def _agrees(self, ask: Inference, index: int) -> bool:
        query = self.questions.maps[index]
        try:
            found, _ = ask.map(list(query.variables), dict(query.evidence))
        except ImpossibleEvidenceError:
            return False
        return dict(found) == dict(self.assignments[index])


def divergence(true: Array, found: Array, mixture: float = metrics.MIXTURE) -> float:
    """KL(true || found) in nats, `found` mixed with `mixture` of the uniform."""
    mixed = (1 - mixture) * found + mixture / found.size
    positive = true > 0
    return float(np.sum(true[positive] * (np.log(true[positive]) - np.log(mixed[positive]))))


def _answer(ask: Inference, network: BayesianNetwork, query: Query) -> Array:
    try:
        return np.asarray(ask.query(list(query.variables), dict(query.evidence)).values)
    except ImpossibleEvidenceError:
        shape = network.structure.schema.shape(query.variables)
        return np.full(shape, 1.0 / np.prod(shape))


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
