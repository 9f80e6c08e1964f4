"""Run a grid of experiments: resumable, parallel, every method on the same data and the same questions.

The data of a run depend on (seed, network, rows, run) only, the questions on the same; the noise also on
method and epsilon. A method that cannot run at a size leaves a row whose `refusal` says why.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dpbn.errors import InputError, MissingExtraError, TooLargeError
from dpbn.evaluate.methods import method
from dpbn.evaluate.metrics import MEASURES, Reference
from dpbn.evaluate.questions import derived_seed, draw_questions
from dpbn.evaluate.results import Row, check_path, key, read_rows, write_rows
from dpbn.formats import load_network
from dpbn.learners.exact import learn_exact
from dpbn.network import BayesianNetwork
from dpbn.privacy import accounting
from dpbn.sampling import sample_codes
from dpbn.uncertainty.simulate import SimulatedSource

REFERENCES = ("true", "exact")
SAMPLE = ("network", "rows", "run", "queries", "against", "seed")  # what the rows of one task share
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every combination of these; `networks` are bundled names or paths."""

    networks: tuple[str, ...] = ("asia", "sachs", "child", "alarm")
    methods: tuple[str, ...] = ("uniform", "icml2020", "optimized")
    epsilons: tuple[float, ...] = (1.0, 1.5, 2.0, 2.5, 3.0)
    rows: tuple[int, ...] = (10_000,)
    runs: int = 10
    queries: int = 20
    against: str = "true"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("networks", "methods", "epsilons", "rows"):
            values = getattr(self, name)
            if isinstance(values, str) or not tuple(values):
                raise InputError(f"{name} of a grid must be a non-empty sequence, got {values!r}")
            object.__setattr__(self, name, tuple(values))
        for name in self.methods:
            method(name)
        if any(not 0 < float(epsilon) < float("inf") for epsilon in self.epsilons):
            raise InputError(f"epsilons of a grid must be finite and above 0, got {self.epsilons}")
        if any(isinstance(rows, bool) or int(rows) != rows or rows < 1 for rows in self.rows):
            raise InputError(f"rows of a grid must be whole numbers >= 1, got {self.rows}")
        if self.runs < 1 or self.queries < 1:
            raise InputError(f"runs and queries must be at least 1, got {self.runs} and {self.queries}")
        if self.against not in REFERENCES:
            raise InputError(f"against must be one of {REFERENCES}, got {self.against!r}")

    def cells(self) -> Iterator[Row]:
        """The key of every row, runs outermost, so that a stopped experiment is complete for fewer runs."""
        for run, rows, network in itertools.product(range(self.runs), self.rows, self.networks):
            for name, epsilon in itertools.product(self.methods, self.epsilons):
                yield {
                    "network": network,
                    "method": name,
                    "epsilon": float(epsilon),
                    "rows": int(rows),
                    "run": run,
                    "queries": self.queries,
                    "against": self.against,
                    "seed": self.seed,
                }


@dataclass(frozen=True)
class Task:
    """What one worker does in one go: some methods and epsilons on one sample of data."""

    network: str
    rows: int
    run: int
    queries: int
    against: str
    seed: int
    wanted: tuple[tuple[str, float], ...]


def run(
    grids: Grid | Sequence[Grid],
    output: str | Path | None = None,
    *,
    processes: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Row]:
    """All rows of `grids`. With `output`, rows already there are kept and each finished task is saved at once."""
    grids = (grids,) if isinstance(grids, Grid) else tuple(grids)
    if processes < 1:
        raise InputError(f"processes must be at least 1, got {processes}")
    wanted = {key(row): row for grid in grids for row in grid.cells()}
    known = {key(row): row for row in (read_rows(check_path(output)) if output is not None else ())}
    missing = [  # a refusal is tried again: a package may have come since
        row for identity, row in wanted.items() if identity not in known or known[identity]["refusal"]
    ]
    tasks = _tasks(missing)
    done = len(wanted) - len(missing)
    progress(done, len(wanted))
    for rows in _perform(tasks, processes):
        known.update((key(row), row) for row in rows)
        done += len(rows)
        if output is not None:
            write_rows(output, known.values())
        progress(done, len(wanted))
    return [known[identity] for identity in wanted]


def _tasks(missing: Iterable[Row]) -> list[Task]:
    """One task per sample of data."""
    groups: dict[tuple[Any, ...], list[tuple[str, float]]] = {}
    for row in missing:
        groups.setdefault(tuple(row[name] for name in SAMPLE), []).append((row["method"], row["epsilon"]))
    return [Task(**dict(zip(SAMPLE, shared, strict=True)), wanted=tuple(pairs)) for shared, pairs in groups.items()]


def _perform(tasks: Sequence[Task], processes: int) -> Iterator[list[Row]]:
    if processes == 1 or len(tasks) < 2:
        yield from map(perform, tasks)
        return
    with _one_thread_each(), ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[list[Row]]] = {pool.submit(perform, task) for task in tasks}
        try:
            while waiting:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers inherit this: as many processes as cores, one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def perform(task: Task) -> list[Row]:
    """Draw data and questions once, then learn and measure for every method and epsilon wanted."""
    accounting.laplace_scale(1.0, 1)  # loads OpenDP before any clock runs
    truth = load_network(task.network)
    place = (task.seed, task.network, task.rows, task.run)
    data_seed, question_seed = derived_seed("data", *place), derived_seed("questions", *place)
    codes = sample_codes(truth, task.rows, data_seed)
    source = SimulatedSource(truth.structure.schema, codes)
    target = truth
    if task.against == "exact":
        target = BayesianNetwork(truth.structure, learn_exact(truth.structure, source, prior={}, public_cpts={}).cpts)
    reference = Reference(target, draw_questions(truth.structure, task.queries, question_seed, codes))
    shared = {
        **{name: getattr(task, name) for name in SAMPLE},
        "data_seed": data_seed,
        "question_seed": question_seed,
    }
    return [
        {**shared, **_one(reference, source, name, epsilon, derived_seed("noise", *place, name, epsilon))}
        for name, epsilon in task.wanted
    ]


def _one(reference: Reference, source: SimulatedSource, name: str, epsilon: float, noise_seed: int) -> Row:
    chosen = method(name)
    structure = reference.network.structure
    row: Row = {"method": name, "epsilon": epsilon, "delta": chosen.delta, "noise_seed": noise_seed, "refusal": ""}
    started = time.perf_counter()
    try:
        cpts: Mapping[str, Any] = chosen.learn(structure, source, epsilon, noise_seed)
    except (TooLargeError, MissingExtraError) as refusal:
        return {**row, "seconds": float("nan"), **dict.fromkeys(MEASURES, float("nan")), "refusal": str(refusal)}
    row["seconds"] = time.perf_counter() - started
    return {**row, **reference.measure(BayesianNetwork(structure, cpts))}
