"""The whole audit as one Markdown table: every clean path holds, every broken mechanism is caught."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from dpbn.audit.blackbox import Verdict, audit, audit_profile, discrete_gaussian_profile, summed_profile
from dpbn.audit.broken import broken_learn, broken_subjects
from dpbn.audit.subjects import (
    EPSILON,
    ONE_MORE,
    ROWS,
    Subject,
    clean_subjects,
    delta_plan,
    independent,
    learn_subjects,
    noisy_family,
    sliced,
    whole_learn,
)
from dpbn.errors import extra
from dpbn.measurement import Request
from dpbn.privacy.guarantee import Budget

HEADER = (
    "| mechanism | runs on each table | promised | proven at least | ratio | outcome | event |\n"
    "|---|---|---|---|---|---|---|"
)
Law = tuple[str, float, int]  # mechanism, scale, draws
GAUSSIAN: Law = ("gaussian", 1.5, 1)
SUMMED: Law = ("summed", 1.0, 2)
FULL, FULL_LEARN = 200_000, 20_000  # runs at which the floors below are asked for
# subject: of the runs asked for, the tightness that a full run must reach, and of the clean audits for false alarms
MEASURED = {
    "one family, Laplace": (1.0, 0.93, 0.1),
    "one family, Laplace, in slices": (5.0, 0.95, 0.34),
    "one family, replace": (0.25, 0.7, 0.1),
    "one family, sampled rows": (0.25, 0.8, 0.06),
    "one family, thinned table": (0.25, 0.8, 0.06),
    "two tables at half the budget": (0.25, 0.7, 0.06),
    "tables of uniform": (0.25, 0.7, 0.06),
    "coarse, then refined": (0.1, 0.75, 0.03),
    "joint noise, in slices": (1.0, 0.85, 0.06),
    "joint noise, no common variable": (0.25, 0.75, 0.03),
    "a look at two tables": (0.25, 0.9, 0.06),
}
LEARNED = {
    "uniform": (1.0, 0.5, 0.03),
    "icml2020": (1.0, 0.5, 0.015),
    "optimized": (1.0, 0.8, 0.02),
    "optimized, delta 1e-6": (0.5, 0.8, 0.0),
    "optimized, noise refined in stages": (0.4, 0.3, 0.0),
    "optimized, noise drawn together": (0.5, 0.6, 0.0),
    "uniform, a record of another kind": (1.0, 0.3, 0.0),
    "uniform, a person with five records": (1.0, 0.5, 0.0),
}


@dataclass(frozen=True)
class Line:
    """One audited mechanism and whether it came out as it must; of several audits the worst is shown."""

    name: str
    verdict: Verdict
    expected: str  # "holds" or "caught"
    least_tightness: float = 0.0
    audits: int = 1

    @property
    def passed(self) -> bool:
        if self.expected == "caught":
            return self.verdict.caught
        return not self.verdict.caught and self.verdict.tightness >= self.least_tightness

    @property
    def row(self) -> str:
        verdict = self.verdict
        outcome = "caught" if verdict.caught else "holds"
        floor = f", at least {self.least_tightness} of it" if self.least_tightness else ""
        mark = "" if self.passed else f" **must be {self.expected}{floor}**"
        figures = f"{verdict.runs} | {verdict.promised:.4g} | {verdict.lower:.4g} | {verdict.tightness:.3f}"
        return f"| {self.name} | {figures} | {outcome}{mark} | {verdict.event} |"


@dataclass(frozen=True)
class Task:
    """A line to be; `floor` is the tightness it must reach."""

    name: str
    verdict: Callable[[], Verdict]
    expected: str = "holds"
    floor: float = 0.0
    audits: int = 1

    def line(self) -> Line:
        worst = max((self.verdict() for _ in range(self.audits)), key=lambda verdict: verdict.lower / verdict.promised)
        name = f"{self.audits} clean audits, the worst: {self.name}" if self.audits > 1 else self.name
        return Line(name, worst, self.expected, self.floor, self.audits)


def tasks(runs: int = FULL, learn_runs: int = FULL_LEARN, alarms: int = 100) -> list[Task]:
    """Everything to audit. `runs` is for the single family, costlier paths take fewer; floors hold at full size."""
    full, full_learn = runs >= FULL, learn_runs >= FULL_LEARN
    clean, learned, made = clean_subjects(), learn_subjects(), []
    for subject in clean:
        part, floor, _ = MEASURED[subject.name]
        verdict = partial(_verdict, subject, max(500, int(runs * part)))
        made.append(Task(subject.name, verdict, floor=floor if full else 0.0))
    made += _delta_tasks(max(1000, runs // 2), 0.6 if full else 0.0)
    for subject in learned:
        part, floor, _ = LEARNED[subject.name]
        verdict = partial(_verdict, subject, max(10, int(learn_runs * part)))
        made.append(Task(f"whole of learn, {subject.name}", verdict, floor=floor if full_learn else 0.0))
    staged = max(10, learn_runs * 2 // 5)
    made += _delta_learn(staged)
    made += [
        Task(f"broken: {subject.name}", partial(_verdict, subject, 5 * runs), "caught") for subject in broken_subjects()
    ]
    subject = broken_learn()
    made.append(Task(f"broken: {subject.name}", partial(_verdict, subject, max(2000, staged)), "caught"))
    return made + _alarm_tasks(alarms, max(300, runs // 40), [*clean, *learned])


def _alarm_tasks(alarms: int, runs: int, subjects: Sequence[Subject]) -> list[Task]:
    """At least `alarms` clean audits over all kinds, most of them where a release costs least; 0 may be caught."""
    made = []
    for subject in subjects:
        part, _, share = (MEASURED | LEARNED)[subject.name]
        verdict = partial(_verdict, subject, 4 * runs if part > 1 else runs)
        made.append(Task(subject.name, verdict, audits=math.ceil(alarms * share)))
    for name, law in ("discrete Gaussian", GAUSSIAN), ("summed", SUMMED):
        verdict = partial(_profile, law, law, 0.2, 4 * runs)
        made.append(Task(f"one family, {name}", verdict, audits=math.ceil(alarms * 0.06)))
    return [task for task in made if task.audits]


def _verdict(subject: Subject, runs: int) -> Verdict:
    return audit(
        subject.draws,
        subject.table,
        subject.neighbour,
        epsilon=subject.epsilon,
        delta=subject.delta,
        runs=runs,
        pilot=max(10, runs // (10 if runs >= 200_000 else 3)),
        many=True,
    )


def _profile(drawn: Law, claimed: Law, epsilon: float, runs: int) -> Verdict:
    """Delta at `epsilon` of one family with the noise `drawn`, against the exact one of the noise claimed."""
    tables = noisy_family(*drawn), ROWS, ONE_MORE
    profile, pilot = _exact(*claimed), max(500, runs // 10)
    return audit_profile(*tables, epsilon=epsilon, profile=profile, runs=runs, pilot=pilot)


def _delta_tasks(runs: int, floor: float) -> list[Task]:
    """Noise with delta against its exact delta(epsilon): one family, and what `optimized` plans at 1e-6."""
    made = []
    for kind, law, far, broken, less in (
        ("discrete Gaussian", GAUSSIAN, 0.6, "scale / 1.2", ("gaussian", 1.25, 1)),
        ("summed", SUMMED, 0.4, "a draw less", ("laplace", 1.0, 1)),
    ):
        name = f"{kind}, delta at epsilon"
        made += [
            Task(f"{name} 0.2", partial(_profile, law, law, 0.2, runs), floor=floor),
            Task(f"{name} {far}", partial(_profile, law, law, far, runs), floor=floor * 0.5),
            Task(f"broken: {broken}, {name} 0.2", partial(_profile, less, law, 0.2, runs), "caught"),
        ]
    name = "tables of optimized, delta 1e-6: 18 summed, delta at epsilon 0"
    return [*made, Task(name, partial(_planned, 18, 1e-6, runs))]


def _planned(tables: int, delta: float, runs: int) -> Verdict:
    """The measurements `optimized` makes with noise apart on independent variables, without the estimate."""
    structure, table, neighbour = independent(tables)
    asked = delta_plan(tables, 2, delta)
    draws = sliced(structure, asked, Budget(EPSILON, delta))
    promised, pilot = _promised(asked), max(500, runs // 2)
    return audit_profile(draws, table, neighbour, epsilon=0.0, profile=promised, runs=runs, pilot=pilot)


def _delta_learn(runs: int) -> list[Task]:
    """The whole of `learn` where it draws noise with delta, against the exact delta(epsilon) of its scales."""
    return [
        Task(
            f"whole of learn, optimized, delta {delta:g}: {tables} {name}, delta at epsilon 0",
            partial(_learn_profile, tables, states, delta, runs),
        )
        for name, tables, states, delta in (("discrete Gaussian", 4, 2, 0.1), ("summed", 3, 4, 0.03))
    ]


def _learn_profile(tables: int, states: int, delta: float, runs: int) -> Verdict:
    structure, table, neighbour = independent(tables, states)
    promised, pilot = _promised(delta_plan(tables, states, delta)), max(50, runs // 2)
    draws = whole_learn("optimized", structure, delta=delta)
    return audit_profile(draws, table, neighbour, epsilon=0.0, profile=promised, runs=runs, pilot=pilot)


def _promised(asked: Sequence[Request]) -> Callable[[float], float]:
    return _exact(asked[0].mechanism, asked[0].scale, asked[0].draws, len(asked))


def _exact(mechanism: str, scale: float, draws: int, tables: int = 1) -> Callable[[float], float]:
    """Delta(epsilon) of so many tables of one scale."""
    if mechanism == "gaussian":
        return discrete_gaussian_profile(scale, tables)
    return summed_profile(scale, draws, tables)


def lines(
    runs: int = FULL, *, learn_runs: int = FULL_LEARN, alarms: int = 100, processes: int | None = None
) -> Iterator[Line]:
    """Audit everything, `processes` at a time (all cores by default); a line as each is done, in their order."""
    with extra("scipy", "audit"):  # needed after the draws only, which take minutes
        import scipy.special  # noqa: F401
    size = (runs, learn_runs, alarms)
    work = tasks(*size)
    processes = processes or os.cpu_count() or 1
    if processes == 1:
        yield from (task.line() for task in work)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(_line, size), range(len(work)))


def _line(size: tuple[int, int, int], index: int) -> Line:
    """A line in a process of its own, which makes the same tasks again: closures do not travel."""
    return tasks(*size)[index].line()
