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

Where the learned network calls the evidence impossible, its answer counts as uniform and its MAP as wrong. A question
too large for exact inference is left out, which depends on the graph alone: for all methods alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import ImpossibleEvidenceError, TooLargeError
from dpbn.evaluate import metrics
from dpbn.evaluate.questions import Questions
from dpbn.inference import Inference
from dpbn.inference.bounds import error_bounds
from dpbn.inference.queries import answer_or_uniform
from dpbn.network import BayesianNetwork
from dpbn.workload import Query

Array = NDArray[np.float64]
Answer = TypeVar("Answer")
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
        self.network = network
        ask = Inference(network)
        self.parents: Mapping[str, Array] = {
            node: ask.query(list(network.parents(node))).values if network.parents(node) else np.ones(())
            for node in network.nodes
        }
        self.answers = _answered(questions.queries, lambda query: _answer(ask, query))
        self.assignments = _answered(questions.maps, lambda query: _assignment(ask, query))

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
        for query, true in self.answers:
            found = _answer(ask, query)
            error = float(np.abs(true - found).sum())
            absolute.append(error)
            forward.append(divergence(true, found))
            printed.append(divergence(found, true))
            normalised.append(bounds.normalised(error) if bounds.upper > bounds.lower else 0.0)
        conditional = np.array([bool(query.evidence) for query, _ in self.answers], dtype=np.bool_)
        errors = np.array(absolute)
        return {
            "query": _mean(errors),
            "marginal": _mean(errors[~conditional]),
            "conditional": _mean(errors[conditional]),
            "query_kl": _mean(forward),
            "query_kl_printed": _mean(printed),
            "map_accuracy": _mean([_agrees(ask, query, expected) for query, expected in self.assignments]),
            "mu": _mean(normalised),
        }


def _answered(queries: Sequence[Query], answer: Callable[[Query], Answer]) -> list[tuple[Query, Answer]]:
    """Questions with their answers, without those that are too large."""
    found = []
    for query in queries:
        with suppress(TooLargeError):
            found.append((query, answer(query)))
    return found


def _assignment(ask: Inference, query: Query) -> dict[str, str]:
    return ask.map(query.variables, query.evidence)[0]


def _agrees(ask: Inference, query: Query, expected: dict[str, str]) -> bool:
    try:
        return _assignment(ask, query) == expected
    except ImpossibleEvidenceError:
        return False


def divergence(true: Array, found: Array, mixture: float = metrics.MIXTURE) -> float:
    """KL(true || found) in nats, `found` mixed with `mixture` of the uniform."""
    mixed = (1 - mixture) * found + mixture / found.size
    positive = true > 0
    return float(np.sum(true[positive] * (np.log(true[positive]) - np.log(mixed[positive]))))


def _answer(ask: Inference, query: Query) -> Array:
    return answer_or_uniform(ask, query.variables, query.evidence)


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
