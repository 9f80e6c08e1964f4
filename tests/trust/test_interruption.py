"""Ctrl-C and kill while counting, learning and evaluating: no half file, what was charged is told, work resumes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dpbn
from dpbn.data.rows import RowSource
from dpbn.evaluate.experiments import Grid, run

SOURCE = str(Path(dpbn.__file__).parents[1])
ASIA = dpbn.load_network("asia")


def test_an_interrupt_while_counting_charges_nothing(tmp_path, monkeypatch):
    ledger = dpbn.Ledger(tmp_path / "budget.db")
    ledger.open_dataset("ward", 1)

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RowSource, "_codes", stopped)
    with pytest.raises(KeyboardInterrupt) as caught:
        dpbn.learn(ASIA.sample(50, seed=0), ASIA, 1.0, ledger=ledger, dataset="ward")
    assert ledger.remaining("ward").epsilon == 1 and not getattr(caught.value, "__notes__", [])


def started(folder, *arguments):
    code = "from dpbn.cli import script; script()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_command_leaves_no_half_release_and_an_honest_ledger(kind, tmp_path):
    ASIA.sample(20_000, seed=0).to_csv(tmp_path / "rows.csv", index=False)
    ledger = dpbn.Ledger(tmp_path / "budget.db")
    ledger.open_dataset("ward", 100)
    common = ["learn", "rows.csv", "asia", "-e", 1, "-y", "--ledger", "budget.db", "--dataset", "ward"]
    whole = started(tmp_path, *common, "-o", "whole.json")
    begin = time.monotonic()
    assert whole.wait(600) == 0, whole.stderr.read()
    took = time.monotonic() - begin
    released = 1
    for number, share in enumerate((0.5, 0.9)):
        process = started(tmp_path, *common, "-o", f"{number}.json")
        time.sleep(share * took)
        process.send_signal(kind)
        _, errors = process.communicate(timeout=600)
        assert kind == signal.SIGKILL or process.returncode in (0, 1, -2), errors
        path = tmp_path / f"{number}.json"
        if path.exists():
            dpbn.load_release(path)  # whole
            released += 1
        spent = dpbn.Ledger(tmp_path / "budget.db").remaining("ward").spent_epsilon
        assert released <= spent <= number + 2
        if "it stays charged" in errors:
            assert spent >= released


def test_a_killed_evaluation_goes_on_where_it_was(tmp_path):
    output = tmp_path / "results.parquet"
    arguments = ["evaluate", "--networks", "asia", "--methods", "uniform", "--epsilons", "1", "--rows", "200"]
    process = started(tmp_path, *arguments, "--runs", "60", "--processes", "1", "-o", output)
    deadline = time.monotonic() + 600
    while not output.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    from dpbn.evaluate.results import read_rows

    before = read_rows(output)  # whole, whenever the kill came
    assert 0 < len(before) <= 60
    again = run(
        Grid(networks=("asia",), methods=("uniform",), epsilons=(1.0,), rows=(200,), runs=len(before) + 1), output
    )
    assert len(again) == len(before) + 1
    kept = {row["run"]: row["seconds"] for row in before}
    assert all(row["seconds"] == kept[row["run"]] for row in again if row["run"] in kept), "nothing was done twice"
