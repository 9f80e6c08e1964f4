"""Tables with an axis per name: their margins, and margins spread back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Names = tuple[str, ...]


def project(table: NDArray[Any], names: Names, onto: Names) -> NDArray[Any]:
    """Sum out all but `onto`; axes in the order of `onto`."""
    kept = [name for name in names if name in onto]
    margin = table.sum(axis=tuple(i for i, name in enumerate(names) if name not in onto))
    return np.transpose(margin, [kept.index(name) for name in onto])


def spread(table: NDArray[np.float64], names: Names, over: Names) -> NDArray[np.float64]:
    """View of `table` over `names` that broadcasts against a table over `over`."""
    kept = [name for name in over if name in names]
    ordered = np.transpose(table, [names.index(name) for name in kept])
    return ordered.reshape([ordered.shape[kept.index(name)] if name in names else 1 for name in over])
