"""The ledger and every written file under kills, races, failing disks and damage."""

import errno
import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

import dpbn
from dpbn import files
from dpbn.errors import BudgetError, DpbnError, InputError, LedgerCorruptError, PrivacyError
from dpbn.privacy.ledger import Ledger
from tests.trust.disk_faults import survey
from tests.trust.ledger_faults import forks, full_disk, kills, race


def test_thirty_kills_never_under_count(tmp_path):
    seen = kills(tmp_path / "budget.db", 30)
    assert seen["under_counted"] == 0 and seen["charges"] > 0


def test_a_race_grants_exactly_what_the_cap_admits(tmp_path):
    seen = race(tmp_path / "budget.db", processes=4, attempts=30, grants=40)
    assert (seen["granted"], seen["refused"], seen["other_errors"]) == (40, 80, 0)
    assert seen["spent_over_cap"] == 0 and seen["entries"] == 41


def test_copying_the_ledger_all_the_while_loses_nothing(tmp_path):
    """A process that closes any handle of the file loses SQLite's locks, but not the folder's."""
    seen = race(tmp_path / "budget.db", processes=3, attempts=30, grants=60, copied=True)
    assert (seen["granted"], seen["refused"], seen["other_errors"]) == (60, 30, 0)
    assert seen["spent_over_cap"] == 0 and seen["entries"] == 61


def test_a_process_whose_threads_charge_may_fork_others_that_charge(tmp_path):
    seen = forks(tmp_path / "budget.db", 6)
    assert seen["charged"] == seen["forked"] == 12 and seen["entries"] == seen["told"]


@pytest.mark.parametrize("extra", [0, 1, 100, 4096, 5000, 9000, 20_000, 40_000])
def test_a_full_disk_never_loses_a_charge_that_was_granted(tmp_path, extra):
    told, kept = full_disk(tmp_path / "budget.db", extra)
    assert kept >= told


def test_torn_and_flipped_files_are_refused_or_still_true(tmp_path):
    source = tmp_path / "source.db"
    ledger = Ledger(source)
    ledger.open_dataset("ward", 100)
    for _ in range(20):
        ledger.charge("ward", 1)
    ledger.close()
    content, head = source.read_bytes(), source.with_name("source.db.head").read_text()
    dice = random.Random(0)
    refused = 0
    for number in range(120):
        folder = tmp_path / str(number)
        folder.mkdir()
        damaged = bytearray(content)
        if number % 3 == 0:
            del damaged[dice.randrange(len(damaged)) :]
        else:
            for _ in range(dice.choice([1, 8, 64])):
                damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        (folder / "budget.db").write_bytes(bytes(damaged))
        (folder / "budget.db.head").write_text(head)
        try:
            found = Ledger(folder / "budget.db")
            assert found.remaining("ward").spent_epsilon == 20
        except PrivacyError:
            refused += 1
    assert refused > 60


def test_a_copy_of_the_file_alone_knows_all_that_was_spent(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open_dataset("ward", 100)
    for _ in range(3):
        ledger.charge("ward", 1)
        copy = tmp_path / "copy.db"  # made while the ledger is open, without budget.db-wal and without the anchor
        shutil.copy(tmp_path / "budget.db", copy)
        assert Ledger(copy, anchor=False).remaining("ward").epsilon == ledger.remaining("ward").epsilon


def test_a_lost_write_ahead_file_is_a_roll_back_and_is_told(tmp_path):
    """Where a reader keeps entries from being moved into the file."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open_dataset("ward", 100)
    reader = sqlite3.connect(tmp_path / "budget.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchall()
    ledger.charge("ward", 1)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("budget.db", "budget.db.head"):
        shutil.copy(tmp_path / name, copy / name)
    with pytest.raises(LedgerCorruptError):
        Ledger(copy / "budget.db")
    assert ledger.remaining("ward").epsilon == 99
    reader.close()


def test_a_ledger_that_cannot_be_there_is_refused(tmp_path):
    for path in (tmp_path / "none" / "budget.db", tmp_path, tmp_path / ("x" * 300)):
        with pytest.raises(DpbnError):
            Ledger(path)


def _failing(monkeypatch, name, at):
    """The `at`-th call of os.<name> fails as a full or dying disk does."""
    real, left = getattr(os, name), [at]

    def call(*arguments, **named):
        left[0] -= 1
        if left[0] == -1:
            raise OSError(errno.ENOSPC if at % 2 else errno.EIO, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    monkeypatch.setattr(os, name, call)


NETWORK = dpbn.load_network("cancer")


def _release(folder):
    made = dpbn.learn(NETWORK.sample(20, seed=0), NETWORK, 1.0, method="uniform", noise=dpbn.InsecureNoise(0))
    return made.save(folder / "x.json")


def _table(folder):
    from dpbn.tables import write_table

    write_table(NETWORK.sample(20, seed=0), folder / "x.csv")


def _report(folder):
    from dpbn.report import write_report

    made = dpbn.learn(NETWORK.sample(20, seed=0), NETWORK, 1.0, method="uniform", noise=dpbn.InsecureNoise(0))
    write_report(made, folder / "x.html")


WRITERS = {
    "release": _release,
    "bif": lambda folder: dpbn.write_network(NETWORK, folder / "x.bif"),
    "json.gz": lambda folder: dpbn.write_network(NETWORK, folder / "x.json.gz"),
    "table": _table,
    "report": _report,
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_file_is_whole_or_not_there_whichever_call_fails(writer, call, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    whole.mkdir()
    WRITERS[writer](whole)
    expected = {path.name: path.read_bytes() for path in whole.iterdir()}
    failed = 0
    for at in range(6):
        folder = tmp_path / f"{call}{at}"
        folder.mkdir()
        with monkeypatch.context() as patch:
            _failing(patch, call, at)
            try:
                WRITERS[writer](folder)
            except DpbnError:
                failed += 1
        for path in folder.iterdir():
            assert path.name in expected, f"{path.name} was left behind"
            assert path.read_bytes() == expected[path.name]
    assert failed >= 1


def test_an_older_file_survives_a_failing_write(tmp_path, monkeypatch):
    path = files.write_atomically(tmp_path / "x.json", "old")
    _failing(monkeypatch, "fsync", 0)
    with pytest.raises(InputError, match="must be a file that can be written"):
        files.write_atomically(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_release_is_not_lost_if_the_ledger_dies_after_the_charge(tmp_path, monkeypatch):
    ledger = dpbn.Ledger(tmp_path / "budget.db")
    ledger.open_dataset("ward", 1)

    def dead(*_):
        raise BudgetError("ledger must be writable, got: disk full")

    monkeypatch.setattr(ledger, "record_release", dead)
    with pytest.warns(UserWarning, match="could not be named"):
        made = dpbn.learn(NETWORK.sample(20, seed=0), NETWORK, 1.0, method="uniform", ledger=ledger, dataset="ward")
    assert made.private and ledger.remaining("ward").epsilon == 0


def test_every_kth_call_of_the_disk_may_fail(require_system):
    """Writes, fsyncs, renames and truncates of SQLite and Python, each failing once or from then on."""
    seen = survey(Path(dpbn.__file__).parents[1], require_system("gcc"))
    assert not seen["problems"]
    assert seen["cases"] > 150 and seen["failed_calls"] > 150 and min(seen["done"], seen["refused"]) > 30
