"""Columns of a table to predict from, as state codes; -1 where a value is missing and no catch-all state takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Variable
from dpbn.errors import QueryError, did_you_mean
from dpbn.matching import Matching

MISSING = -1


def columns_of(table: Any) -> tuple[dict[str, Any], int]:
    """Named columns of a pandas or polars DataFrame, a pyarrow Table or a mapping, and the number of rows."""
    if isinstance(table, Mapping):
        columns = {str(name): values for name, values in table.items()}
        for name, values in columns.items():
            if isinstance(values, str) or not hasattr(values, "__len__"):
                raise QueryError(f"column {name!r} must be a list of values, got {type(values).__name__}")
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            raise QueryError(f"columns must have one length, got {sorted(lengths)}")
        return columns, lengths.pop() if lengths else 0
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    if names is None or not hasattr(table, "__getitem__"):
        raise QueryError(
            f"a table must be a DataFrame, a pyarrow Table or a mapping of columns, got {type(table).__name__}"
        )
    rows = table.num_rows if hasattr(table, "num_rows") else len(table)
    return {str(name): table[name] for name in names}, int(rows)


def column_codes(values: Any, rule: Matching) -> NDArray[np.int64]:
    """Codes of one column: each distinct value is matched once, by the public rule of its variable."""
    import pyarrow

    categories = getattr(getattr(values, "cat", None), "categories", None)
    if categories is not None:  # a pandas categorical already holds codes
        return _mapped(np.asarray(values.cat.codes, dtype=np.int64), list(categories), rule)
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        values = values.astype(object)
    if hasattr(values, "to_arrow"):  # polars
        values = values.to_arrow()
    try:
        array = values if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)) else _to_arrow(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        array = _to_arrow([None if _absent(v) else str(v) for v in values])
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.unify_dictionaries().chunk(0) if array.num_chunks else pyarrow.array([], pyarrow.string())
    if pyarrow.types.is_nested(array.type):  # lists and the like are values of no variable: told as text
        array = _to_arrow([None if value is None else str(value) for value in array.to_pylist()])
    if not pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = np.asarray(array.indices.fill_null(MISSING).to_numpy(zero_copy_only=False), dtype=np.int64)
    return _mapped(codes, array.dictionary.to_pylist(), rule)


def _to_arrow(values: Any) -> Any:
    import pyarrow

    return pyarrow.array(values, from_pandas=True)


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _mapped(codes: NDArray[np.int64], distinct: list[Any], rule: Matching) -> NDArray[np.int64]:
    unknown = MISSING if rule.catch_all is None else rule.catch_all
    lookup = np.full(len(distinct) + 1, unknown, dtype=np.int64)  # the last entry answers code -1
    used = np.bincount(codes + 1, minlength=len(distinct) + 1)[1:] > 0
    for index, value in enumerate(distinct):
        if used[index] and not _absent(value):  # categories may declare labels that no row holds
            code = rule.meant(value)
            if code is not None:
                lookup[index] = code
            elif rule.catch_all is None:
                raise _undeclared(value, int(np.argmax(codes == index)), rule.variable)
    return lookup[codes]


def _undeclared(value: Any, row: int, variable: Variable) -> QueryError:
    hint = did_you_mean(value, variable.states)
    if variable.catch_all is not None:
        hint += f"; on_unknown='catch_all' takes it and what is missing for {variable.catch_all!r}"
    return QueryError(
        f"values of {variable.name!r} must be {variable.declared}, got {value!r} in row {row}, counted from 0{hint}"
    )
