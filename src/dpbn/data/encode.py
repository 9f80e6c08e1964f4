"""Arrow arrays and Python values -> state codes. The largest code of the dtype marks an unknown value."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.errors import DataError
from dpbn.matching import FOR_DATES, PLAIN, Matching

Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Written:
    """A dictionary column of a text file: fields have no type, and match as they are written."""

    fields: pa.DictionaryArray


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
    elif isinstance(values, Written):
        found = [matching.written(field) for field in values.fields.dictionary.to_pylist()]
        _translate(values.fields.indices, found, out)
    elif isinstance(values, pa.Array):
        _encode_array(values, matching, out)
    else:
        _encode_objects(values, matching, out)


def _encode_objects(values: Sequence[Any], matching: Matching, out: Codes) -> None:
    seen: dict[tuple[type, Any], int] = {}
    mark = unknown_mark(out.dtype)
    for row, value in enumerate(values):
        plain = type(value) in PLAIN
        code = seen.get((type(value), value)) if plain else None
        if code is None:
            found = matching.code(value)
            code = mark if found is None else found
            if plain:
                seen[type(value), value] = code
        out[row] = code


def _encode_array(array: pa.Array, matching: Matching, out: Codes) -> None:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        _encode_array(array.storage, matching, out)
    elif pa.types.is_null(kind):
        out[:] = unknown_mark(out.dtype)
    elif pa.types.is_dictionary(kind):
        _encode_dictionary(array, matching, out)
    elif is_text(kind):
        _encode_text(array, matching, out)
    elif pa.types.is_boolean(kind):
        _encode_booleans(array, matching, out)
    elif pa.types.is_integer(kind) and matching.cuts is None:
        _encode_integers(array, matching, out)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        _encode_floats(array, matching, out)
    else:
        raise wrong_type(matching, str(kind))


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def wrong_type(matching: Matching, kind: str) -> DataError:
    plain = plain_type(kind)
    hint = f": {FOR_DATES}" if plain.lower().startswith(("date", "timestamp")) else ""
    return DataError(f"column {matching.column!r} must hold text, numbers or booleans, got type {plain}{hint}")


def plain_type(kind: object) -> str:
    """The name of a type without its fields or categories, which are values."""
    return re.split(r"[^a-zA-Z0-9_]", str(kind), maxsplit=1)[0]


def _encode_dictionary(array: pa.DictionaryArray, matching: Matching, out: Codes) -> None:
    labels = array.dictionary
    try:
        if is_text(labels.type):  # a plain lookup: Arrow's call costs as much as translating a whole batch
            _translate(array.indices, [matching.texts.get(label) for label in labels.to_pylist()], out)
            return
    except UnicodeDecodeError:  # one label is no text: the others are what they are
        pass
    lookup = np.empty(len(labels), dtype=out.dtype)
    _encode_array(labels, matching, lookup)
    _translate(array.indices, lookup, out)


def _translate(indices: pa.Array, codes: Sequence[int | None] | Codes, out: Codes) -> None:
    """out = codes[indices]; the unknown mark stands for a missing index and for a code of None."""
    mark = unknown_mark(out.dtype)
    lookup = np.array([*(mark if code is None else code for code in codes), mark], dtype=out.dtype)
    valid = _valid(indices) if indices.null_count else None
    positions = (indices if valid is None else pc.fill_null(indices, 0)).to_numpy(zero_copy_only=False)
    compiled = sys.modules.get("dpbn.data.kernel_numba")
    if compiled is not None:  # loaded once there are enough rows; numpy would widen the indices first
        compiled.translate(positions, lookup, out)
    else:
        lookup.take(positions, out=out, mode="clip")
    if valid is not None:
        out[~valid] = mark


def _encode_text(array: pa.Array, matching: Matching, out: Codes) -> None:
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    labels = pa.array(list(matching.variable.states), type=array.type)
    found = pc.index_in(array, value_set=labels)
    _translate(found, range(len(labels)), out)


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
    _translate(found, list(numbers.values()), out)


def _encode_floats(array: pa.Array, matching: Matching, out: Codes) -> None:
    mark = unknown_mark(out.dtype)
    values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if matching.cuts is not None:
        out[:] = np.searchsorted(matching.cuts, values, side="right")
    else:
        labels = sorted(matching.floats.items())
        numbers = np.array([number for number, _ in labels])
        out[:] = mark
        if labels:
            place = np.minimum(np.searchsorted(numbers, values), len(labels) - 1)
            equal = numbers[place] == values
            out[equal] = np.array([code for _, code in labels], dtype=out.dtype)[place[equal]]
    out[np.isnan(values)] = mark


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    return array.is_valid().to_numpy(zero_copy_only=False)
