"""Answers of any size are printed in part; error bars can be left out."""

import json

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
