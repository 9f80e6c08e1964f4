"""What tests of learners share."""

import pytest

from dpbn import BayesianNetwork
from dpbn.data import open_source
from dpbn.measure import Curator
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.noise import InsecureNoise


@pytest.fixture(scope="session")
def make_curator():
    """A curator over rows sampled from a network, with seeded noise."""

    def make(network: BayesianNetwork, rows: int, epsilon: float, seed: int = 0, delta: float = 0.0) -> Curator:
        source = open_source(network.sample(rows, seed=seed), network.structure)
        return Curator(source, InsecureNoise(seed), Budget(epsilon, delta), Sensitivity())

    return make
