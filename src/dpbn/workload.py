"""Questions asked of a network: Query and Workload. Public: written down before any data is seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpbn.domain import likely_variable
from dpbn.errors import FormatError, QueryError, received
from dpbn.files import parse_json, read_text
from dpbn.matching import Matching
from dpbn.network import Structure


@dataclass(frozen=True)
class Query:
    """The joint distribution of `variables` given `evidence` (names to states)."""

    variables: tuple[str, ...]
    evidence: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        listed = isinstance(self.variables, Iterable) and not isinstance(self.variables, str)
        names = tuple(self.variables) if listed else ()
        if not listed or not all(isinstance(name, str) for name in names):
            raise QueryError(f"variables of a query must be a sequence of names, got {received(self.variables)}")
        if not isinstance(self.evidence, Mapping):
            raise QueryError(f"evidence of a query must map nodes to states, got {type(self.evidence).__name__}")
        object.__setattr__(self, "variables", names)
        object.__setattr__(self, "evidence", dict(self.evidence))
        if not self.variables:
            raise QueryError("a query must ask for at least one variable, got none")
        repeated = sorted(set(self.variables) & set(self.evidence))
        if repeated or len(set(self.variables)) != len(self.variables):
            raise QueryError(f"a variable must stand once in a query, got {repeated or self.variables}")

    def __hash__(self) -> int:
        return hash((self.variables, tuple(sorted(self.evidence.items()))))

    def __str__(self) -> str:
        given = ", ".join(f"{name}={state}" for name, state in self.evidence.items())
        return f"P({', '.join(self.variables)}{' | ' + given if given else ''})"

    @property
    def names(self) -> tuple[str, ...]:
        """Everything the query mentions: variables, then evidence."""
        return (*self.variables, *self.evidence)


Workload = tuple[Query, ...]


def checked_workload(structure: Structure, queries: Iterable[Query]) -> Workload:
    """`queries` by states, as `Inference` reads them, or an error naming what the structure does not know."""
    try:
        listed = tuple(queries)
    except TypeError:
        raise QueryError(f"a workload must be a list of queries, got {type(queries).__name__}") from None
    workload = []
    for query in listed:
        if not isinstance(query, Query):
            raise QueryError(f"a workload must hold queries (dpbn.workload.Query), got {type(query).__name__}")
        for name in query.names:
            if name not in structure.schema:
                hint = likely_variable(name, structure.schema)
                raise QueryError(f"a query must name nodes of the network, got {name!r}{hint}")
        evidence = {name: _observed(structure, name, value) for name, value in query.evidence.items()}
        workload.append(Query(query.variables, evidence))
    return tuple(workload)


def _observed(structure: Structure, name: str, value: Any) -> str:
    """A state, or that of the interval which a number lies in."""
    variable = structure.schema[name]
    if variable.cut_points is not None and (code := Matching(variable, None).meant(value)) is not None:
        return variable.states[code]
    if value not in variable.states:
        raise QueryError(f"evidence on {name!r} must be {variable.declared}, got {value!r}")
    return str(value)


def read_workload(path: str | Path, structure: Structure) -> Workload:
    """A JSON list of {"variables": [...], "evidence": {...}} as a checked workload."""
    entries = parse_json(read_text(path), "a workload must be JSON", source=str(path))
    try:
        if not isinstance(entries, list) or any(set(entry) - {"variables", "evidence"} for entry in entries):
            raise TypeError
        queries = [Query(entry["variables"], dict(entry.get("evidence", {}))) for entry in entries]
    except QueryError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise FormatError(
            'a workload must be a list of {"variables": [...], "evidence": {...}} and nothing else, got another form',
            source=str(path),
        ) from None
    return checked_workload(structure, queries)
