"""Every k-th write, fsync, rename and truncate fails, k = 1, 2, 3, ... until the operation is done without a fault.

Real faults: `faults.c` is preloaded and makes the C library's calls fail, SQLite's and Python's alike. Run as a script
(under LD_PRELOAD) it prints what it saw; `survey` compiles, preloads and runs it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CALLS = ("write", "fsync", "rename", "truncate")
ERRORS = {"full": errno.ENOSPC, "dying": errno.EIO}
MOST = 400


def survey(source: Path, compiler: str = "gcc") -> dict[str, Any]:
    """Compile the faults, run every operation under them, and return the counts."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "faults.so"
        code = Path(__file__).with_name("faults.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, code, "-ldl"], check=True)
        where = {"LD_PRELOAD": str(library), "PYTHONPATH": str(source)}
        run = subprocess.run(
            [sys.executable, __file__, folder],
            env={**os.environ, **where},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def _operations():
    """Per operation, what is made ready before the faults begin, and what is done under them."""
    from dpbn.privacy.ledger import Ledger
    from dpbn.release import load_release

    made = load_release(os.environ["FAULT_RELEASE"])
    return {
        "open": (lambda path: path.with_name("fault-new.db"), lambda path: Ledger(path).open_dataset("ward", 5)),
        "open and charge": (lambda path: path, lambda path: Ledger(path).charge("ward", 1)),
        "charge": (Ledger, lambda ledger: ledger.charge("ward", 1)),
        "charge, and again": (Ledger, _twice),
        "raise": (Ledger, lambda ledger: ledger.raise_cap("ward", 200)),
        "release": (Ledger, lambda ledger: ledger.record_release(2, "x")),
        "open and verify": (lambda path: path, lambda path: Ledger(path).verify()),
        "save": (lambda path: path.with_name("fault-x.json"), made.save),
    }


def _twice(ledger) -> None:
    """The same object goes on after a failed charge, with the disk in order again."""
    try:
        ledger.charge("ward", 1)
    finally:
        ctypes.CDLL(None).fault_arm(-1, 0, 0, 0)
        ledger.charge("ward", 1)


def _child(prepare, operation, path: Path, call: int, at: int, lasting: bool, error: int) -> tuple[str, int]:
    """What came of it (done, refused or other) and how many calls failed."""
    faults = ctypes.CDLL(None)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        from dpbn.errors import DpbnError

        ready = prepare(path)
        faults.fault_arm(call, at, int(lasting), error)
        try:
            operation(ready)
            said = "done"
        except DpbnError:
            said = "refused"
        except BaseException as problem:
            said = f"other: {problem!r}"
        fired = faults.fault_fired()
        faults.fault_arm(-1, 0, 0, 0)
        os.write(writer, f"{fired} {said}".encode())
        os._exit(0)
    os.close(writer)
    told = os.read(reader, 4096).decode()
    os.close(reader)
    os.waitpid(child, 0)
    fired, _, said = told.partition(" ")
    return said, int(fired or 0)


def _afterwards(name: str, said: str, path: Path) -> str | None:
    """What is wrong with what is on disk now, seen without faults."""
    from dpbn.privacy.ledger import Ledger
    from dpbn.release import load_release

    if name == "save":
        saved = path.with_name("fault-x.json")
        if saved.exists():
            load_release(saved)
        elif said == "done":
            return "a release said to be saved is not there"
        others = [other.name for other in path.parent.iterdir() if "fault-x" in other.name and other != saved]
        return f"left behind: {others}" if others else None
    if name == "open":
        again = Ledger(path.with_name("fault-new.db"))
        again.open_dataset("ward", 5)  # as it was asked for, or now
        return None if again.remaining("ward").epsilon == 5 else "another cap"
    ledger = Ledger(path)
    spent = int(ledger.remaining("ward").spent_epsilon)
    least = 1 + (said == "done" and "charge" in name) + (name == "charge, and again")
    most = 1 + ("charge" in name) + (name == "charge, and again")
    if not least <= spent <= most:
        return f"{spent} spent, but {least}..{most} told"
    if name == "raise" and said == "done" and ledger.remaining("ward").cap_epsilon != 200:
        return "a cap said to be raised is not"
    return None


def main(folder: Path) -> None:
    import dpbn

    network = dpbn.load_network("cancer")
    release = folder / "release.json"
    dpbn.learn(network.sample(20, seed=0), network, 1.0, method="uniform", noise=dpbn.InsecureNoise(0)).save(release)
    os.environ["FAULT_RELEASE"] = str(release)
    start = folder / "start"
    start.mkdir()
    child = os.fork()
    if not child:  # SQLite must not be carried over a fork
        ledger = dpbn.Ledger(start / "fault-budget.db")
        ledger.open_dataset("ward", 100)
        ledger.charge("ward", 1)
        ledger.close()
        os._exit(0)
    os.waitpid(child, 0)
    counts = {"cases": 0, "failed_calls": 0, "done": 0, "refused": 0, "wrong": 0}
    problems = []
    for name, (prepare, operation) in _operations().items():
        for call, call_name in enumerate(CALLS):
            for kind, error in ERRORS.items():
                for at in range(1, MOST):
                    place = folder / f"{name}-{call_name}-{kind}-{at}"
                    shutil.copytree(start, place)
                    path = place / "fault-budget.db"
                    said, fired = _child(prepare, operation, path, call, at, kind == "full", error)
                    try:
                        wrong = said if said.startswith("other") else _afterwards(name, said, path)
                    except Exception as problem:
                        wrong = repr(problem)
                    shutil.rmtree(place)
                    counts["cases"] += 1
                    counts["failed_calls"] += fired
                    counts["done" if said == "done" else "refused"] += 1
                    if wrong:
                        counts["wrong"] += 1
                        problems.append(f"{name}, {call_name} {at}, {kind}: {said}: {wrong}")
                    if not fired:
                        break
    print(json.dumps({**counts, "problems": problems}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
