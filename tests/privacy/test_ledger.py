"""The ledger: exact, append-only, safe against races, kills, edits and roll-backs."""

import fcntl
import math
import multiprocessing
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.errors import BudgetError, InputError, LedgerCorruptError, PrivacyError
from dpbn.privacy.ledger import Ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path):
    """With epsilon 1 for the dataset "ward"."""
    opened = Ledger(path)
    opened.open_dataset("ward", 1)
    return opened


def test_ten_tenths_fill_a_cap_of_one_and_nothing_more(path):
    ledger = Ledger(path)
    ledger.open_dataset("ward", 1.0)
    for _ in range(10):
        ledger.charge("ward", 0.1, structure="abc", method="uniform")
    assert ledger.remaining("ward").epsilon == 0
    with pytest.raises(BudgetError, match="left, epsilon=0"):
        ledger.charge("ward", 1e-300)
    assert ledger.verify() == 11


def test_delta_is_capped_too(path):
    ledger = Ledger(path)
    ledger.open_dataset("ward", 10, "1e-6")
    ledger.charge("ward", 1, 9e-7)
    with pytest.raises(BudgetError, match="delta=1e-07"):
        ledger.charge("ward", 1, 2e-7)
    assert ledger.remaining("ward").delta == Fraction(1, 10**7)


def test_the_delta_of_a_cap_neither_changes_unseen_nor_falls(path):
    ledger = Ledger(path)
    ledger.open_dataset("ward", 1, "1e-6")
    with pytest.raises(BudgetError, match="keep its cap"):
        ledger.open_dataset("ward", 1, "1e-5")
    with pytest.raises(BudgetError, match="fall"):
        ledger.raise_cap("ward", 2)
    assert ledger.remaining("ward").delta == Fraction(1, 10**6)


@pytest.mark.parametrize("private", [False, None, 1, "no"])
def test_nothing_but_true_is_private(ledger, private):
    with pytest.raises(BudgetError, match="private releases only"):
        ledger.charge("ward", 1, private=private)
    assert ledger.remaining("ward").epsilon == 1


@pytest.mark.parametrize("bad", [0, -1, 0.0, -0.5, math.nan, math.inf, -math.inf, True, None, "", "x", "1/0", [1]])
def test_bad_amounts_are_refused(path, bad):
    ledger = Ledger(path)
    with pytest.raises(BudgetError):
        ledger.open_dataset("ward", bad)
    ledger.open_dataset("ward", 1)
    with pytest.raises(BudgetError):
        ledger.charge("ward", bad)
    with pytest.raises(BudgetError):
        ledger.raise_cap("ward", bad)
    if bad != 0 or isinstance(bad, bool):
        with pytest.raises(BudgetError):
            ledger.charge("ward", 0.5, bad)
    assert ledger.remaining("ward").epsilon == 1


@pytest.mark.parametrize("bad", [1, True, None, ("1",), b"1", "\ud800", "", "x" * 1001], ids="{!r:.9}".format)
def test_a_dataset_is_named_by_a_text(path, bad):
    """SQLite takes 1 for "1", but no hash does: one such charge would damage the ledger for good."""
    ledger = Ledger(path)
    ledger.open_dataset("1", 1)
    for spend in (ledger.charge, ledger.raise_cap, ledger.open_dataset):
        with pytest.raises(BudgetError, match="dataset must be a text"):
            spend(bad, 1)
    with pytest.raises(BudgetError, match="dataset must be a text"):
        ledger.remaining(bad)
    assert Ledger(path).verify() == 1


@pytest.mark.parametrize("bad", [{9: 1, 10: 2}, 1, None, b"x"], ids=repr)
def test_what_a_charge_is_about_is_told_in_text(path, ledger, bad):
    """Keys of an object are sorted as numbers when written and as text when read."""
    with pytest.raises(BudgetError, match="note of a charge must be a text"):
        ledger.charge("ward", 1, note=bad)
    assert Ledger(path).verify() == 1


