"""What a query returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, QueryError


@dataclass(frozen=True, eq=False)
class Answer:
    """P(variables | evidence): `values` has one axis per variable, in the order asked."""

    variables: tuple[str, ...]
    values: NDArray[np.float64]
    states: tuple[tuple[str, ...], ...]
    evidence: dict[str, Any] = field(default_factory=dict)
    bars: Callable[[float, str], tuple[NDArray[np.float64], NDArray[np.float64]]] | None = field(
        default=None, repr=False
    )
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
        wanted = (labels,) if isinstance(labels, str) else tuple(labels)
        return float(self.values[tuple(s.index(label) for s, label in zip(self.states, wanted, strict=True))])

    def interval(self, level: float = 0.9, part: str = "total") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Low and high ends of an interval for every probability; only answers from a release have one.

        `part` is "total", or one of its two parts: "privacy" (the noise) or "sampling" (the data itself).
        """
        if self.bars is None:
            raise QueryError("an interval must be asked of an answer from a release, got an answer from a network")
        return self.bars(level, part)

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
