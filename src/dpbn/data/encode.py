"""Arrow arrays and Python values -> state codes. The largest code of the dtype marks an unknown value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpbn.data.matching import Matching
from dpbn.domain import Schema
from dpbn.errors import DataError

Codes = NDArray[np.unsignedinteger]


def code_dtype(schema: Schema) -> np.dtype:
    """The smallest unsigned type that holds every code and the unknown mark."""
    largest = max((variable.size for variable in schema), default=1)
    return np.dtype(next(kind for kind in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(kind).max))


def unknown_mark(dtype: np.dtype) -> int:
    return int(np.iinfo(dtype).max)


def encode(values: Any, matching: Matching, out: Codes) -> None:
    """Write the codes of `values` (an Arrow array, chunked or not, or a sequence of objects) into `out`."""
    if isinstance(values, pa.ChunkedArray):
        start = 0
        for chunk in values.chunks:
            encode(chunk, matching, out[start : start + len(chunk)])
            start += len(chunk)
    elif isinstance(values, pa.Array):
        _encode_array(values, matching, out)
    else:
        _encode_objects(values, matching, out)


def _encode_objects(values: Sequence[Any], matching: Matching, out: Codes) -> None:
    seen: dict[tuple[type, Any], int] = {}
    mark = unknown_mark(out.dtype)
    for row, value in enumerate(values):
        key = (type(value), value)
        try:
            code = seen.get(key)
        except TypeError:  # not hashable, so certainly not a state
            code = mark
        if code is None:
            found = matching.code(value)
            code = seen[key] = mark if found is None else found
        out[row] = code


def _encode_array(array: pa.Array, matching: Matching, out: Codes) -> None:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        _encode_array(array.storage, matching, out)
    elif pa.types.is_null(kind):
        out[:] = unknown_mark(out.dtype)
    elif pa.types.is_dictionary(kind):
        _encode_dictionary(array, matching, out)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        _encode_text(array, matching, out)
    elif pa.types.is_boolean(kind):
        _encode_booleans(array, matching, out)
    elif pa.types.is_integer(kind) and matching.cuts is None:
        _encode_integers(array, matching, out)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        _encode_floats(array, matching, out)
    else:
        raise wrong_type(matching, str(kind))


def wrong_type(matching: Matching, kind: str) -> DataError:
    return DataError(f"column {matching.column!r} must hold text, numbers or booleans, got type {kind}")


def _encode_dictionary(array: pa.DictionaryArray, matching: Matching, out: Codes) -> None:
    mark = unknown_mark(out.dtype)
    lookup = np.full(max(len(array.dictionary), 1), mark, dtype=out.dtype)
    _encode_array(array.dictionary, matching, lookup[: len(array.dictionary)])
    indices = array.indices
    if indices.null_count:
        valid = _valid(indices)
        lookup.take(pc.fill_null(indices, 0).to_numpy(zero_copy_only=False), out=out, mode="clip")
        out[~valid] = mark
    else:
        lookup.take(indices.to_numpy(), out=out, mode="clip")


def _encode_text(array: pa.Array, matching: Matching, out: Codes) -> None:
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    labels = pa.array(list(matching.variable.states), type=array.type)
    found = pc.index_in(array, value_set=labels)
    _place(found, out)


def _encode_booleans(array: pa.Array, matching: Matching, out: Codes) -> None:
    mark = unknown_mark(out.dtype)
    codes = matching.booleans
    truth = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    out[:] = np.where(truth, codes.get(True, mark), codes.get(False, mark))
    if array.null_count:
        out[~_valid(array)] = mark


def _encode_integers(array: pa.Array, matching: Matching, out: Codes) -> None:
    limits = np.iinfo(np.dtype(array.type.to_pandas_dtype()))
    numbers = {n: c for n, c in matching.numbers.items() if isinstance(n, int) and limits.min <= n <= limits.max}
    found = pc.index_in(array, value_set=pa.array(list(numbers), type=array.type))
    _place(found, out, list(numbers.values()))


def _encode_floats(array: pa.Array, matching: Matching, out: Codes) -> None:
    mark = unknown_mark(out.dtype)
    values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if matching.cuts is not None:
        out[:] = np.searchsorted(matching.cuts, values, side="right")
    else:
        labels = sorted((float(number), code) for number, code in matching.numbers.items())
        numbers = np.array([number for number, _ in labels])
        out[:] = mark
        if labels:
            place = np.minimum(np.searchsorted(numbers, values), len(labels) - 1)
            equal = numbers[place] == values
            out[equal] = np.array([code for _, code in labels], dtype=out.dtype)[place[equal]]
    out[np.isnan(values)] = mark


def _place(found: pa.Array, out: Codes, codes: Sequence[int] | None = None) -> None:
    """`found` holds positions in a list of labels, null where there is none."""
    mark = unknown_mark(out.dtype)
    if codes is None:
        out[:] = pc.fill_null(found, mark if mark < 2**31 else -1).to_numpy(zero_copy_only=False)
        return
    lookup = np.array([*codes, mark], dtype=out.dtype)
    lookup.take(pc.fill_null(found, len(codes)).to_numpy(zero_copy_only=False), out=out, mode="clip")


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    return array.is_valid().to_numpy(zero_copy_only=False)