@pytest.mark.parametrize("kind", ["beyond floats", "long", "long below", "digits of another script"])
def test_amounts_that_cannot_be_shown_or_kept_are_refused_at_once(path, kind):
    long = {"beyond floats": "1e400", "long": 10**5000, "long below": Fraction(1, 10**5000)}
    test_bad_amounts_are_refused(path, long.get(kind, "1e" + 6 * "\u0669"))


def test_a_total_too_long_to_be_written_is_refused_and_charges_nothing(ledger):
    ledger.charge("ward", Fraction(1, 3**5000))
    with pytest.raises(BudgetError, match="at most 4300 digits"):
        ledger.charge("ward", Fraction(1, 2**9000))
    assert ledger.verify() == 2
    assert ledger.remaining("ward").spent_epsilon == Fraction(1, 3**5000)


def test_amounts_of_every_exact_kind(path):
    ledger = Ledger(path)
    ledger.open_dataset("ward", Decimal("1"))
    for amount in (0.25, "0.25", Fraction(1, 4), Decimal("0.25")):
        ledger.charge("ward", amount)
    assert ledger.remaining("ward").epsilon == 0


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_whole_numbers_of_numpy_are_added_up_without_end(path, kind):
    ledger = Ledger(path)
    ledger.open_dataset("ward", kind(200))
    ledger.charge("ward", "0.12345678901234567")
    ledger.charge("ward", kind(150))
    with pytest.raises(BudgetError, match="must be at most what is left"):
        ledger.charge("ward", kind(185))
    assert ledger.remaining("ward").spent_epsilon == 150 + Fraction("0.12345678901234567")
    assert ledger.verify() == 3


def test_caps_are_opened_and_raised_on_purpose_only(path):
    ledger = Ledger(path)
    with pytest.raises(BudgetError, match="opened"):
        ledger.charge("ward", 0.1)
    ledger.open_dataset("ward", 1)
    ledger.open_dataset("ward", 1.0)  # the same again
    with pytest.raises(BudgetError, match="keep its cap"):
        ledger.open_dataset("ward", 2)
    with pytest.raises(BudgetError, match="fall"):
        ledger.raise_cap("ward", 0.5)
    ledger.charge("ward", 1)
    ledger.raise_cap("ward", 1.5)
    assert ledger.remaining("ward").epsilon == Fraction(1, 2)
    assert [entry.kind for entry in ledger.history("ward")] == ["open", "charge", "raise"]
    assert ledger.datasets() == ("ward",)


def test_who_when_what_and_which_release_are_kept(path, ledger):
    number = ledger.charge("ward", 0.5, structure="cafe", method="optimized", note="pilot")
    ledger.record_release(number, "f00d")
    charge, release = ledger.history("ward")[1:]
    assert (
        charge.body["structure"] == "cafe" and charge.body["method"] == "optimized" and charge.body["note"] == "pilot"
    )
    assert charge.body["who"] and charge.body["when"].endswith("+00:00")
    assert release.body["charge"] == number and release.body["release"] == "f00d"
    for wrong in (1, 99):
        with pytest.raises(BudgetError, match="must be a charge"):
            ledger.record_release(wrong, "f00d")
    assert Ledger(path).verify() == 3


def filled(path):
    ledger = Ledger(path)
    ledger.open_dataset("ward", 1)
    for _ in range(4):
        ledger.charge("ward", 0.1)
    ledger.close()
    return ledger


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entries SET body = replace(body, '1/10', '1/100') WHERE id = 3",
        "UPDATE entries SET body = replace(body, '1/10', '1/100') WHERE id = 5",
        "UPDATE entries SET dataset = 'other' WHERE id = 5",
        "UPDATE entries SET kind = 'raise' WHERE id = 4",
        "UPDATE entries SET body = 'nonsense' WHERE id = 2",
        "UPDATE entries SET body = '[]' WHERE id = 2",
        "UPDATE entries SET hash = '0' WHERE id = 5",
        "DELETE FROM entries WHERE id = 5",
        "DELETE FROM entries WHERE id = 3",
        "DELETE FROM entries",
        "DROP TABLE entries",
    ],
)
def test_edits_are_evident_to_old_and_new_objects(path, edit):
    ledger = filled(path)
    with sqlite3.connect(path) as raw:
        raw.execute(edit)
    raw.close()
    with pytest.raises(LedgerCorruptError):
        Ledger(path)
    with pytest.raises((LedgerCorruptError, BudgetError)):
        ledger.verify()


