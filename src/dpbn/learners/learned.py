"""What every learner returns: CPTs, and where the budget went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Learned:
    """CPTs by node; `allocation[node]` is the part of all measured tables that contain its family in epsilon.

    `details` holds further public facts about the run (stages, weights, tables), ready for JSON.
    """

    cpts: Mapping[str, NDArray[np.float64]]
    allocation: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)
