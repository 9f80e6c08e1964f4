"""Runs of the default learner as tests of learners make them: rows drawn from a network, seeded noise."""

from dpbn import BayesianNetwork
from dpbn.evaluate import metrics
from dpbn.evaluate.baselines.common import experiment_curator
from dpbn.learners.optimized import learn_optimized
from dpbn.measure import Curator
from dpbn.uncertainty.simulate import simulated


def curator(network: BayesianNetwork, rows: int, epsilon: float, *, delta: float = 0.0, seed: int = 0) -> Curator:
    return experiment_curator(simulated(network, rows, seed), epsilon, seed, delta=delta)


def row_error(network: BayesianNetwork, rows: int, runs: int) -> float:
    """The error of CPT rows at epsilon 1, mean over runs."""
    total = 0.0
    for seed in range(runs):
        learned = learn_optimized(network.structure, curator(network, rows, 1.0, seed=seed), prior={}, public_cpts={})
        total += metrics.row(network, BayesianNetwork(network.structure, learned.cpts))
    return total / runs