def test_a_recomputed_chain_that_does_not_add_up_is_evident(path):
    """Someone who knows the hash rule but states totals that do not follow."""
    from dpbn.privacy.chain import Entry, canonical, entry_hash

    filled(path)
    path.with_name("budget.db.head").unlink()
    raw = sqlite3.connect(path)
    last = Ledger(path).history()[-1]
    forged = Entry(last.id, last.dataset, last.kind, {**last.body, "spent_epsilon": "1/100"}, last.previous, "")
    raw.execute(
        "UPDATE entries SET body = ?, hash = ? WHERE id = ?", (canonical(forged.body), entry_hash(forged), last.id)
    )
    raw.commit()
    raw.close()
    with pytest.raises(LedgerCorruptError, match="totals"):
        Ledger(path)


def test_a_rolled_back_file_is_evident_from_the_anchor_or_a_kept_head(path, ledger, tmp_path):
    ledger.charge("ward", 0.5)
    ledger.close()
    shutil.copy(path, tmp_path / "backup.db")
    again = Ledger(path)
    again.charge("ward", 0.5)
    head = again.head()
    again.close()
    for leftover in ("budget.db", "budget.db-wal", "budget.db-shm"):
        (tmp_path / leftover).unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", path)
    with pytest.raises(LedgerCorruptError, match="rolled back"):
        Ledger(path)
    path.with_name("budget.db.head").unlink()
    with pytest.raises(LedgerCorruptError, match="rolled back"):
        Ledger(path, expected_head=head)
    assert Ledger(path).verify() == 2  # without any memory outside the file it cannot be told: docs/privacy.md
    with pytest.raises(LedgerCorruptError, match="rolled back"):
        Ledger(path).verify(head)


def test_a_ledger_of_two_names_is_refused(path, tmp_path):
    """SQLite locks by name: two processes would spend the same budget through the two."""
    ledger = filled(path)
    (tmp_path / "other.db").hardlink_to(path)
    for spend in (lambda: ledger.charge("ward", 0.1), lambda: Ledger(tmp_path / "other.db")):
        with pytest.raises(LedgerCorruptError, match="one name, got 2 hard links"):
            spend()
    (tmp_path / "other.db").unlink()
    assert ledger.charge("ward", 0.1)


def test_a_file_put_in_the_place_of_an_open_one_is_noticed(path, tmp_path):
    ledger = filled(path)
    ledger.remaining("ward")  # opens it
    shutil.copy(path, tmp_path / "copy.db")
    (tmp_path / "copy.db").replace(path)
    with pytest.raises(LedgerCorruptError, match="the file that was opened"):
        ledger.charge("ward", 0.1)


def test_a_process_that_reads_the_file_knows_what_others_charge(path, ledger):
    """A handle that it closes takes SQLite's locks with it: others then removed the write-ahead file under it."""
    charge = "import sys, dpbn; dpbn.Ledger(sys.argv[1]).charge('ward', sys.argv[2])"
    path.read_bytes()
    for amount in ("1/10", "1/2"):
        subprocess.run([sys.executable, "-c", charge, path, amount], check=True)
        if amount == "1/10":
            ledger.charge("ward", "1/10")
    with pytest.raises(BudgetError, match="must be at most what is left"):
        ledger.charge("ward", "1/2")
    assert ledger.remaining("ward").spent_epsilon == Fraction(7, 10)
    assert Ledger(path).verify() == 4


def test_a_charge_that_is_not_found_in_the_file_afterwards_is_refused(path, ledger, monkeypatch):
    """Whoever took it away: another program whose locks did not hold, or one that put an older file back."""
    before, move = path.read_bytes(), Ledger._move_into_file

    def lose(self):
        move(self)
        path.write_bytes(before)

    monkeypatch.setattr(Ledger, "_move_into_file", lose)
    with pytest.raises(LedgerCorruptError, match="entry 2 must still be in the ledger"):
        ledger.charge("ward", "1/2")


