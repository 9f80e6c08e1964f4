"""What a query returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, QueryError, did_you_mean

if TYPE_CHECKING:
    import pandas

    from dpbn.uncertainty.error_bars import Bars


@dataclass(frozen=True, eq=False)
class Answer:
    """P(variables | evidence): `values` has one axis per variable, in the order asked."""

    variables: tuple[str, ...]
    values: NDArray[np.float64]
    states: tuple[tuple[str, ...], ...]
    evidence: dict[str, Any] = field(default_factory=dict)
    bars: Callable[[], Bars] | None = field(default=None, repr=False)
    leaning: Callable[[], list[Any]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy
        return np.array(self.values, dtype=dtype)

    def __getitem__(self, labels: str | tuple[str, ...]) -> float:
        """The probability of one label per variable: `answer["LOW"]`, `answer["LOW", "HIGH"]`."""
        wanted = tuple(labels) if isinstance(labels, (tuple, list)) else (labels,)
        if len(wanted) != len(self.variables):
            raise QueryError(f"labels must be one for each of {list(self.variables)}, got {labels!r}")
        for name, states, label in zip(self.variables, self.states, wanted, strict=True):
            if label not in states:
                hint = did_you_mean(label, states)
                raise QueryError(f"state of {name!r} must be one of {list(states)}, got {label!r}{hint}")
        return float(self.values[tuple(s.index(label) for s, label in zip(self.states, wanted, strict=True))])

    def most_probable(self, most: int) -> tuple[list[tuple[int, ...]], int]:
        """The places in `values` of the `most` most probable combinations, best first, and how many are left out."""
        order = np.argsort(-self.values, axis=None, kind="stable")[:most]
        cells = zip(*np.unravel_index(order, self.values.shape), strict=True)
        return [tuple(int(i) for i in cell) for cell in cells], self.values.size - len(order)

    def interval(self, level: float = 0.9, part: str = "total") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Low and high ends of an interval for every probability; only answers from a release have one.

        `part` is "total", or one of its two parts: "privacy" (the noise) or "sampling" (the data itself).
        """
        if self.bars is None:
            raise QueryError("an interval must be asked of an answer from a release made with noise, got another")
        return self._error.interval(level, part)

    @cached_property
    def _error(self) -> Bars:
        """Asked of hundreds of networks: once, for every level and part."""
        assert self.bars is not None
        return self.bars()

    def _repr_html_(self) -> str:
        from dpbn.display import answer_html

        try:
            bars = self.interval(0.9)
        except InputError:  # from a network, or made without noise
            bars = None
        return answer_html(self, bars)

    @property
    def weak_rows(self) -> list[Any]:
        """CPT rows below the noise floor that this answer leans on, heaviest first; none for a plain network."""
        return [] if self.leaning is None else self.leaning()

    def to_frame(self, level: float | None = 0.9) -> pandas.DataFrame:
        """One row per combination of states, with the ends of its interval where there is one and a level is given."""
        import pandas

        columns = {"probability": self.values.ravel()}
        if self.bars is not None and level is not None:
            low, high = self.interval(level)
            columns |= {"low": low.ravel(), "high": high.ravel()}
        index = pandas.MultiIndex.from_product(self.states, names=self.variables)
        return pandas.DataFrame(columns, index if len(self.variables) > 1 else index.get_level_values(0))

    def to_dict(self) -> dict[str, Any]:
        """Labels and probabilities, ready for JSON."""
        return {
            "variables": list(self.variables),
            "states": [list(labels) for labels in self.states],
            "values": self.values.tolist(),
            "evidence": {
                name: v if isinstance(v, str) else np.asarray(v).tolist() for name, v in self.evidence.items()
            },
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """P(variables | evidence) under two evidences; `values` is the first answer minus the second."""

    first: Answer
    second: Answer
    bars: Callable[[], Bars] | None = field(default=None, repr=False)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.first.variables

    @property
    def states(self) -> tuple[tuple[str, ...], ...]:
        return self.first.states

    @property
    def values(self) -> NDArray[np.float64]:
        return self.first.values - self.second.values

    def __getitem__(self, labels: str | tuple[str, ...]) -> float:
        """The difference for one label per variable, as for an answer."""
        return self.first[labels] - self.second[labels]

    def interval(self, level: float = 0.9, part: str = "total") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Low and high ends for every difference: not those of the answers, whose errors are partly the same."""
        if self.bars is None:
            raise QueryError("an interval must be asked of a comparison from a release made with noise, got another")
        return self._error.interval(level, part)

    @cached_property
    def _error(self) -> Bars:
        """As for an answer."""
        assert self.bars is not None
        return self.bars()

    @property
    def weak_rows(self) -> list[Any]:
        """CPT rows below the noise floor that either answer leans on, each with its larger weight, heaviest first."""
        rows: dict[Any, Any] = {}
        for row in sorted([*self.first.weak_rows, *self.second.weak_rows], key=lambda row: -row.weight):
            rows.setdefault((row.node, *row.parents.items()), row)
        return list(rows.values())

    def to_frame(self, level: float | None = 0.9) -> pandas.DataFrame:
        """One row per combination of states: both probabilities, the difference, the ends of its interval if any."""
        frame = self.first.to_frame(None).rename(columns={"probability": "first"})
        frame["second"], frame["difference"] = self.second.values.ravel(), self.values.ravel()
        if self.bars is not None and level is not None:
            frame["low"], frame["high"] = (end.ravel() for end in self.interval(level))
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Labels, both answers and their difference, ready for JSON."""
        first, second = self.first.to_dict(), self.second.to_dict()
        told = {"first": first, "second": second}
        sides = {side: {key: answer[key] for key in ("values", "evidence")} for side, answer in told.items()}
        return {"variables": first["variables"], "states": first["states"], **sides, "difference": self.values.tolist()}

    def _repr_html_(self) -> str:
        from dpbn.display import comparison_html

        return comparison_html(self, None if self.bars is None else self.interval(0.9))
