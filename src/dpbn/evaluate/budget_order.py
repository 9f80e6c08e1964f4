"""The order in which Algorithm 1 spends on the nodes of Asia, beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpbn.evaluate.baselines.common import experiment_curator
from dpbn.evaluate.paper_figures import ASIA_ORDER
from dpbn.evaluate.questions import derived_seed
from dpbn.formats import load_network
from dpbn.learners.registry import learner_of
from dpbn.uncertainty.simulate import simulated


@dataclass(frozen=True)
class BudgetOrder:
    """Nodes by mean share of stage II, largest first; `agreement` is Spearman's rank correlation with the paper's."""

    reading: str
    shares: dict[str, float]
    agreement: float

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(self.shares)


def asia_budget_order(reading: str, *, runs: int, rows: int, seed: int = 0) -> BudgetOrder:
    """Mean shares over `runs` of Algorithm 1 on Asia at epsilon 1, with this reading of Eq. 6."""
    network = load_network("asia")
    learner = learner_of("icml2020", {"sensitivity": reading}, 0.0, None)
    totals = dict.fromkeys(network.nodes, 0.0)
    for run in range(runs):
        place = (seed, "asia", rows, run)
        source = simulated(network, rows, derived_seed("data", *place))
        curator = experiment_curator(source, 1.0, derived_seed("noise", *place, "order", reading))
        learned = learner(network.structure, curator, prior={}, public_cpts={})
        for node, share in learned.details["stage_two"].items():
            totals[node] += share / runs
    ordered = dict(sorted(totals.items(), key=lambda item: -item[1]))
    return BudgetOrder(reading, ordered, rank_correlation(tuple(ordered), ASIA_ORDER))


def rank_correlation(first: tuple[str, ...], second: tuple[str, ...]) -> float:
    """Spearman's, of two orders of the same names."""
    ranks = np.array([second.index(name) for name in first], dtype=np.float64)
    return float(np.corrcoef(np.arange(len(first)), ranks)[0, 1])