def is_locked(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def test_the_folder_is_locked_under_every_name_and_as_long_as_the_outermost_use(path, ledger, tmp_path):
    (tmp_path / "project").mkdir()
    link = tmp_path / "project" / "link.db"
    link.symlink_to(path)
    linked = Ledger(link)
    with linked._using():
        path.read_bytes()
        assert is_locked(tmp_path) and not is_locked(link.parent)
        assert ledger.charge("ward", "1/2") == 2  # by another object of the same thread
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    with pytest.raises(BudgetError, match="left"):
        linked.charge("ward", 1)
    assert not is_locked(tmp_path)


def test_nothing_is_charged_where_the_folder_stays_locked(path, ledger, monkeypatch):
    monkeypatch.setattr("dpbn.privacy.ledger_file._WAIT_SECONDS", 0.05)
    handle = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(BudgetError, match="must be free, got a folder that stays locked"):
        ledger.charge("ward", 1)
    os.close(handle)
    assert ledger.charge("ward", 1) == 2


def test_a_system_without_such_locks_relies_on_those_of_sqlite(path, ledger, monkeypatch):
    monkeypatch.setattr("dpbn.privacy.ledger_file.fcntl", None)
    assert ledger.charge("ward", 1) == 2 and Ledger(path).verify() == 2


def test_a_process_forks_only_while_no_thread_has_a_ledger_open(path, ledger):
    """The child would take SQLite's locks, and the folder's, for its own."""
    inside, leaving = threading.Event(), threading.Event()

    def hold():
        with ledger._using():
            ledger.remaining("ward")
            inside.set()
            leaving.wait(0.5)
            leaving.set()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(30)
        os._exit(ledger.charge("ward", "1/2") != 2)
    assert leaving.is_set()
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert ledger.remaining("ward").epsilon == Fraction(1, 2)


def test_a_process_forked_in_the_middle_of_a_use_is_refused_and_leaves_the_lock_to_its_parent(path, ledger):
    with ledger._using():
        ledger.remaining("ward")
        child = os.fork()
        if not child:
            code = 1
            with suppress(BudgetError):
                Ledger(path)
                code = 2
            os._exit(0 if code == 1 and is_locked(path.parent) else code)
        assert os.waitpid(child, 0)[1] == 0
        assert is_locked(path.parent)
    assert not is_locked(path.parent) and ledger.charge("ward", 1) == 2


@pytest.mark.parametrize(
    "look", [lambda ledger: ledger.history(), lambda ledger: ledger.charge("ward", "1/9", protects="who")]
)
def test_an_error_that_is_kept_does_not_keep_the_file_open(path, ledger, look):
    for protects in ("", "", "", "who"):
        ledger.charge("ward", "1/9", protects=protects)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE entries SET body = 'nonsense' WHERE id = 3")
    raw.close()
    with pytest.raises(LedgerCorruptError) as kept:
        look(ledger)
    assert kept.value.__traceback__ is not None
    assert sorted(file.name for file in path.parent.iterdir()) == ["budget.db", "budget.db.head"]


def test_the_same_charge_to_two_copies_makes_two_entries(path, tmp_path):
    filled(path)
    shutil.copy(path, tmp_path / "copy.db")
    first, second = Ledger(path), Ledger(tmp_path / "copy.db")
    for ledger in (first, second):
        ledger.charge("ward", 0.1)
    assert first.head() != second.head()


@pytest.mark.parametrize(("kind", "edit"), [("open", ("1", "9")), ("charge", ("who", "what"))])
def test_an_edited_entry_is_evident_to_a_process_that_charges(path, ledger, kind, edit):
    """Also where it is not the newest: of a dataset the last entry counts, and the charges say what it protects."""
    if kind == "charge":
        ledger.charge("ward", "1/9", protects="who")
        ledger.charge("ward", "1/9", protects="who")
    ledger.open_dataset("other", 1)
    with sqlite3.connect(path) as raw:
        place = "min" if kind == "charge" else "max"
        which = f"(SELECT {place}(id) FROM entries WHERE dataset = 'ward' AND kind = ?)"
        raw.execute(
            f"UPDATE entries SET body = replace(body, ?, ?) WHERE id = {which}", (*map('"{}"'.format, edit), kind)
        )
    raw.close()
    with pytest.raises(LedgerCorruptError, match="must match its hash"):
        ledger.charge("ward", "1/9", protects="what")


def test_a_forked_process_opens_a_connection_of_its_own(path):
    ledger = Ledger(path)
    held = ledger._connection()
    child = os.fork()
    if not child:
        os._exit(ledger._connection() is held)
    assert os.waitpid(child, 0)[1] == 0


def test_another_ledger_in_its_place_and_an_anchor_rolled_back_with_it_are_evident(path, tmp_path):
    old = Ledger(path)
    old.open_dataset("ward", 1)
    old.close()
    for name in ("budget.db", "budget.db.head"):
        shutil.copy(tmp_path / name, tmp_path / f"{name}.old")
    old.charge("ward", 1)
    head = old.head()
    old.close()
    for name in ("budget.db", "budget.db.head"):
        shutil.copy(tmp_path / f"{name}.old", tmp_path / name)
    with pytest.raises(LedgerCorruptError, match="rolled back"):
        Ledger(path, expected_head=head)
    Ledger(path).charge("ward", "1/100")  # as many entries as before, but others
    with pytest.raises(LedgerCorruptError, match="rolled back or replaced"):
        old.charge("ward", "1/100")


def test_a_kept_head_must_be_in_a_ledger_that_has_grown_beyond_it(path, tmp_path):
    """Who rewrites database and anchor and adds entries is caught by the head that was kept elsewhere."""
    filled(path)
    kept = Ledger(path).head()
    for name in ("budget.db", "budget.db.head"):
        (tmp_path / name).unlink()
    forged = Ledger(path)
    forged.open_dataset("ward", 1)
    for _ in range(int(kept.partition(":")[0])):
        forged.charge("ward", "1/1000")
    assert forged.verify(forged.head()) == forged.verify() > int(kept.partition(":")[0])
    with pytest.raises(LedgerCorruptError, match="rolled back or replaced"):
        forged.verify(kept)
    with pytest.raises(LedgerCorruptError, match="rolled back or replaced"):
        forged.charge("ward", "1/1000")  # found out once, it is not charged any more
    with pytest.raises(LedgerCorruptError, match="rolled back or replaced"):
        Ledger(path, expected_head=kept)


@pytest.mark.parametrize("folder", ["a folder", "wide\u3000space", "line\u2028end", "return\rhere", "back\\slash"])
def test_a_file_mounted_by_itself_is_refused(tmp_path, monkeypatch, folder):
    """Its write-ahead file would lie in another folder than that of those who know it by its own name."""
    (tmp_path / folder).mkdir()
    path, link = tmp_path / folder / "budget.db", tmp_path / "link.db"
    Ledger(path).open_dataset("ward", 1)
    link.symlink_to(path)
    shown = str(path).replace("\\", "\\134").replace(" ", "\\040")
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr("dpbn.privacy.ledger_file._MOUNTS", mounts)
    lines = ["22 1 8:1 / / rw - ext4 /dev/sda1 rw", f"99 22 8:1 /home/budget.db {shown} rw - ext4 /dev/sda1 rw"]
    for name in (path, link):
        mounts.write_bytes("\n".join(lines).encode())
        with pytest.raises(LedgerCorruptError, match="must be mounted with its folder"):
            Ledger(name)
        mounts.write_text(lines[0])
        assert Ledger(name).remaining("ward").epsilon == 1


def test_whoever_may_read_a_ledger_may_read_its_anchor(path):
    """As SQLite's own files beside it: people who share one would else shut each other out."""
    Ledger(path).open_dataset("ward", 1)
    path.chmod(0o660)
    before = os.umask(0o077)
    try:
        Ledger(path).charge("ward", 0.5)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.with_name(path.name + ".head").stat().st_mode) == 0o660


