"""A question as it arrives: JSON checked for form. Names and states are checked by the inference itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpbn.errors import FormatError, QueryError

_KEYS = {"assignment", "evidence", "level", "other", "soft", "targets"}
_SIDE = {"evidence", "soft"}


@dataclass(frozen=True, slots=True)
class Question:
    """Evidence (one label or number per node), soft evidence (likelihoods per node), and what is asked. Hashable."""

    evidence: tuple[tuple[str, Any], ...] = ()
    soft: tuple[tuple[str, tuple[float, ...]], ...] = ()
    targets: tuple[str, ...] = ()
    level: float = 0.9
    assignment: tuple[tuple[str, str], ...] = ()
    other: Question | None = None  # what to compare with: evidence and soft evidence

    @property
    def findings(self) -> dict[str, Any]:
        """Evidence as `Inference` takes it: a label or number, or one likelihood per state."""
        return {**dict(self.evidence), **{node: list(likelihood) for node, likelihood in self.soft}}


def read_question(body: bytes) -> Question:
    """The question in a JSON body; FormatError if it is not JSON, QueryError if it has the wrong form."""
    try:
        document = json.loads(body, parse_constant=_no_constant) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the body must be JSON, got {type(error).__name__}") from None
    if not isinstance(document, dict):
        raise QueryError(f"a question must be a JSON object, got {type(document).__name__}")
    _known("a question", document, _KEYS)
    return Question(
        *_findings(document),
        _targets(document.get("targets", [])),
        _level(document.get("level", 0.9)),
        _labels("assignment", document.get("assignment", {})),
        _other(document.get("other", {})),
    )


def _known(subject: str, document: Mapping[str, Any], keys: set[str]) -> None:
    unknown = sorted(set(document) - keys)
    if unknown:
        raise QueryError(f"{subject} must only have the fields {sorted(keys)}, got {unknown}")


def _other(value: Any) -> Question:
    if not isinstance(value, Mapping):
        raise QueryError(f"other must be an object with evidence and soft, got {type(value).__name__}")
    _known("other", value, _SIDE)
    return Question(*_findings(value))


def _findings(document: Mapping[str, Any]) -> tuple[Any, Any]:
    """Evidence and soft evidence."""
    evidence = _labels("evidence", document.get("evidence", {}), numbers=True)
    soft = _soft(document.get("soft", {}))
    both = sorted(dict(evidence).keys() & dict(soft).keys())
    if both:
        raise QueryError(f"a node must have hard or soft evidence, got both for {both}")
    return evidence, soft


def _labels(subject: str, value: Any, numbers: bool = False) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, Mapping):
        raise QueryError(f"{subject} must be an object of node: state, got {type(value).__name__}")
    for node, state in value.items():
        if not isinstance(state, str) and not (numbers and _is_number(state)):
            wanted = "a state label or a number" if numbers else "a state label"
            raise QueryError(f"{subject} of {node!r} must be {wanted}, got {type(state).__name__}")
    return tuple(sorted(value.items()))


def _soft(value: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    if not isinstance(value, Mapping):
        raise QueryError(f"soft must be an object of node: likelihoods, got {type(value).__name__}")
    found = []
    for node, likelihood in value.items():
        if not isinstance(likelihood, list) or not all(_is_number(number) for number in likelihood):
            raise QueryError(f"soft evidence on {node!r} must be a list of numbers, one per state, got others")
        found.append((node, tuple(float(number) for number in likelihood)))
    return tuple(sorted(found))


def _targets(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(node, str) for node in value):
        raise QueryError("targets must be a list of node names, got others")
    return tuple(value)


def _level(value: Any) -> float:
    if not _is_number(value) or not 0 < value < 1:
        raise QueryError(f"level must be a number between 0 and 1, got {value!r:.40}")
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _no_constant(name: str) -> float:
    raise ValueError(name)
