"""The whole of learn(): methods, budget, options, refusals, and what is saved."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpbn
from dpbn.audit.subjects import independent
from dpbn.domain import Schema, Variable
from dpbn.errors import BudgetError, DataError, DpbnError, FormatError, InputError, PrivacyError, TooLargeError
from dpbn.graph import Dag
from dpbn.network import Structure
from dpbn.privacy.ledger import Ledger


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
        ({"epsilon": 1e-300}, PrivacyError),
        ({"method": "magic"}, InputError),
        ({"method": ["optimized"]}, InputError),
        ({"method": "uniform", "delta": 1e-6}, InputError),
        ({"method": "uniform", "stage_one": 0.2}, InputError),
        ({"method": "icml2020", "stage_one": 2.0}, InputError),
        ({"neighbors": "friends"}, PrivacyError),
        ({"noise": dpbn.InsecureNoise}, InputError),
        ({"noise": dpbn.SecureNoise}, InputError),
        ({"max_contributions": 3}, InputError),
        ({"prior": -1}, InputError),
        ({"prior": {"asia": [1, 2, 3]}}, InputError),
        ({"prior": 1e300}, InputError),
        ({"prior": 10**400}, InputError),
        ({"unit": pd.Series(["p", "q"])}, InputError),
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


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open_dataset("asia", 10, 1e-5)
    return ledger


@pytest.mark.parametrize(
    "options",
    [
        {"sampling_rate": Fraction(1, 10)},  # JSON cannot hold it
        {"stage_one": np.float32(0.1)},
        {"stage_one": "a tenth"},
        {"count_floor": float("inf")},
        {"count_floor": 1e-200},
        {"sampling_rate": 1e-9},
        {"prior": 1e308},
        {"epsilon": 11},
        {"epsilon": 1e-30},
    ],
)
def test_nothing_is_charged_for_what_cannot_be_learned(asia, ledger, options):
    network, data = asia
    with pytest.raises((InputError, PrivacyError)):
        dpbn.learn(data, network, **{"method": "icml2020", "ledger": ledger, "dataset": "asia", **options})
    assert ledger.remaining("asia").spent_epsilon == 0


def test_nothing_is_charged_where_no_file_could_hold_the_name_of_the_unit(asia, ledger):
    """Half of a surrogate pair, as Python reads a name that is not UTF-8."""
    network, data = asia
    people = data.assign(who=range(len(data)))
    people.columns = pd.Index([*data.columns, "\udcff"], dtype=object)
    with pytest.raises(InputError, match="unit must be a name that a release file can hold"):
        dpbn.learn(people, network, 1.0, unit="\udcff", ledger=ledger, dataset="asia")
    assert ledger.remaining("asia").spent_epsilon == 0


def test_a_sampling_rate_is_refused_as_it_was_given(asia):
    """Not as the fraction that it is rounded to, 0."""
    network, data = asia
    with pytest.raises(InputError, match=r"sampling_rate must be in \[2\^-20, 1\], got 4e-07"):
        dpbn.learn(data, network, 1.0, method="icml2020", sampling_rate=4e-7)


def test_a_dataset_without_a_cap_is_refused_before_the_table_is_looked_at(asia, ledger):
    network, _ = asia
    with pytest.raises(BudgetError, match="must be opened"):
        dpbn.learn("no such file.csv", network, ledger=ledger, dataset="other")


def test_the_claim_never_exceeds_the_charge(asia, ledger):
    network, data = asia
    for epsilon, delta in ((0.1, 0.0), (0.3, 1e-6), (0.7, 0.0)):
        release = dpbn.learn(data, network, epsilon, delta, ledger=ledger, dataset="asia")
        charge = [entry for entry in ledger.history("asia") if entry.kind == "charge"][-1]
        assert charge.epsilon == Fraction(str(epsilon)) and charge.delta == Fraction(str(delta))
        assert Fraction(release.guarantee.epsilon) <= charge.epsilon
        assert Fraction(release.guarantee.delta) <= charge.delta


@pytest.mark.parametrize("epsilon", [1.0, 1e6])
def test_a_caller_whose_numpy_raises_does_not_lose_what_is_paid_for(asia, epsilon):
    """Some weights are too small for a float, after the charge too."""
    network, data = asia
    with np.errstate(all="raise"):
        assert dpbn.learn(data, network, epsilon).private


def test_what_is_paid_for_is_saved_where_numpy_raises(tmp_path):
    """The file tells weak rows, by the variance of joint noise: sums of terms of which some are too small."""
    structure, data, _ = independent(20)
    release = dpbn.learn(data, structure, 50.0)
    with np.errstate(all="raise"):
        assert dpbn.load_release(release.save(tmp_path / "r.json")).id == release.id


def test_plans_and_error_bars_where_numpy_raises(asia):
    network, data = asia
    release = dpbn.learn(data, network, 1.0)
    with np.errstate(all="raise"):
        assert dpbn.plan(network.structure, rows=2_000).error > 0
        assert dpbn.Inference(release).intervals().keys() == set(network.nodes)


def test_where_joint_noise_might_not_be_drawn_nothing_is_counted_first(asia):
    network, data = asia
    release = dpbn.learn(data, network, 1e-4)
    assert {(m.stage, m.mechanism) for m in release.measurements} == {("all", "laplace")}


def test_delta_is_claimed_only_where_noise_needs_it(asia):
    network, data = asia
    release = dpbn.learn(data, network, 1.0, 1e-6)
    assert {m.mechanism for m in release.measurements} <= {"laplace", "joint"} and release.guarantee.delta == 0.0


def test_losses_of_different_kinds_do_not_share_a_cap(asia, ledger):
    network, data = asia
    dpbn.learn(data, network, 1.0, method="uniform", ledger=ledger, dataset="asia")
    with pytest.raises(BudgetError, match="protect"):
        dpbn.learn(data, network, 1.0, method="uniform", neighbors="replace", ledger=ledger, dataset="asia")
    people = data.assign(who=range(len(data)))
    with pytest.raises(BudgetError, match="protect"):
        dpbn.learn(people, network, 1.0, method="uniform", unit="who", ledger=ledger, dataset="asia")
    assert ledger.remaining("asia").spent_epsilon == 1
    dpbn.learn(data, network, 1.0, ledger=ledger, dataset="asia")
    assert ledger.remaining("asia").spent_epsilon == 2


def test_mistyped_arguments_come_back_with_a_suggestion(asia):
    network, data = asia
    with pytest.raises(InputError, match=r"\(stage_one\), got .*; did you mean 'max_contributions'"):
        dpbn.learn(data, network, 1.0, max_contribution=3)
    with pytest.raises(InputError, match=r"'uniform' \(it has none\), got \['guess'\]"):
        dpbn.learn(data, network, 1.0, method="uniform", guess=network)
    with pytest.raises(InputError, match="did you mean 'epsilon'"):
        dpbn.plan(network, epsilom=2.0)
    with pytest.raises(InputError, match=r"got \['options'\]$"):  # they are given one by one
        dpbn.learn(data, network, 1.0, options={})


def test_a_variable_of_the_network_is_nobodys_name(asia, ledger):
    """A few rows per state would be learned from, and "one smoke" protected."""
    network, data = asia
    with pytest.raises(InputError, match="whose row it is, got 'smoke', which holds a variable"):
        dpbn.learn(data, network, 1.0, unit="smoke", ledger=ledger, dataset="asia")
    with pytest.raises(InputError, match="unit must be the name of a column"):
        dpbn.learn(data, network, 1.0, unit=["smoke"], ledger=ledger, dataset="asia")
    assert ledger.remaining("asia").spent_epsilon == 0


def test_an_interrupt_between_charge_and_noise_stays_charged_and_says_so(asia, ledger, monkeypatch):
    def interrupted(counts, scale):
        raise KeyboardInterrupt

    network, data = asia
    monkeypatch.setattr("dpbn.privacy.opendp_bridge.add_discrete_laplace", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        dpbn.learn(data, network, 1.0, ledger=ledger, dataset="asia")
    assert "stays charged" in caught.value.__notes__[0]
    assert ledger.remaining("asia").spent_epsilon == 1


def test_an_interrupt_while_the_charge_is_named_says_that_it_stands(asia, ledger, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    network, data = asia
    monkeypatch.setattr(ledger, "record_release", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        dpbn.learn(data, network, 1.0, ledger=ledger, dataset="asia")
    assert "stays charged" in caught.value.__notes__[0]


@pytest.mark.parametrize("method", ["optimized", "uniform", "icml2020", "exact"])
@pytest.mark.parametrize("parents", [29, 330])
def test_sizes_are_refused_before_anything_is_planned(method, parents):
    names = [f"v{i}" for i in range(parents + 1)]
    schema = Schema(tuple(Variable(name, tuple("0123456789")) for name in names))
    structure = Structure(schema, Dag(schema.names, {names[-1]: tuple(names[:-1])}))
    for prior in (None, 1.0):
        with pytest.raises(TooLargeError):
            dpbn.learn(pd.DataFrame(), structure, method=method, prior=prior)


def test_a_structure_may_be_a_name_a_file_or_a_release(tmp_path):
    rows = dpbn.load_network("asia").sample(200, seed=0)
    first = dpbn.learn(rows, "asia", 1.0)
    dpbn.write_network(first, tmp_path / "asia.bif")
    assert dpbn.learn(rows, first, 1.0).structure == first.structure
    assert dpbn.learn(rows, str(tmp_path / "asia.bif"), 1.0).structure.nodes == first.structure.nodes
    assert dpbn.plan("asia", simulations=1).tables


@pytest.mark.parametrize(
    "arguments",
    [
        {"structure": 3},
        {"structure": "asai"},
        {"ledger": "b.db", "dataset": "w"},
        {"noise": 7},
        {"public_cpts": [1]},
        {"workload": 3},
        {"epsilon": 10**400},
        {"epsilon": np.longdouble("nan")},
    ],
    ids=str,
)
def test_arguments_of_the_wrong_kind_are_refused(arguments):
    rows = dpbn.load_network("asia").sample(10, seed=0)
    with pytest.raises(DpbnError):
        dpbn.learn(rows, **({"structure": "asia"} | arguments))


def test_gaussian_allocations_are_in_epsilon():
    structure, rows = independent(4)[:2]
    release = dpbn.learn(rows, structure, 1.0, 0.1)
    assert {m.mechanism for m in release.measurements} == {"gaussian"}
    assert sum(release.allocation.values()) == pytest.approx(release.guarantee.epsilon)


@pytest.mark.parametrize("number", [np.int64(2), np.float32(0.1), np.float64(0.5)])
def test_a_budget_may_come_from_an_array(asia, tmp_path, number):
    network, data = asia
    book = Ledger(tmp_path / "b.db")
    book.open_dataset("ward", 10)
    options = {"delta": np.float64(0), "method": "uniform", "ledger": book, "dataset": "ward"}
    release = dpbn.learn(data, network, epsilon=number, **options)
    spent = book.remaining("ward").spent_epsilon
    assert type(release.guarantee.epsilon) is float
    assert 0 < release.guarantee.epsilon <= spent == Fraction(repr(number.item()))


@pytest.mark.parametrize("seed", [-1, "a", 1.5, True])
def test_a_seed_of_noise_is_a_whole_number(seed):
    with pytest.raises(InputError, match="seed must be a whole number"):
        dpbn.InsecureNoise(seed)
