"""All measures of one learned network against a reference, in one call.

Theta and Theta~ are the CPTs of the reference and the learned network (axes: parents in order, child last), P and P~
their answers. What stands second in a logarithm is mixed with a little uniform before, so that a zero where the other
is positive costs much but not infinity.
  `row`              per CPD row sum_x |Theta - Theta~|; mean over a node's rows, then over nodes
  `weighted`         the same, rows weighted by the reference's P(parents)
  `row_kl`           KL(Theta || Theta~) per CPD row, means as in `row`
  `weighted_kl`      the same, rows weighted
  `row_kl_printed`   KL(Theta~ || Theta) per CPD row, the direction the paper prints, means as in `row`
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

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import ImpossibleEvidenceError, InputError, TooLargeError
from dpbn.evaluate.questions import Questions
from dpbn.graph import treewidth
from dpbn.inference import Inference
from dpbn.inference.queries import answer_or_uniform
from dpbn.network import BayesianNetwork
from dpbn.workload import Query

Array = NDArray[np.float64]
Answer = TypeVar("Answer")
MIXTURE = 1e-4  # of the uniform
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
        joint = joint_kl(self.network, learned, self.parents)
        return {
            "row": row(self.network, learned),
            "weighted": weighted(self.network, learned, self.parents),
            "row_kl": row_kl(self.network, learned),
            "weighted_kl": joint / len(self.network.nodes),
            "row_kl_printed": row_kl(learned, self.network),
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
            normalised.append(bounds.mu(error))
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


def divergence(true: Array, found: Array) -> float:
    """KL(true || found) in nats, `found` mixed with the uniform."""
    mixed = (1 - MIXTURE) * found + MIXTURE / found.size
    positive = true > 0
    return float(np.sum(true[positive] * (np.log(true[positive]) - np.log(mixed[positive]))))


def _answer(ask: Inference, query: Query) -> Array:
    return answer_or_uniform(ask, query.variables, query.evidence)


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _same_structure(truth: BayesianNetwork, learned: BayesianNetwork) -> None:
    for node in truth.nodes:
        if node not in learned.structure.schema or truth.structure.shape(node) != learned.structure.shape(node):
            raise InputError(f"networks must share one structure, got a difference at {node!r}")
        if truth.parents(node) != learned.parents(node):
            raise InputError(f"networks must share one structure, got other parents at {node!r}")


def _row_errors(truth: BayesianNetwork, learned: BayesianNetwork) -> dict[str, Array]:
    """Per node, sum_x |Theta - Theta~| of every CPD row (axes: parents in order)."""
    _same_structure(truth, learned)
    return {node: np.abs(truth.cpt(node) - learned.cpt(node)).sum(axis=-1) for node in truth.nodes}


def _row_divergences(truth: BayesianNetwork, learned: BayesianNetwork) -> dict[str, Array]:
    """Per node, KL(true row || learned row) of every CPD row, in nats."""
    _same_structure(truth, learned)
    result = {}
    for node in truth.nodes:
        true = truth.cpt(node)
        mixed = (1 - MIXTURE) * learned.cpt(node) + MIXTURE / true.shape[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(true > 0, true * (np.log(true) - np.log(mixed)), 0.0)
        result[node] = terms.sum(axis=-1)
    return result


def row(truth: BayesianNetwork, learned: BayesianNetwork) -> float:
    return float(np.mean([errors.mean() for errors in _row_errors(truth, learned).values()]))


def weighted(truth: BayesianNetwork, learned: BayesianNetwork, parents: Mapping[str, Array]) -> float:
    """`parents[node]` is the true P(parents of node), axes in the order of the parents."""
    return float(np.mean([(errors * parents[node]).sum() for node, errors in _row_errors(truth, learned).items()]))


def row_kl(truth: BayesianNetwork, learned: BayesianNetwork) -> float:
    return float(np.mean([rows.mean() for rows in _row_divergences(truth, learned).values()]))


def joint_kl(truth: BayesianNetwork, learned: BayesianNetwork, parents: Mapping[str, Array]) -> float:
    """By the chain rule, the sum over nodes of E_parents KL(row)."""
    return float(sum((rows * parents[node]).sum() for node, rows in _row_divergences(truth, learned).items()))


@dataclass(frozen=True)
class ErrorBounds:
    """LB and UB, the paper's bounds on the L1 error of one sum-product term, and what the graph puts into them.

    eta = largest in-degree plus out-degree of a node, plus one; kappa = treewidth of the moral graph, or an upper bound
    of it (`exact` is false) where that takes long to find; d = largest domain; delta = |phi - phi~| per cell and phi =
    the true probability per cell, over all CPTs:
        LB = sqrt(eta - 1) delta_min phi_min^(eta - 2)        UB = 2 eta d^kappa delta_max
    """

    eta: int
    kappa: int
    exact: bool
    d: int
    lower: float
    upper: float

    def mu(self, error: float) -> float:
        """(L1 - LB) / (UB - LB) of a query whose L1 error is `error`; 0 without any error in the CPTs."""
        return (error - self.lower) / (self.upper - self.lower) if self.upper > self.lower else 0.0


def error_bounds(true: BayesianNetwork, released: BayesianNetwork) -> ErrorBounds:
    """The paper's bounds for queries asked of `released` instead of `true`."""
    _same_structure(true, released)
    dag = true.structure.dag
    eta = max(len(dag.parents[node]) + len(dag.children(node)) for node in dag.nodes) + 1
    low, kappa = treewidth(dag)
    errors = np.concatenate([np.abs(true.cpt(node) - released.cpt(node)).ravel() for node in true.nodes])
    phi_min = min(float(true.cpt(node).min()) for node in true.nodes)
    largest = max(len(true.states(node)) for node in true.nodes)
    # without a neighbour (eta = 1) no product is formed and the printed power is meaningless: no lower bound then
    lower = math.sqrt(eta - 1) * float(errors.min()) * phi_min ** (eta - 2) if eta >= 2 else 0.0
    return ErrorBounds(
        eta, kappa, low == kappa, largest, lower, 2.0 * eta * float(largest) ** kappa * float(errors.max())
    )
