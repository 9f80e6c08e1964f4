"""Support of CPT rows: unbiased counts, honest deviations, a floor that means something."""

import numpy as np
import pytest

import dpbn
from dpbn.support import row_support, supports


@pytest.fixture(scope="module")
def asia():
    network = dpbn.load_network("asia")
    return network, network.sample(5_000, seed=3)


def test_counts_are_the_noisy_counts(asia):
    network, data = asia
    release = dpbn.learn(data, network, epsilon=1e4, method="uniform", noise=dpbn.InsecureNoise(0))
    support = row_support(network.structure, release.measurements, "dysp")
    true = data.groupby(list(network.parents("dysp")), observed=False).size().to_numpy().reshape(2, 2)
    np.testing.assert_allclose(support.counts, true, atol=1)
    assert support.total == pytest.approx(5_000, abs=2)
    assert support.reliability == "good"


@pytest.mark.parametrize("method", ["uniform", "icml2020"])
def test_deviation_is_that_of_the_noise(asia, method):
    network, data = asia
    true = data.groupby(list(network.parents("dysp")), observed=False).size().to_numpy().reshape(2, 2)
    errors, claimed = [], []
    for seed in range(60):
        release = dpbn.learn(data, network, epsilon=0.5, method=method, noise=dpbn.InsecureNoise(seed))
        full = [m for m in release.measurements if m.sampling is None]
        support = row_support(network.structure, full, "dysp")
        errors.append(support.counts - true)
        claimed.append(support.row_deviation)
    assert 0.8 < np.sqrt(np.mean(np.square(errors))) / np.mean(claimed) < 1.25


def test_rare_rows_fall_below_the_floor(asia):
    network, data = asia
    release = dpbn.learn(data, network, epsilon=0.05, method="uniform", noise=dpbn.InsecureNoise(1))
    found = supports(network.structure, release.measurements)
    assert set(found) == set(network.nodes)
    assert sum(int(s.below_floor.sum()) for s in found.values()) > 3
    assert found["either"].reliability == "poor"
    assert 0 < found["asia"].expected_error < found["either"].expected_error


def test_public_and_exact_nodes_have_none(asia):
    network, data = asia
    release = dpbn.learn(data, network, method="uniform", public_cpts={"either": network.cpt("either")})
    assert "either" not in supports(network.structure, release.measurements, release.public_nodes)
    assert supports(network.structure, dpbn.learn(data, network, method="exact").measurements) == {}


def test_tables_of_other_families_are_not_looked_at(asia, monkeypatch):
    network, data = asia
    release = dpbn.learn(data, network, epsilon=1.0, method="uniform", noise=dpbn.InsecureNoise(0))
    looked_at = []
    monkeypatch.setattr("dpbn.support.finest", lambda found: looked_at.extend(found) or tuple(found))
    row_support(network.structure, release.measurements, "dysp")
    family = set(network.structure.family("dysp").names)
    assert looked_at and all(family <= set(m.names) for m in looked_at)
