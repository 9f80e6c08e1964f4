"""What a terminal or a pipe shows: nothing cut off, whatever the width and the encoding."""

import json
import os
import subprocess
import sys

import pytest

from dpbn.cli.shared import print_table

ROUNDED = """network x {}
variable a { type discrete [2] {y, n}; }
probability (a) { table 0.3333, 0.6666; }
"""


def spoken(*arguments, encoding):
    """Run a command whose streams have `encoding`, as on Windows or in an old locale."""
    return subprocess.run(
        [sys.executable, "-m", "dpbn", *arguments],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        check=False,
    )


@pytest.mark.parametrize("columns", [20, 40, 60, 70, 80])
def test_a_narrow_terminal_hides_no_state_and_no_digit(monkeypatch, capsys, columns):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, for rich
    monkeypatch.setenv("COLUMNS", str(columns))
    row = ("yes", "0.1881", "0.0406 – 0.3355", "0.0506 – 0.3257", "0.1405 – 0.2357")
    print_table(["lung", "probability", "90% interval", "privacy alone", "sampling alone"], [row])
    shown = capsys.readouterr().out
    assert all(cell in shown for cell in row), shown


@pytest.mark.parametrize("columns", [40, 80, 100])
@pytest.mark.parametrize("terminal", [True, False])
def test_long_words_push_no_column_over_the_edge(monkeypatch, capsys, columns, terminal):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ["dataset", "epsilon cap", "epsilon left", "delta cap", "delta left"]
    row = ("patients_of_the_clinic_2024_may", "10", "8.2500001", "1e-05", "8.5e-06")
    print_table(names, [row])
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("dataset", "epsilon", "left", "delta", *row[1:])), shown
    folded = "".join(shown.split())
    assert all(folded.count(letter) >= "".join(row).count(letter) for letter in "_0258"), shown


def test_a_terminal_without_a_size_shows_long_words_too(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")  # to rich always 80 columns wide
    print_table(["node", "parents", "states"], [("x" * 40, "y" * 40, "z" * 40)])
    shown = capsys.readouterr().out
    assert [shown.count(letter) for letter in "xyz"] == [40, 40, 40]


def test_a_narrow_terminal_breaks_lists_between_names(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    row = ("CATECHOL", "ARTCO2, INSUFFANESTH, SAO2, TPR", "0.07493", "34 of 54", "fair")
    print_table(["node", "parents", "epsilon", "weak rows", "reliability"], [row])
    shown = capsys.readouterr().out
    assert "INSUFFANESTH" in shown and "reliability" in shown, shown


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("arguments", [("learn", "--help"), ("query", "asia.release.json", "lung")])
def test_streams_that_cannot_write_every_letter(release, arguments, encoding):
    done = spoken(*arguments, encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert b"\\u2013" not in done.stdout


def test_json_is_whole_in_every_encoding(tmp_path):
    (tmp_path / "x.bif").write_text(ROUNDED.replace("{y, n}", '{"größer", "≤ 3"}'))
    done = spoken("query", str(tmp_path / "x.bif"), "a", "--json", encoding="cp1252")
    assert json.loads(done.stdout.decode("cp1252"))["states"] == [["größer", "≤ 3"]], done


def test_a_full_disk_has_a_whole_sentence():
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        line = [sys.executable, "-m", "dpbn", "inspect", "asia"]
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and not done.stderr.rstrip().endswith(":"), done.stderr


def test_a_warning_is_one_line(run, tmp_path):
    (tmp_path / "rounded.bif").write_text(ROUNDED)
    done = run("inspect", "rounded.bif")
    assert done.code == 0
    (line,) = done.err.splitlines()
    assert line.startswith("warning: rows of the CPT of 'a' do not sum to 1 (0.9999)"), line


def test_lists_of_commands_are_not_cut(run):
    for group in ((), ("ledger",)):
        commands = run(*group, "--help").out.partition("Commands:")[2]
        assert commands and "..." not in commands


def test_worker_processes_leave_nothing_behind(tmp_path):
    """What they shared is given back before the process ends: else Python's own tracker complains of it."""
    line = "evaluate --networks asia --methods uniform --epsilons 1 --rows 100 --runs 4 --processes 2 -o"
    done = spoken(*line.split(), str(tmp_path / "r.csv"), encoding="utf-8")
    assert done.returncode == 0
    assert done.stderr.decode() == f"4 rows of this comparison are in {tmp_path / 'r.csv'}\n"
