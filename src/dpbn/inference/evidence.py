"""Questions checked: names and labels become numbers, or a QueryError that names what is wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbn.domain import likely_variable
from dpbn.errors import QueryError, did_you_mean, received
from dpbn.inference.contraction import Array
from dpbn.matching import Matching
from dpbn.network import Structure

LARGEST_PRODUCT = math.log(1e300)
Evidence = Mapping[str, Any]  # a label or value, or one likelihood per state (sequence, array, or {label: likelihood})


@dataclass(frozen=True, slots=True)
class Findings:
    """Evidence in numbers: observed states, and likelihood vectors for soft evidence."""

    hard: dict[int, int]
    soft: dict[int, Array]  # the largest likelihood of each is 1, unless the smallest would be lost
    log_scale: float = 0.0  # of the factors that the likelihoods were divided by, for P(evidence)

    @property
    def pattern(self) -> tuple[frozenset[int], frozenset[int]]:
        """What a plan may depend on: which variables are observed, never their states."""
        return frozenset(self.hard), frozenset(self.soft)

    def likelihoods(self, sizes: Sequence[int]) -> dict[int, Array]:
        """All findings as one vector each."""
        found = dict(self.soft)
        for v, code in self.hard.items():
            found[v] = np.zeros(sizes[v])
            found[v][code] = 1.0
        return found


class Vocabulary:
    """The names and labels of a structure, as numbers."""

    __slots__ = ("codes", "nodes", "positions", "sizes", "states", "variables")

    def __init__(self, structure: Structure):
        self.nodes = structure.nodes
        self.positions = {name: i for i, name in enumerate(structure.nodes)}
        self.variables = structure.schema.variables
        self.states = tuple(structure.states(name) for name in structure.nodes)
        self.codes = tuple({label: i for i, label in enumerate(labels)} for labels in self.states)
        self.sizes = [len(labels) for labels in self.states]

    def position(self, name: Any) -> int:
        try:
            return self.positions[name]
        except (KeyError, TypeError):
            hint = likely_variable(name, self.variables)
            raise QueryError(f"a variable must be a node of the network, got {received(name)}{hint}") from None

    def question(self, targets: Any, evidence: Evidence | None) -> tuple[tuple[int, ...], Findings]:
        """Targets and findings."""
        findings = self.findings(evidence)
        return self.targets(listed(targets), findings.hard), findings

    def targets(self, names: Sequence[Any], evidence: Iterable[int]) -> tuple[int, ...]:
        """Distinct, known and not observed."""
        if not names:
            raise QueryError("targets must name at least one node, got none")
        found = tuple(self.position(name) for name in names)
        if len(set(found)) != len(found):
            raise QueryError(f"targets must be distinct, got {[n for n, k in Counter(names).items() if k > 1]} twice")
        observed = set(evidence)
        both = [name for name, variable in zip(names, found, strict=True) if variable in observed]
        if both:
            raise QueryError(f"targets must not be evidence as well, got {both}")
        return found

    def findings(self, evidence: Evidence | None) -> Findings:
        hard: dict[int, int] = {}
        soft: dict[int, Array] = {}
        if evidence is None:
            return Findings(hard, soft)
        if not isinstance(evidence, Mapping):
            raise QueryError(f"evidence must be a mapping of node to label, got {type(evidence).__name__}")
        log_scale = log_left = 0.0
        for name, value in evidence.items():
            variable = self.position(name)
            if isinstance(value, str) or not _several(value):
                hard[variable] = self._observed(variable, value)
            else:
                given = soft[variable] = self._likelihood(variable, value)
                peak = float(given.max()) or 1.0
                if np.array_equal(given / peak > 0, given > 0):  # no likelihood is lost by it
                    soft[variable] = given / peak
                    log_scale += math.log(peak)
                elif (log_left := log_left + math.log(peak)) > LARGEST_PRODUCT:
                    raise QueryError(
                        f"likelihoods of {name!r} must not be further apart than floats reach, got {given.tolist()}"
                    )
        return Findings(hard, soft, log_scale)

    def told(self, evidence: Evidence | None, findings: Findings) -> dict[str, Any]:
        """`evidence` by the states that were observed, whatever they were given as."""
        return {**(evidence or {}), **{self.nodes[v]: self.states[v][code] for v, code in findings.hard.items()}}

    def _observed(self, variable: int, value: Any) -> int:
        """The code of a label; or, with cut points, of a value as a table has it: a number within an interval."""
        declared = self.variables[variable]
        if declared.cut_points is None:
            return self.code(variable, value)
        code = Matching(declared, None).meant(value)
        if code is None:
            ranges = ", ".join(f"{state} is {words}" for state, words in declared.ranges.items())
            raise self._unknown(variable, value, f" or a number ({ranges})")
        return code

    def code(self, variable: int, label: Any) -> int:
        try:
            return self.codes[variable][label]
        except (KeyError, TypeError):
            raise self._unknown(variable, label) from None

    def _unknown(self, variable: int, value: Any, more: str = "") -> QueryError:
        name, states = self.nodes[variable], self.states[variable]
        hint = did_you_mean(value, states)
        return QueryError(f"state of {name!r} must be one of {list(states)}{more}, got {value!r}{hint}")

    def _likelihood(self, variable: int, value: Any) -> Array:
        name, size = self.nodes[variable], self.sizes[variable]
        if isinstance(value, Mapping):
            vector = np.zeros(size)  # states left out are impossible
            for label, likelihood in value.items():
                vector[self.code(variable, label)] = _number(name, likelihood)
        else:
            if len(value) != size:
                wanted = f"{size} likelihoods, or {{state: likelihood}}"
                raise QueryError(f"soft evidence on {name!r} must give {wanted}, got {len(value)}")
            vector = np.array([_number(name, v) for v in value])
        if not np.all(np.isfinite(vector) & (vector >= 0)):
            raise QueryError(f"soft evidence on {name!r} must be finite and >= 0, got {vector.tolist()}")
        return vector


def listed(targets: Any) -> list[Any]:
    """Names of targets, read once; a single name is a list of one."""
    if isinstance(targets, str):
        return [targets]
    try:
        return list(targets)
    except TypeError:
        raise QueryError(f"targets must be a name or a list of names, got {type(targets).__name__}") from None


def _several(value: Any) -> bool:
    """Whether it is likelihoods, right or wrong, and no single value."""
    listed = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, bytes) and np.ndim(value) > 0
    return listed or isinstance(value, Mapping)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise QueryError(f"soft evidence on {name!r} must be numbers, got {value!r}") from None
