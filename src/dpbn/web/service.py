"""The answers behind the API: one release, asked through four lanes (marginals, joints, error bars, stability)."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from typing import Any

from dpbn.errors import TooLargeError
from dpbn.inference import Inference
from dpbn.inference.queries import LARGEST_LOG
from dpbn.release import Release
from dpbn.web.limits import Lane, Limits, Memory
from dpbn.web.question import Question
from dpbn.web.uncertainty import has_intervals, posterior_intervals, weak_answers
from dpbn.web.view import probabilities, release_view

ANSWER_CELLS = 100_000  # of a joint table, some 2 MB of JSON: every connection may be waiting for one


class Service:
    """Questions in, JSON out. Each lane has its own engine and thread, so slow questions never hold up quick ones."""

    def __init__(self, release: Release, name: str, limits: Limits):
        self.release = release
        self._engines = {lane: Inference(release) for lane in ("marginals", "joints", "bars", "stability")}
        self._lanes = {
            "marginals": Lane("marginals", limits.waiting),
            "joints": Lane("joints", limits.waiting_slow),
            "bars": Lane("bars", limits.waiting_slow),
            "stability": Lane("stability", limits.waiting_slow),
        }
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
        if has_intervals(self.release):
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
    if (cells := found.values.size) > ANSWER_CELLS:
        raise TooLargeError(f"an answer must have at most {ANSWER_CELLS:,} cells, got {cells:,}: ask for fewer targets")
    return {
        "variables": list(found.variables),
        "states": [list(states) for states in found.states],
        "values": found.values.tolist(),
    }


def _mpe(engine: Inference, question: Question) -> dict[str, Any]:
    assignment, probability = engine.mpe(question.findings)
    return {"assignment": assignment, "probability": min(probability, 1.0)}


def _map(engine: Inference, question: Question) -> dict[str, Any]:
    assignment, probability = engine.map(list(question.targets), question.findings)
    return {"assignment": assignment, "probability": min(probability, 1.0)}


def _intervals(engine: Inference, question: Question) -> dict[str, Any]:
    found = posterior_intervals(engine, question.findings, question.level)
    return {"level": question.level, "intervals": found}


def _weak_rows(engine: Inference, question: Question) -> dict[str, Any]:
    evidence = question.findings
    engine.posteriors(evidence)  # refuses unknown names and impossible evidence
    return weak_answers(engine, evidence)


def _stability(engine: Inference, question: Question) -> dict[str, Any]:
    return {"stability": engine.stability(dict(question.assignment), question.findings)}


Compute = Callable[[Inference, Question], dict[str, Any]]

# kind of question -> (lane, how it is answered)
ANSWERS: dict[str, tuple[str, Compute]] = {
    "posteriors": ("marginals", _posteriors),
    "probability": ("marginals", _probability),
    "query": ("joints", _query),
    "mpe": ("joints", _mpe),
    "map": ("joints", _map),
    "intervals": ("bars", _intervals),
    "stability": ("stability", _stability),
    "weak-rows": ("joints", _weak_rows),
}
