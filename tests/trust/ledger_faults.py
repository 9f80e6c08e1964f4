"""Kills, races and failing disks for the ledger; short in the tests, long in benchmarks/ledger.py."""

from __future__ import annotations

import os
import random
import resource
import signal
import threading
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from dpbn.errors import PrivacyError
from dpbn.privacy.ledger import Ledger


def child_of(work) -> int:
    """Run `work` in a forked process; it never comes back into this one."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def kills(path: Path, rounds: int, seed: int = 0) -> dict[str, int]:
    """SIGKILL a spending process `rounds` times at random points; what it had reported must always be there."""
    dice = random.Random(seed)
    ledger = Ledger(path)
    ledger.open_dataset("ward", 10**6)
    reported = committed = under = mid = 0
    for number in range(rounds):
        reader, writer = os.pipe()

        def spend(writer: int = writer) -> None:
            while True:
                os.write(writer, b"?")  # about to charge
                ledger.charge("ward", 1)
                os.write(writer, b"!")  # charged, and told

        child = child_of(spend)
        os.close(writer)
        told = os.read(reader, 1)
        while (
            number % 3 == 0 and b"!" not in told
        ):  # after a charge; in other rounds anywhere, if the disk is slow before
            piece = os.read(reader, 1)
            assert piece, "the spending process ended by itself"
            told += piece
        time.sleep(dice.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while piece := os.read(reader, 1 << 16):
            told += piece
        os.close(reader)
        reported += told.count(b"!")
        spent = int(ledger.remaining("ward").spent_epsilon)
        under += spent < reported
        mid += spent > reported  # killed between commit and report: counted, never told
        reported = committed = spent
        if number % 50 == 49:
            ledger.verify()
    again = Ledger(path)  # replays the whole chain
    assert again.remaining("ward").spent_epsilon == committed
    return {"kills": rounds, "charges": committed, "under_counted": under, "killed_between_commit_and_report": mid}


def _read_on(path: Path) -> None:
    """Close handles of the file and of those beside it, without end: each takes this process's POSIX locks with it."""
    while True:
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{path}{ending}").read_bytes()


def race(path: Path, processes: int, attempts: int, grants: int, *, copied: bool = False) -> dict[str, int]:
    """`processes` x `attempts` for a cap that admits `grants` charges: exactly so many are granted.

    Also where each of the processes copies the ledger all the while.
    """
    ledger = Ledger(path)
    ledger.open_dataset("ward", Fraction(grants, 1000))
    reader, writer = os.pipe()

    def spend() -> None:
        if copied:
            threading.Thread(target=_read_on, args=(path,), daemon=True).start()
        granted = refused = broken = 0
        for _ in range(attempts):
            try:
                ledger.charge("ward", "0.001")
                granted += 1
            except PrivacyError as error:
                refused += "at most what is left" in str(error)
                broken += "at most what is left" not in str(error)
        os.write(writer, f"{granted} {refused} {broken}\n".encode())

    children = [child_of(spend) for _ in range(processes)]
    codes = [os.waitpid(child, 0)[1] for child in children]
    os.close(writer)
    told = b""
    while piece := os.read(reader, 1 << 16):
        told += piece
    lines = [[int(word) for word in line.split()] for line in told.splitlines()]
    granted, refused, broken = (sum(line[place] for line in lines) for place in range(3))
    assert not any(codes), codes
    left = ledger.remaining("ward")
    return {
        "processes": processes, "attempts": processes * attempts, "cap_admits": grants, "granted": granted,
        "refused": refused, "other_errors": broken, "spent_over_cap": int(left.epsilon < 0),
        "entries": Ledger(path).verify(),
    }  # fmt: skip


def forks(path: Path, rounds: int) -> dict[str, int]:
    """Threads charge while their process forks others that charge too, each through the same object and a new one."""
    ledger, granted, stop = Ledger(path), [0, 0], threading.Event()
    ledger.open_dataset("ward", 10**6)

    def spend(place: int) -> None:
        while not stop.is_set():
            ledger.charge("ward", 1)
            granted[place] += 1

    def spend_once(mine: Ledger | None) -> None:
        signal.alarm(30)
        (mine or Ledger(path)).charge("ward", 1)

    threads = [threading.Thread(target=spend, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    codes = []
    for _ in range(rounds):
        children = [child_of(lambda mine=mine: spend_once(mine)) for mine in (ledger, None)]
        codes += [os.waitpid(child, 0)[1] for child in children]
    stop.set()
    for thread in threads:
        thread.join()
    told = sum(granted) + codes.count(0)
    return {"forked": 2 * rounds, "charged": codes.count(0), "told": told, "entries": Ledger(path).verify() - 1}


def full_disk(path: Path, extra_bytes: int) -> tuple[int, int]:
    """Charges told as granted, and charges in the ledger afterwards, if no file may grow by more than `extra_bytes`."""
    ledger = Ledger(path)
    ledger.open_dataset("ward", 10**6)
    ledger.charge("ward", 1)
    largest = max(file.stat().st_size for file in path.parent.glob(path.name + "*"))
    reader, writer = os.pipe()

    def spend() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + extra_bytes, largest + extra_bytes))
        for _ in range(200):
            try:
                ledger.charge("ward", 1)
                os.write(writer, b"!")
            except PrivacyError:
                os.write(writer, b"x")

    child = child_of(spend)
    assert os.waitpid(child, 0)[1] == 0
    os.close(writer)
    told = b""
    while piece := os.read(reader, 1 << 16):
        told += piece
    os.close(reader)
    assert b"x" in told, "the limit must have been met"
    ledger.charge("ward", 1)  # with room again, it goes on
    return told.count(b"!") + 2, int(Ledger(path).remaining("ward").spent_epsilon)
