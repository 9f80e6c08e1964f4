"""`dpbn.check`: what learn would refuse, before it spends."""

import sys
import warnings
from types import SimpleNamespace

import pandas as pd
import pytest

import dpbn
from dpbn import Dag, Schema, Structure, Variable
from dpbn.cli.option import METHODS
from dpbn.data.rows import RowSource
from dpbn.errors import BudgetError, DataError, DpbnError, InputError, PrivacyError
from dpbn.privacy import noise


@pytest.fixture(scope="module")
def asia():
    network = dpbn.load_network("asia")
    return network, network.sample(300, seed=1)


@pytest.fixture
def ledger(tmp_path):
    made = dpbn.Ledger(tmp_path / "b.db")
    made.open_dataset("ward", epsilon=1)
    return made


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kept", [True, False])
def test_nothing_is_spent_and_no_noise_is_drawn(asia, ledger, method, kept, monkeypatch):
    network, data = asia
    read = []
    monkeypatch.setattr(noise.SecureNoise, "laplace", None)
    monkeypatch.setattr(noise.SecureNoise, "joint", None)
    counts = RowSource.counts
    monkeypatch.setattr(RowSource, "counts", lambda self, sets: read.append(sets) or counts(self, sets))
    paid = {"ledger": ledger, "dataset": "ward"} if kept and method != "exact" else {}
    assert dpbn.check(data, network, 1.0, method=method, **paid) is None
    assert read
    assert ledger.remaining("ward").epsilon == 1 and len(ledger.history("ward")) == 1


def test_any_ledger_that_learn_would_charge_is_not_charged(asia, ledger):
    """learn takes what can be charged, by whatever class."""
    network, data = asia
    charged = []
    own = SimpleNamespace(remaining=ledger.remaining, charge=lambda *_, **__: charged.append(True))
    dpbn.check(data, network, 1.0, ledger=own, dataset="ward")
    assert not charged


def test_without_a_ledger_no_epsilon_is_too_much(asia):
    network, data = asia
    dpbn.check(data, network, sys.float_info.max)


def refused(arguments, error):
    with pytest.raises(error) as found:
        dpbn.check(**arguments)
    with pytest.raises(error) as same:
        dpbn.learn(**arguments)
    assert str(found.value) == str(same.value)


def test_it_refuses_in_the_words_of_learn(asia, ledger):
    network, data = asia
    fits = {"data": data, "structure": network, "epsilon": 0.5}
    paid = {"ledger": ledger, "dataset": "ward"}
    bad = data.assign(smoke="often")
    for wrong, error in (
        ({"data": bad}, DataError),
        ({"data": bad, **paid}, DataError),
        ({"data": bad, "method": "exact"}, DataError),
        ({"data": data.drop(columns="smoke")}, DataError),
        ({"epsilon": -1}, PrivacyError),
        ({"epsilon": 1e-16}, PrivacyError),
        ({"epsilon": 2, **paid}, BudgetError),
        ({"epsilon": 0.5, "delta": 1e-6, **paid}, BudgetError),
        ({"ledger": ledger}, InputError),
        ({"dataset": "ward"}, InputError),
        ({"ledger": 5, "dataset": "ward"}, InputError),
        ({"ledger": "b.db", "dataset": "ward"}, InputError),
        ({"ledger": ledger, "dataset": "wrd"}, DpbnError),
        ({"method": "exact", **paid}, PrivacyError),
        ({"noise": dpbn.InsecureNoise(1), **paid}, PrivacyError),
        ({"noise": SimpleNamespace()}, InputError),
        ({"unit": "smoke"}, InputError),
        ({"beta": 0.1}, InputError),
        ({"workload": [{"targets": ["nobody"]}]}, DpbnError),
    ):
        refused({**fits, **wrong}, error)
    assert ledger.remaining("ward").epsilon == 1


def test_it_says_what_the_first_count_would_say_of_rows_read_later(asia, tmp_path):
    """The whole table is read, not its beginning."""
    network, data = asia
    data = data.astype(object)
    data.loc[len(data) - 1, "dysp"] = "perhaps"
    data.to_csv(tmp_path / "d.csv", index=False)
    refused({"data": tmp_path / "d.csv", "structure": network}, DataError)


@pytest.mark.parametrize("policy", ["drop", "catch_all", "other"])
@pytest.mark.parametrize("column", ["a", "x, got y; z"])
def test_values_that_are_dropped_or_caught_are_counted_for_the_custodian(policy, column):
    """A mistyped column name or state would otherwise show in the release only, as a catch-all state of all records."""
    schema = Schema((Variable("a", ("0", "1", "other"), column=column, catch_all="other"),))
    data = pd.DataFrame({column: ["0", "1", "x", None] * 5})
    left = "; records that will count: 10" if policy == "drop" else ""
    told = rf"on_unknown='\w+' will be needed: .* in '{column}': 10, of 20 records{left}$"
    with pytest.warns(UserWarning, match=told):
        dpbn.check(data, Structure(schema, Dag(("a",), {})), on_unknown=policy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dpbn.check(data[data[column].isin(["0", "1"])], Structure(schema, Dag(("a",), {})), on_unknown=policy)


@pytest.mark.parametrize("policy", ["drop", "catch_all"])
def test_a_column_that_never_fits_is_named_before_it_is_caught(policy):
    """Decimal commas in all rows, for one: the catch-all state would take every record, and be paid for."""
    schema = Schema((Variable("a", ("low", "high", "other"), cut_points=(5,), catch_all="other"),))
    data = pd.DataFrame({"a": ["1,5", "7,2"] * 5})
    with pytest.warns(UserWarning, match="no record fits in 'a': is it the right column, of the right type"):
        dpbn.check(data, Structure(schema, Dag(("a",), {})), on_unknown=policy)


def test_records_left_are_those_within_the_bound_and_known():
    schema = Schema((Variable("a", ("0", "1"), column="x"), Variable("b", ("0", "1"))))
    data = pd.DataFrame({"who": [1, 1, 1, 2, 2, 3], "x": [0, None, 1, 1, 0, 1], "b": [0, 1, 1, 0, None, 5]})
    structure = Structure(schema, Dag(("a", "b"), {}))
    with pytest.warns(UserWarning, match=r"of 6 records; records that will count: 2$"):
        dpbn.check(data, structure, on_unknown="drop", unit="who", max_contributions=2)
