"""The whole audit as one Markdown table: every clean path holds, every broken mechanism is caught."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpbn.audit.blackbox import Verdict, audit, audit_profile, discrete_gaussian_profile
from dpbn.audit.subjects import (
    ONE_MORE,
    ROWS,
    STRUCTURE,
    broken_subjects,
    clean_subjects,
    gaussian_draws,
)
from dpbn.learning import learn


@dataclass(frozen=True)
class Line:
    """One audited mechanism and whether it came out as it must."""

    name: str
    verdict: Verdict
    expected: str  # "holds" or "caught"
    least_tightness: float = 0.0

    @property
    def passed(self) -> bool:
        if self.expected == "caught":
            return self.verdict.caught
        return not self.verdict.caught and self.verdict.tightness >= self.least_tightness

    @property
    def row(self) -> str:
        verdict = self.verdict
        outcome = "caught" if verdict.caught else "holds"
        mark = "" if self.passed else f" **must be {self.expected}**"
        figures = f"{verdict.runs} | {verdict.promised:.4g} | {verdict.lower:.4g} | {verdict.tightness:.3f}"
        return f"| {self.name} | {figures} | {outcome}{mark} | {verdict.event} |"


HEADER = (
    "| mechanism | runs on each table | promised | proven at least | ratio | outcome | event |\n"
    "|---|---|---|---|---|---|---|"
)


WHOLE = (("uniform", 0.0), ("icml2020", 0.0), ("optimized", 0.0), ("optimized", 1e-6))  # method, delta
GAUSSIAN_SCALE = 1.5
GAUSSIAN = ((GAUSSIAN_SCALE, 0.2), (GAUSSIAN_SCALE, 0.6), (GAUSSIAN_SCALE / 1.2, 0.2))  # true scale, epsilon


def planned(alarms: int = 100) -> int:
    """How many `lines` there will be."""
    return len(clean_subjects()) + len(GAUSSIAN) + len(broken_subjects()) + len(WHOLE) + bool(alarms)


def whole_learn(method: str, **options: Any) -> Callable[[pd.DataFrame], Any]:
    """All of `learn`: labels, shapes, errors and every number of the release count as output."""

    def release(table: pd.DataFrame) -> Any:
        made = learn(table, STRUCTURE, 1.0, options.get("delta", 0.0), method=method)
        return {
            "guarantee": repr(made.guarantee),
            "public": repr((made.method, made.private, made.on_unknown, sorted(made.options), made.library)),
            "measured": {f"{m.stage} {m.names} {m.mechanism}": m.values for m in made.measurements},
            "learned": {node: made.network.cpt(node) for node in made.network.nodes},
        }

    return release


def lines(
    runs: int = 200_000, *, clean_runs: int | None = None, learn_runs: int = 1_000, alarms: int = 100
) -> Iterator[Line]:
    """Audit everything, one line after the other. `runs` is for the single family; costlier paths take fewer."""
    pilot = max(500, runs // 10)
    for number, subject in enumerate(clean_subjects()):
        count = clean_runs or (runs if number < 2 else max(1000, runs // 4))
        first = min(pilot, max(500, count // 2))
        verdict = audit(
            subject.draws, ROWS, subject.neighbour, epsilon=subject.epsilon, runs=count, pilot=first, many=True
        )
        yield Line(subject.name, verdict, "holds", 0.93 if number == 0 and count >= 200_000 else 0.0)
    yield from _gaussian_lines(max(1000, clean_runs or runs // 2), min(pilot, clean_runs or pilot))
    for subject in broken_subjects():
        verdict = audit(
            subject.draws, ROWS, subject.neighbour, epsilon=subject.epsilon, runs=runs, pilot=pilot, many=True
        )
        yield Line(f"broken: {subject.name}", verdict, "caught")
    for method, delta in WHOLE:
        whole, pilot = whole_learn(method, delta=delta), learn_runs // 4
        verdict = audit(whole, ROWS, ONE_MORE, epsilon=1.0, delta=delta, runs=learn_runs, pilot=pilot)
        yield Line(f"whole of learn, {method}{f', delta {delta:g}' if delta else ''}", verdict, "holds")
    if alarms:
        yield _false_alarms(alarms)


def _gaussian_lines(runs: int, pilot: int) -> Iterator[Line]:
    scale = GAUSSIAN_SCALE
    for true_scale, epsilon in GAUSSIAN:
        verdict = audit_profile(
            gaussian_draws(true_scale),
            ROWS,
            ONE_MORE,
            epsilon=epsilon,
            profile=discrete_gaussian_profile(scale),
            runs=runs,
            pilot=pilot,
            many=True,
        )
        name = f"discrete Gaussian, delta at epsilon {epsilon}"
        if true_scale == scale:
            yield Line(name, verdict, "holds")
        else:
            yield Line(f"broken: scale / 1.2, {name}", verdict, "caught")


def _false_alarms(audits: int) -> Line:
    """Many short clean audits; the worst is shown."""
    subject = clean_subjects()[0]
    verdicts = [
        audit(subject.draws, ROWS, subject.neighbour, epsilon=1.0, runs=1000, pilot=500, many=True)
        for _ in range(audits)
    ]
    caught = sum(verdict.caught for verdict in verdicts)
    worst = max(verdicts, key=lambda verdict: verdict.lower)
    return Line(f"{audits} short clean audits, {caught} false alarms, the worst", worst, "holds")


def report(runs: int = 200_000, **options: Any) -> bool:
    """Print the table line by line; True if every line came out as it must."""
    print(HEADER, flush=True)
    passed, start = True, time.monotonic()
    for line in lines(runs, **options):
        print(line.row, flush=True)
        passed &= line.passed
    print(f"\n{'All as it must be' if passed else 'FAILED'}; {time.monotonic() - start:.0f} s.")
    return passed
