"""What a query returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Answer:
    """P(variables | evidence): `values` has one axis per variable, in the order asked."""

    variables: tuple[str, ...]
    values: NDArray[np.float64]
    states: tuple[tuple[str, ...], ...]
    evidence: dict[str, Any] = field(default_factory=dict)

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
