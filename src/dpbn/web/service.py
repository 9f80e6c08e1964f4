"""The answers behind the API: one release, asked through four lanes (marginals, joints, error bars, stability)."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpbn.errors import ImpossibleEvidenceError, TooLargeError
from dpbn.inference import Inference
from dpbn.inference.queries import LARGEST_LOG
from dpbn.release import Release
from dpbn.uncertainty.error_bars import PARTS
from dpbn.uncertainty.leaning import WeakRow, leanings
from dpbn.web.limits import Lane, Limits, Memory
from dpbn.web.question import Question
from dpbn.web.view import probabilities, release_view

ANSWER_CELLS = 100_000  # of a joint table, some 2 MB of JSON: every connection may be waiting for one
COMPARED_CELLS = 10_000  # nine numbers each in the answer, and five hundred while its interval is computed
COMPARED_WORK = 500_000  # cells on the way to one of the hundreds of joint tables behind such an interval: seconds


class Service:
    """Questions in, JSON out. Each lane has its own engine and thread, so slow questions never hold up quick ones."""

    def __init__(self, release: Release, name: str, limits: Limits):
        self.release = release
        slow = dict.fromkeys(("joints", "bars", "stability"), limits.waiting_slow)
        self._lanes = {name: Lane(name, waiting) for name, waiting in {"marginals": limits.waiting, **slow}.items()}
        self._engines = {name: Inference(release) for name in self._lanes}
        self._memory = Memory(limits.remembered_bytes)
        self.view = encode(release_view(release, self._engines["marginals"], name))
        self._at_once = self._seconds() < limits.at_once_seconds

    async def answer(self, kind: str, question: Question) -> bytes:
        """The JSON answer to a question of one kind (a key of ANSWERS)."""
        lane, compute = ANSWERS[kind]
        key = hashlib.sha256(repr((kind, question)).encode()).digest()
        if lane == "marginals" and self._at_once:
            known = self._memory.recall(key)
            return known or self._memory.store(key, encode(compute(self._engines["marginals"], question)))
        engine, run = self._engines[lane], self._lanes[lane].run
        return await self._memory.get(key, lambda: run(lambda: encode(compute(engine, question))))

    async def prepare_bars(self) -> None:
        """Draw the plausible networks behind error bars, then those behind stability, before anyone asks."""
        if self.release.measurements:
            await self.answer("intervals", Question())
            network = self.release.network
            root = next(node for node in network.nodes if not network.parents(node))  # the quickest to ask about
            await self.answer("stability", Question(assignment=((root, network.states(root)[0]),)))

    def _seconds(self) -> float:
        """How long one evidence set takes once compiled: the best of three."""
        node = self.release.network.nodes[0]
        soft = Question(soft=((node, (1.0,) * len(self.release.network.states(node))),))
        times = []
        for _ in range(3):
            start = time.perf_counter()
            _posteriors(self._engines["marginals"], soft)
            times.append(time.perf_counter() - start)
        return min(times)

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()


def encode(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _posteriors(engine: Inference, question: Question) -> dict[str, Any]:
    posteriors = {node: probabilities(values) for node, values in engine.posteriors(question.findings).items()}
    return {**_probability(engine, question), "posteriors": posteriors}


def _probability(engine: Inference, question: Question) -> dict[str, Any]:
    log = engine.log_probability(question.findings)
    probability = math.exp(log) if log < LARGEST_LOG else None
    return {"probability": probability, "log_probability": log if math.isfinite(log) else None}


def _query(engine: Inference, question: Question) -> dict[str, Any]:
    found = engine.query(list(question.targets), question.findings)
    _check_cells("an answer", found.values.size, ANSWER_CELLS)
    return {
        "variables": list(found.variables),
        "states": [list(states) for states in found.states],
        "values": found.values.tolist(),
    }


def _check_cells(subject: str, cells: int, most: int) -> None:
    if cells > most:
        raise TooLargeError(f"{subject} must have at most {most:,} cells, got {cells:,}: ask for fewer targets")


def _compare(engine: Inference, question: Question) -> dict[str, Any]:
    """Both answers and their difference, evidence minus other, with its own interval where the release has one."""
    targets, other = list(question.targets), {} if question.other is None else question.other.findings
    if len(targets) > 1:  # what one node takes is no more than the error bars of every node
        cells = max(engine.plan(targets, side).cells for side in (question.findings, other))
        _check_cells("the tables on the way to a comparison", cells, COMPARED_WORK)
    try:
        found = engine.compare(targets, question.findings, other)
    except ImpossibleEvidenceError:
        side = "evidence" if engine.log_probability(question.findings) == -math.inf else "other"
        raise ImpossibleEvidenceError(f"{side} must be possible under the network, got probability 0") from None
    _check_cells("a comparison", found.values.size, COMPARED_CELLS)
    noisy = found.bars is not None
    intervals = {part: np.stack(found.interval(question.level, part), axis=-1).tolist() for part in PARTS if noisy}
    weak = [_row(row) for row in found.weak_rows]
    return {**found.to_dict(), "level": question.level, "intervals": intervals or None, "weak_rows": weak}


def _mpe(engine: Inference, question: Question) -> dict[str, Any]:
    return _explained(engine.mpe(question.findings))


def _map(engine: Inference, question: Question) -> dict[str, Any]:
    return _explained(engine.map(list(question.targets), question.findings))


def _explained(found: tuple[dict[str, str], float]) -> dict[str, Any]:
    assignment, probability = found
    return {"assignment": assignment, "probability": min(probability, 1.0)}


def _intervals(engine: Inference, question: Question) -> dict[str, Any]:
    """[low, high] of every state of every node: in total, from privacy noise alone, from sampling alone."""
    intervals = {
        node: {part: np.stack(bars.interval(question.level, part), axis=-1).tolist() for part in PARTS}
        for node, bars in engine.intervals(question.findings).items()
    }
    return {"level": question.level, "intervals": intervals}


def _weak_rows(engine: Inference, question: Question) -> dict[str, Any]:
    """The rows below the noise floor that posteriors lean on, each once, and which of them lie behind which node."""
    engine.posteriors(question.findings)  # refuses unknown names and impossible evidence
    places: dict[WeakRow, int] = {}
    behind = {
        node: {"share": its.share, "rows": [places.setdefault(row, len(places)) for row in its.rows]}
        for node, its in leanings(engine, question.findings).items()
    }
    return {"rows": [_row(row) for row in places], "behind": behind}


def _row(row: WeakRow) -> dict[str, Any]:
    return {"node": row.node, "parents": row.parents, "weight": min(row.weight, 1.0)}


def _stability(engine: Inference, question: Question) -> dict[str, Any]:
    return {"stability": engine.stability(dict(question.assignment), question.findings)}


Compute = Callable[[Inference, Question], dict[str, Any]]

# kind of question -> (lane, how it is answered)
ANSWERS: dict[str, tuple[str, Compute]] = {
    "posteriors": ("marginals", _posteriors),
    "probability": ("marginals", _probability),
    "query": ("joints", _query),
    "compare": ("bars", _compare),
    "mpe": ("joints", _mpe),
    "map": ("joints", _map),
    "intervals": ("bars", _intervals),
    "stability": ("stability", _stability),
    "weak-rows": ("joints", _weak_rows),
}
