"""The ledger under 1,000 kills, 16 x 10^4 racing attempts and a disk that fills: `python benchmarks/ledger.py`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]


def main(rounds: int, processes: int, attempts: int) -> None:
    from benchmarks.figures import record
    from tests.trust.disk_faults import survey
    from tests.trust.ledger_faults import full_disk, kills, race

    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        killed = {**kills(Path(folder) / "kills.db", rounds), "seconds": round(time.monotonic() - start)}
        print(killed, flush=True)
        start = time.monotonic()
        raced = race(Path(folder) / "race.db", processes, attempts, grants=1000)
        raced["seconds"] = round(time.monotonic() - start)
        print(raced, flush=True)
        limits = range(0, 40_000, 400)
        lost = 0
        for extra in limits:
            told, kept = full_disk(Path(folder) / f"full{extra}.db", extra)
            lost += kept < told
    faults = survey(ROOT / "src")
    print(faults, flush=True)
    disk = {"limits": len(limits), "charges_lost": lost}
    record("ledger", {"kills": killed, "race": raced, "full_disk": disk, "every_kth_call": faults})
    good = not killed["under_counted"] and raced["granted"] == 1000 and not raced["other_errors"] and not lost
    good = good and not faults["wrong"]
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:4] or (1000, 16, 10_000)))