def test_charges_through_a_link_are_known_beside_the_file_as_well(path, tmp_path):
    Ledger(path).open_dataset("ward", 1)
    content = path.read_bytes()
    (tmp_path / "project").mkdir()
    link = tmp_path / "project" / "link.db"
    link.symlink_to(path)
    linked = Ledger(link)
    linked.charge("ward", 1)
    linked.close()
    path.write_bytes(content)
    for name in (path, link):
        with pytest.raises(LedgerCorruptError, match="rolled back or replaced"):
            Ledger(name)


@pytest.mark.parametrize("what", ["wrote", "read"])
def test_a_running_process_does_not_charge_a_file_rolled_back_under_it(path, tmp_path, what):
    ledger = Ledger(path, anchor=False)
    ledger.open_dataset("ward", 1)
    ledger.charge("ward", 0.5)
    ledger.close()
    shutil.copy(path, tmp_path / "backup.db")
    ledger.charge("ward", 0.5)
    ledger.close()
    running = ledger if what == "wrote" else Ledger(path, anchor=False)
    running.close()
    shutil.copy(tmp_path / "backup.db", path)
    with pytest.raises(LedgerCorruptError, match="rolled back"):
        running.charge("ward", 0.5)


def test_a_deleted_or_torn_file_is_evident(path):
    filled(path)
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(LedgerCorruptError, match="missing"):
        Ledger(path)
    for torn in (content[: len(content) // 2], b"not a database" * 100, bytes(len(content))):
        path.write_bytes(torn)
        with pytest.raises((LedgerCorruptError, BudgetError)):
            Ledger(path)
    path.with_name("budget.db.head").write_text("nonsense")
    with pytest.raises(LedgerCorruptError, match="number:hash"):
        Ledger(path)


def _race(path, amount, attempts, granted):
    ledger = Ledger(path)
    for _ in range(attempts):
        try:
            ledger.charge("ward", amount)
            with granted.get_lock():
                granted.value += 1
        except BudgetError:
            pass


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_racing_for_the_last_of_it_never_overspend(path, method):
    ledger = Ledger(path)
    ledger.open_dataset("ward", "0.2")
    context = multiprocessing.get_context(method)
    granted = context.Value("i", 0)
    processes = [context.Process(target=_race, args=(path, "0.01", 12, granted)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert granted.value == 20
    assert ledger.remaining("ward").epsilon == 0
    assert Ledger(path).verify() == 21


SPENDER = """
import sys
from dpbn.privacy.ledger import Ledger
ledger = Ledger(sys.argv[1])
print("ready", flush=True)
while True:
    print(ledger.charge("ward", "0.001"), flush=True)
"""


def test_a_kill_never_gives_budget_back(path):
    """Every charge that was reported before the kill is still there after it, and the chain is whole."""
    Ledger(path).open_dataset("ward", 1000)
    reported = 0
    for round_number in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdout.readline() == "ready\n"
        told = process.stdout.readline().strip() if round_number % 2 else ""  # killed after a charge, or anywhere
        time.sleep(0.01 + 0.013 * round_number)
        process.send_signal(signal.SIGKILL)
        lines = [told, *process.communicate()[0].splitlines()]
        reported += sum(line.isdigit() for line in lines)
        spent = Ledger(path).remaining("ward").spent_epsilon
        assert spent >= Fraction(reported, 1000)
        reported = int(spent * 1000)
    assert reported > 0


def test_a_failing_write_charges_nothing_and_says_so(path, monkeypatch):
    monkeypatch.setattr("dpbn.privacy.ledger_file._WAIT_SECONDS", 0.05)
    ledger = filled(path)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(BudgetError, match="locked"):
        ledger.charge("ward", 0.1)
    blocker.execute("ROLLBACK")
    blocker.close()
    connect = ledger._connection

    def full():
        connect().execute("PRAGMA max_page_count=1")
        return connect()

    monkeypatch.setattr(ledger, "_connection", full)
    with pytest.raises(BudgetError, match="full"):
        for _ in range(200):
            ledger.charge("ward", Fraction(1, 10**6), note="x" * 900)
    assert Ledger(path).verify() >= 5


def test_a_lost_anchor_does_not_undo_a_charge(path, monkeypatch):
    import dpbn.privacy.ledger as module

    ledger = filled(path)

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(module, "write_atomically", full)
    ledger.charge("ward", 0.1)
    monkeypatch.undo()
    assert Ledger(path).remaining("ward").epsilon == Fraction(1, 2)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("charge"), st.decimals("0.0001", "0.7", places=4)),
        st.tuples(st.just("raise"), st.decimals("0.5", "3", places=2)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=15,
)


@settings(deadline=None, max_examples=20)
@given(steps)
def test_spent_never_falls_nor_passes_the_cap(tmp_path_factory, sequence):
    path = tmp_path_factory.mktemp("ledger") / "budget.db"
    ledger = Ledger(path)
    ledger.open_dataset("ward", 1)
    cap, spent = Fraction(1), Fraction(0)
    for kind, amount in sequence:
        try:
            if kind == "charge":
                ledger.charge("ward", amount)
                spent += Fraction(amount)
            elif kind == "raise":
                ledger.raise_cap("ward", amount)
                cap = Fraction(amount)
            else:
                ledger = Ledger(path)
        except BudgetError:
            assert Fraction(amount) > cap - spent if kind == "charge" else Fraction(amount) < cap
        balance = ledger.remaining("ward")
        assert (balance.cap_epsilon, balance.spent_epsilon) == (cap, spent)
        assert spent <= cap
    ledger.verify()


def test_learn_charges_before_noise_and_names_the_release(path):
    network = dpbn.load_network("asia")
    rows = network.sample(200, seed=0)
    ledger = dpbn.Ledger(path)
    ledger.open_dataset("ward", 1)
    release = dpbn.learn(rows, network, epsilon=0.75, method="uniform", ledger=ledger, dataset="ward")
    _, charge, named = ledger.history("ward")
    assert charge.epsilon == Fraction(3, 4) and charge.body["method"] == "uniform"
    assert named.body["release"] == release.id
    with pytest.raises(BudgetError, match=r"left, epsilon=0\.25"):
        dpbn.learn(rows, network, epsilon=0.75, method="uniform", ledger=ledger, dataset="ward")
    with pytest.raises(PrivacyError):
        dpbn.learn(rows, network, method="uniform", noise=dpbn.InsecureNoise(0), ledger=ledger, dataset="ward")
    assert ledger.remaining("ward").epsilon == Fraction(1, 4)


@pytest.mark.parametrize("cap", [("1e400", 0), (10**400, 0), (1e12, 0), (1, 1), (1, 5)])
def test_a_cap_must_be_one_that_can_be_shown_and_mean_something(path, cap):
    ledger = Ledger(path)
    with pytest.raises(BudgetError, match=r"cap must be|epsilon must be a number"):
        ledger.open_dataset("ward", *cap)
    ledger.open_dataset("ward", 1)
    with pytest.raises(BudgetError, match=r"cap must be|epsilon must be a number"):
        ledger.raise_cap("ward", *cap)
    assert ledger.verify() == 1


def test_a_ledger_shows_its_file_and_length(ledger):
    assert repr(ledger) == "Ledger('budget.db', 1 entries)"


def test_wrong_arguments_are_told_as_such(path):
    for place in ("a\0b", 5, None, b"budget.db"):
        with pytest.raises(InputError, match="the place of a ledger must be a path"):
            Ledger(place)
    ledger = Ledger(path)
    ledger.open_dataset("ward", 1)
    for dataset in (1, b"ward", ["ward"], "\ud800", ""):
        with pytest.raises(BudgetError, match="dataset must be a text"):
            ledger.history(dataset)
    for entry in (2**70, [1], "1", None):
        with pytest.raises(BudgetError, match="an entry to name must be a charge"):
            ledger.record_release(entry, "f00d")
    for head in (b"1:x", 5, ["1:x"]):
        with pytest.raises(LedgerCorruptError, match="must read 'number:hash'"):
            ledger.verify(head)
    assert ledger.verify() == 1
