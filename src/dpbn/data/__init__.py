"""Private rows in any engine -> integer codes -> contingency tables. The last sight of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbn.data.memory import CodeSource
from dpbn.errors import DataError
from dpbn.measure import CountSource
from dpbn.network import Structure


def open_source(
    data: Any,
    structure: Structure,
    *,
    unit: str | None = None,
    max_contributions: int = 1,
    on_unknown: str = "error",
) -> CountSource:
    """Check `data` against the public schema and make it countable (pandas only, for now)."""
    codes = {}
    for variable in structure.schema:
        column = data[variable.source_column].astype("category").cat.set_categories(list(variable.states))
        code = column.cat.codes.to_numpy()
        if (code < 0).any():
            raise DataError(f"column {variable.source_column!r} must hold states of {variable.name!r} only")
        codes[variable.name] = code.astype(np.int64)
    return CodeSource(structure.schema, codes)
