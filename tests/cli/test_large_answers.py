"""Answers of any size are printed in part; error bars can be left out."""

import json

import pytest

from dpbn.cli import ask

TARGETS = ["BP", "HR", "CO", "TPR", "CATECHOL", "HRBP", "HREKG", "HRSAT"]


def test_the_most_probable_combinations_are_printed(run):
    lines = run("query", "alarm", *TARGETS).out.strip().splitlines()
    assert lines[-1] == f"and {3**6 * 3 * 2 - ask.MOST_ROWS:,} combinations less probable; --json gives all"
    shares = [float(line.split()[-1]) for line in lines if line.split() and line.split()[-1].startswith("0.")]
    assert len(shares) == ask.MOST_ROWS and shares == sorted(shares, reverse=True)


def test_a_small_answer_keeps_the_order_of_the_states(run):
    lines = run("query", "alarm", "HR").out.split()
    assert [word for word in lines if word.isupper()] == ["HR", "LOW", "NORMAL", "HIGH"]
    assert "less probable" not in run("query", "alarm", "HR").out


def test_error_bars_can_be_left_out(run, release, monkeypatch):
    def drawn(*_):
        raise AssertionError("error bars were computed")

    monkeypatch.setattr("dpbn.uncertainty.error_bars.ErrorBars.__init__", drawn)
    told = run("query", release, "lung", "--no-interval")
    assert told.code == 0 and "interval" not in told.out
    document = json.loads(run("query", release, "lung", "--no-interval", "--json").out)
    assert "low" not in document and "weak_rows" in document


def test_a_comparison_tells_both_answers_and_their_difference(run, release):
    document = json.loads(run("query", release, "lung", "--given", "smoke=yes", "--versus", "smoke=no", "--json").out)
    first, second = document["first"], document["second"]
    assert (first["evidence"], second["evidence"]) == ({"smoke": "yes"}, {"smoke": "no"})
    assert document["difference"] == [one - other for one, other in zip(first["values"], second["values"], strict=True)]
    assert all(low < high for low, high in zip(document["low"], document["high"], strict=True))
    assert document["privacy"].keys() == {"low", "high"} and "weak_rows" in document
    told = run("query", release, "lung", "--given", "smoke=yes", "--versus", "smoke=no").out
    assert "versus" in told and f"{document['difference'][0]:+.4f}" in told and f"{document['high'][0]:+.4f}" in told


@pytest.mark.parametrize("arguments", [("lung", "bronc"), ("lung", "bronc", "dysp"), ("lung", "--versus", "smoke=no")])
def test_answers_of_many_columns_fit_a_terminal(run, release, arguments):
    told = run("query", release, *arguments).out
    assert "90% interval" in told and max(map(len, told.splitlines())) <= 80, told
    assert "privacy" in json.loads(run("query", release, *arguments, "--json").out)
    assert "privacy alone" in run("query", release, "lung").out


def test_what_versus_leaves_out_is_not_observed(run):
    given = ("query", "asia", "dysp", "--given", "smoke=yes", "--given", "xray=yes", "--json")
    document = json.loads(run(*given, "--versus", "smoke").out)
    assert document["second"]["evidence"] == {"xray": "yes"} and "low" not in document
    assert json.loads(run(*given, "--versus", "tub=no").out)["second"]["evidence"] == {
        "smoke": "yes",
        "xray": "yes",
        "tub": "no",
    }


def test_versus_must_name_a_state_or_observed_nodes(run):
    told = run("query", "asia", "dysp", "--versus", "smoke")
    assert told.code == 2 and "--versus must be NODE=STATE" in told.err
    told = run("query", "asia", "dysp", "--versus", "smoke=maybe")
    assert told.code == 1 and "state of 'smoke' must be one of" in told.err
