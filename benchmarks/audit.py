"""The audit with its figures kept.

python benchmarks/audit.py [runs] [clean runs] [learn runs] [clean audits] [family runs]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]


def main(runs: int, clean_runs: int, learn_runs: int, alarms: int, family_runs: int) -> None:
    from benchmarks.figures import record
    from dpbn.audit import audit
    from dpbn.audit.subjects import ROWS, clean_subjects
    from dpbn.audit.suite import HEADER, Line, lines

    start = time.monotonic()
    family = clean_subjects()[0]
    verdict = audit(
        family.draws, ROWS, family.neighbour, epsilon=1.0, runs=family_runs, pilot=family_runs // 10, many=True
    )
    found = [Line(f"{family.name}, long", verdict, "holds", 0.95 if family_runs >= 500_000 else 0.0)]
    print(HEADER, found[0].row, sep="\n", flush=True)
    for line in lines(runs, clean_runs=clean_runs or None, learn_runs=learn_runs, alarms=alarms):
        print(line.row, flush=True)
        found.append(line)
    broken = [line for line in found if line.expected == "caught"]
    figures = {
        "rows": [line.row for line in found],
        "clean_audits": alarms + sum(line.expected == "holds" for line in found),
        "false_alarms": sum(line.verdict.caught for line in found if line.expected == "holds"),
        "broken": len(broken),
        "caught": sum(line.verdict.caught for line in broken),
        "tightness": round(verdict.tightness, 4),
        "family_runs": family_runs,
        "seconds": round(time.monotonic() - start),
    }
    record("audit", figures)
    sys.exit(0 if all(line.passed for line in found) else 1)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:6] or (200_000, 0, 1_000, 100, 1_000_000)))
