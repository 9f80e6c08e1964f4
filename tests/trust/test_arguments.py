"""A table given where a setting belongs is not quoted: those errors are for all to read, unlike `DataError`."""

import inspect
from pathlib import Path

import pandas as pd
import pytest

import dpbn
from dpbn.errors import DataError, DpbnError, received
from dpbn.formats.schema_file import write_schema
from dpbn.sklearn import DPBayesianNetworkClassifier
from dpbn.workload import Query

FRAME = pd.DataFrame({"person": ["CANARY1", "CANARY2"], "age": [918273.25, 918274.25]})
TABLES = {
    "frame": FRAME,
    "texts": FRAME["person"],
    "numbers": FRAME["age"],
    "array": FRAME.to_numpy(),
    "records": FRAME.to_dict("records"),
    "columns": FRAME.to_dict("list"),
    "csv": FRAME.to_csv(index=False),
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Callables that take settings, and arguments that they are content with."""
    network = dpbn.load_network("asia")
    rows = network.sample(50, seed=1)
    release = dpbn.learn(rows, network.structure, epsilon=1.0)
    ask = dpbn.Inference(release)
    answer = ask.query(["lung"])

    def classify(**settings):
        DPBayesianNetworkClassifier(**settings).fit(rows.drop(columns="lung"), rows["lung"])

    def in_stages(stage_one):
        dpbn.learn(rows, network, stage_one=stage_one)

    def as_in_the_paper(stage_one=0.1, sampling_rate=0.1, count_floor=1.0, sensitivity="printed"):
        options = {"stage_one": stage_one, "sampling_rate": sampling_rate}
        dpbn.learn(rows, network, method="icml2020", count_floor=count_floor, sensitivity=sensitivity, **options)

    ledger = dpbn.Ledger(tmp_path_factory.mktemp("ledger") / "budget.db")
    ledger.open_dataset("ward", 1)
    ledger.charge("ward", "1/2")

    classify.__signature__ = inspect.signature(DPBayesianNetworkClassifier)
    return [
        (dpbn.learn, {"data": rows, "structure": network, "epsilon": 1.0}),
        (in_stages, {}),
        (as_in_the_paper, {}),
        (ledger.open_dataset, {"name": "other", "epsilon": 1}),
        (ledger.raise_cap, {"name": "ward", "epsilon": 2}),
        (ledger.charge, {"dataset": "ward", "epsilon": "1/1000"}),
        (ledger.record_release, {"entry": 2, "release_id": "x"}),
        (ledger.remaining, {"dataset": "ward"}),
        (ledger.history, {}),
        (ledger.verify, {}),
        (Query, {"variables": ["lung"]}),
        (dpbn.plan, {"structure": network, "epsilon": 1.0, "rows": 100, "simulations": 1}),
        (ask.query, {"targets": ["lung"]}),
        (ask.sample, {"rows": 1}),
        (ask.predict_proba, {"table": rows, "target": "lung"}),
        (ask.predict_intervals, {"table": rows, "target": "lung"}),
        (network.sample, {"rows": 1}),
        (network.cpt, {}),
        (answer.interval, {}),
        (answer.to_frame, {}),
        (dpbn.Variable, {"name": "a", "states": ["x", "y"]}),
        (write_schema, {"structure": network.structure}),
        (classify, {"structure": "asia", "target": "lung", "epsilon": 1.0}),
    ]


NAMES = {"targets", "states"}  # a sequence of names is wanted, and the one that is wrong is named


@pytest.mark.parametrize("kind", list(TABLES))
def test_a_table_in_the_place_of_a_setting_is_not_quoted(calls, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quoted, refused = [], 0
    for function, fits in calls:
        for name in set(inspect.signature(function).parameters) - {"data", "table", "options", *NAMES}:
            try:
                function(**{**fits, name: TABLES[kind]})
            except DataError:  # for the custodian
                continue
            except DpbnError as error:
                refused += 1
                if any(secret in str(error) for secret in ("CANARY", "918273", "918274")):
                    quoted.append(f"{name}: {error}")
            except Exception:  # another engine's or Python's own words are not the subject here
                continue
    assert refused > 20
    assert not quoted


def test_what_a_message_repeats():
    assert [received(value) for value in (0.5, "x", Path("a/x"), None, True)] == ["0.5", "'x'", "'a/x'", "None", "True"]
    assert received(FRAME) == "DataFrame" and received([1]) == "list" and received(b"x") == "bytes"
    assert received("a\nb") == "text of several lines"
    assert received("x" * 500) == "'" + "x" * 99 + "…"
    assert received(10**5000) == "a whole number of thousands of digits"
