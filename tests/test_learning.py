"""The whole of learn(): methods, budget, options, refusals, and what is saved."""

import numpy as np
import pytest

import dpbn
from dpbn.errors import DataError, FormatError, InputError, PrivacyError


@pytest.fixture(scope="module")
def asia():
    network = dpbn.load_network("asia")
    return network, network.sample(2_000, seed=1)


@pytest.mark.parametrize("method", ["uniform", "icml2020"])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_budget_is_kept_and_used(asia, method, neighbors):
    network, data = asia
    for epsilon in (0.1, 1 / 3, 1.0, 3.0):
        release = dpbn.learn(data, network.structure, epsilon=epsilon, method=method, neighbors=neighbors)
        assert epsilon * (1 - 1e-9) < release.guarantee.epsilon <= epsilon
        assert release.private
        assert set(release.allocation) == set(network.nodes)
        assert sum(release.allocation.values()) == pytest.approx(epsilon)


def test_exact_is_the_relative_frequency_and_not_private(asia):
    network, data = asia
    release = dpbn.learn(data, network, method="exact")
    assert not release.private
    assert "NOT private" in release.statement
    assert release.network.cpt("smoke")[0] == pytest.approx((data["smoke"] == network.states("smoke")[0]).mean())


def test_huge_budget_recovers_the_frequencies(asia):
    network, data = asia
    exact = dpbn.learn(data, network, method="exact").network
    learned = dpbn.learn(data, network, epsilon=1e4, method="uniform").network
    for node in network.nodes:
        np.testing.assert_allclose(learned.cpt(node), exact.cpt(node), atol=1e-6)


def test_insecure_noise_repeats_and_is_stamped(asia):
    network, data = asia
    first, second = (dpbn.learn(data, network, method="uniform", noise=dpbn.InsecureNoise(7)) for _ in range(2))
    assert first.id == second.id
    assert not first.private
    assert first.id != dpbn.learn(data, network, method="uniform", noise=dpbn.InsecureNoise(8)).id


def test_prior_and_public_cpts(asia):
    network, data = asia
    public = {"either": network.cpt("either")}
    release = dpbn.learn(data, network, method="uniform", public_cpts=public, prior={"asia": 1e9})
    np.testing.assert_array_equal(release.network.cpt("either"), network.cpt("either"))
    np.testing.assert_allclose(release.network.cpt("asia"), 0.5, atol=1e-4)
    assert "either" not in release.allocation
    assert all(set(m.names) != {"either", "lung", "tub"} for m in release.measurements)
    everything = dpbn.learn(data, network, method="uniform", public_cpts=network.cpts)
    assert everything.guarantee.epsilon == 0.0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"epsilon": 0}, PrivacyError),
        ({"epsilon": float("nan")}, PrivacyError),
        ({"epsilon": "1"}, PrivacyError),
        ({"method": "magic"}, InputError),
        ({"method": "uniform", "delta": 1e-6}, InputError),
        ({"method": "uniform", "stage_one": 0.2}, InputError),
        ({"method": "icml2020", "stage_one": 2.0}, InputError),
        ({"neighbors": "friends"}, PrivacyError),
        ({"max_contributions": 3}, InputError),
        ({"prior": -1}, InputError),
        ({"prior": {"asia": [1, 2, 3]}}, InputError),
        ({"dataset": "asia"}, InputError),
    ],
)
def test_bad_arguments(asia, arguments, error):
    network, data = asia
    with pytest.raises(error):
        dpbn.learn(data, network, **arguments)


def test_unknown_value_is_refused_without_showing_it(asia):
    network, data = asia
    odd = data.astype(str)
    odd.loc[3, "smoke"] = "canary-7431"
    with pytest.raises(DataError) as caught:
        dpbn.learn(odd, network)
    assert "smoke" in str(caught.value)
    assert "canary" not in str(caught.value)


def test_release_round_trip_and_refusals(asia, tmp_path):
    network, data = asia
    release = dpbn.learn(data, network, method="icml2020")
    path = release.save(tmp_path / "a.release.json")
    again = dpbn.load_release(path)
    assert again.id == release.id
    assert again.network == release.network
    text = path.read_text()
    for bad in [text[:-20], text.replace("dpbn-release", "x"), text.replace('"scale": ', '"scale": -'), "[]", "{}"]:
        path.write_text(bad)
        with pytest.raises(FormatError):
            dpbn.load_release(path)
