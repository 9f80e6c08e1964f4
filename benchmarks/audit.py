"""The audit with its figures kept: `python benchmarks/audit.py [runs] [runs of learn] [clean audits] [processes]`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = str(ROOT / "src")  # for the processes that do the work


def main(runs: int = 200_000, learn_runs: int = 20_000, alarms: int = 100, processes: int | None = None) -> None:
    from benchmarks.figures import record
    from dpbn.audit.suite import HEADER, lines

    start = time.monotonic()
    print(HEADER, flush=True)
    found = []
    for line in lines(runs, learn_runs=learn_runs, alarms=alarms, processes=processes):
        print(line.row, f"<!-- {time.monotonic() - start:.0f} s -->", flush=True)
        found.append(line)
    clean = [line for line in found if line.expected == "holds"]
    broken = [line for line in found if line.expected == "caught"]
    family = [{"runs": line.verdict.runs, "tightness": round(line.verdict.tightness, 4)} for line in found[:2]]
    failed = [line.name for line in found if not line.passed]
    figures = {
        "rows": [line.row for line in found],
        "clean_audits": sum(line.audits for line in clean),
        "false_alarms": sum(line.verdict.caught for line in clean),
        "broken": len(broken),
        "caught": sum(line.verdict.caught for line in broken),
        "family": family,
        "failed": failed,
        "seconds": round(time.monotonic() - start),
    }
    record("audit", figures)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:5]))
