"""What is promised: Budget (asked for), Sensitivity (of one count table), Guarantee (given)."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from dpbn.errors import PrivacyError, received


class Neighbors(StrEnum):
    """Which pairs of tables must be hard to tell apart."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Budget:
    """The total asked for. delta = 0 means pure differential privacy."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            if isinstance(value := getattr(self, name), (np.integer, np.floating)):  # from an array of budgets to try
                object.__setattr__(self, name, value.item())
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, (int, float)):
            raise PrivacyError(f"epsilon must be a number, got {received(self.epsilon)}")
        if not 0 < self.epsilon <= sys.float_info.max:
            huge = isinstance(self.epsilon, int) and self.epsilon > 0  # thousands of digits cannot even be shown
            got = "a whole number beyond every float" if huge else repr(self.epsilon)
            raise PrivacyError(f"epsilon must be finite and above 0, got {got}")
        if isinstance(self.delta, bool) or not isinstance(self.delta, (int, float)) or not 0 <= self.delta < 1:
            raise PrivacyError(f"delta must be in [0, 1), got {received(self.delta)}")


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one person can move one contingency table, in rows.

    Adding or removing a person changes at most `max_contributions` rows: L1 and L2 norm at most that.
    Replacing a person also takes as many away: L1 at most twice, L2 at most sqrt(2) times.
    """

    neighbors: Neighbors = Neighbors.ADD_REMOVE
    max_contributions: int = 1

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "neighbors", Neighbors(self.neighbors))
        except ValueError:
            raise PrivacyError(f"neighbors must be 'add-remove' or 'replace', got {received(self.neighbors)}") from None
        count = self.max_contributions
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 2**31:
            raise PrivacyError(f"max_contributions must be a whole number in 1..2^31, got {received(count)}")

    @property
    def l1(self) -> int:
        return self.max_contributions * (2 if self.neighbors is Neighbors.REPLACE else 1)

    @property
    def l2_squared(self) -> int:
        """Exact square of the L2 sensitivity (an integer)."""
        return self.max_contributions**2 * (2 if self.neighbors is Neighbors.REPLACE else 1)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What the accountant computed from the measurements actually made."""

    epsilon: float
    delta: float
    neighbors: Neighbors
    unit: str | None
    max_contributions: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; without a bound, epsilon is None."""
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "neighbors": str(self.neighbors),
            "unit": self.unit,
            "max_contributions": self.max_contributions,
        }
