"""10^4 fault cases with canaries, through library and command: `python benchmarks/leaks.py [first] [last]`.

Case numbers are seeds: the same number is the same case. One in a hundred goes through Spark.
A part adds to the figures of the parts before it.
"""

from __future__ import annotations

import collections
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]


STEP = 250  # figures are kept after so many cases: a stopped run has counted what it did


def main(first: int, last: int) -> None:
    for start in range(first, last, STEP):
        part(start, min(last, start + STEP), fresh=start == 0)


def part(first: int, last: int, fresh: bool) -> None:
    from benchmarks.figures import FILE, record
    from tests.trust.canary import command_case, library_case

    kinds: collections.Counter[str] = collections.Counter()
    hits = untyped = 0
    for number in range(first, last):
        with tempfile.TemporaryDirectory() as folder:
            if number % 100 == 50:
                case = library_case(number, Path(folder), "spark")
            else:
                case = (command_case if number % 10 == 9 else library_case)(number, Path(folder))
        found, odd = case.found(), case.untyped()
        hits += bool(found)
        untyped += bool(odd)
        kinds[type(case.error).__name__ if case.error else "released"] += 1
        if found or odd:
            print(case.name, found[:2], odd, str(case.error)[:200], flush=True)
    known = json.loads(FILE.read_text()).get("leaks", {}) if FILE.exists() and not fresh else {}
    figures = {
        "cases": known.get("cases", 0) + last - first,
        "canaries_found": known.get("canaries_found", 0) + hits,
        "untyped_errors": known.get("untyped_errors", 0) + untyped,
        "through_spark": known.get("through_spark", 0) + sum(number % 100 == 50 for number in range(first, last)),
        "outcomes": dict(sorted((kinds + collections.Counter(known.get("outcomes", {}))).items())),
    }
    record("leaks", figures)
    if hits or untyped:
        sys.exit(1)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3] or (0, 10_000)))
