"""At most k records per unit, chosen by position alone.

A unit's kept records are its first k in the order the table is read. Which they are depends on that
unit's own records only, so adding or removing a unit changes no other unit's choice, and moves every
table by at most k. Attribute values play no part. Units are told apart by their values as they stand; a
column that mixes text with other kinds is refused, since 1 and "1" would count as two people.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dpbn.data.encode import Written, is_text, plain_type
from dpbn.errors import DataError

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_PIECE = 1 << 20  # bytes


class UnitBound:
    """Counts the records seen of every unit; memory grows with the number of units, not of records."""

    def __init__(self, column: str, limit: int):
        self.column, self._limit = column, limit
        self._seen: dict[Any, int] = {}
        self._kinds: set[type] = set()

    def keep(self, values: Any, rows: int) -> tuple[NDArray[np.bool_], int]:
        """Which of the next records to keep, and how many have no unit (those are not kept)."""
        if isinstance(values, pa.ChunkedArray):
            found = [self.keep(piece, len(piece)) for piece in _pieces(values)]
            return np.concatenate([np.zeros(0, dtype=np.bool_), *(kept for kept, _ in found)]), sum(n for _, n in found)
        numbers, ids = _factorized(values)
        self._kinds.update(next((kind for kind in (str, bytes) if isinstance(unit, kind)), object) for unit in ids)
        if len(self._kinds) > 1:
            raise DataError(f"the unit column {self.column!r} must hold values of one kind, got text and others mixed")
        present = numbers >= 0
        earlier = np.fromiter((self._seen.get(unit, 0) for unit in ids), dtype=np.int64, count=len(ids))
        order = np.argsort(numbers, kind="stable")
        ranks = np.empty(rows, dtype=np.int64)
        ordered = numbers[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if rows else np.zeros(0, dtype=np.int64)
        lengths = np.diff(np.r_[starts, rows])
        ranks[order] = np.arange(rows) - np.repeat(starts, lengths)
        kept = present.copy()
        kept[present] = earlier[numbers[present]] + ranks[present] < self._limit
        totals = np.bincount(numbers[present], minlength=len(ids))
        self._seen.update((unit, int(before + now)) for unit, before, now in zip(ids, earlier, totals, strict=True))
        return kept, int(rows - present.sum())


def _pieces(values: pa.ChunkedArray) -> Iterator[pa.Array]:
    """The chunks, small ones of a plain type put together, since each takes time of its own.

    Dictionaries stay apart: whether those of several chunks fit into one follows everybody.
    """
    pieces: list[list[pa.Array]] = []
    kind, size = values.type, 0
    plain = any(of(kind) for of in (pa.types.is_primitive, pa.types.is_string, pa.types.is_large_string))
    for chunk in values.chunks:
        size += chunk.nbytes
        if not pieces or not plain or size > _PIECE:
            pieces.append([])
            size = chunk.nbytes
        pieces[-1].append(chunk)
    return (piece[0] if len(piece) == 1 else pa.concat_arrays(piece) for piece in pieces)


def _factorized(values: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """Dense numbers of the units (-1 if missing) and the units they stand for.

    Who is one person must not depend on who else is there, in this block or before. So objects are told apart by hash
    and value: pandas compares those of other hashes too where they meet in its table, and to NumPy 2^53 + 1 is 2.0^53.
    """
    if isinstance(values, Written):
        values = values.fields
    if not isinstance(values, pa.Array):
        objects = np.asarray(values, dtype=object)
        known = zip(objects, pd.isna(objects), strict=True)
        found: dict[Any, int] = {}
        try:
            codes = [-1 if missing else found.setdefault(_key(unit), len(found)) for unit, missing in known]
        except (TypeError, ValueError):  # not hashable, or an array
            raise DataError("a unit must be told by text or a whole number, got a value that cannot be told") from None
        return np.array(codes, dtype=np.int64), list(found)
    array = values
    while (wrapped := isinstance(array.type, pa.BaseExtensionType)) or pa.types.is_dictionary(array.type):
        array = array.storage if wrapped else array.dictionary_decode()  # UUIDs, by their bytes
    if pa.types.is_floating(array.type):
        numbers, ids = pd.factorize(array.to_numpy(zero_copy_only=False))
        return numbers.astype(np.int64), ids.tolist()
    try:
        coded = array.dictionary_encode()
    except pa.ArrowNotImplementedError:
        kind = plain_type(array.type)
        raise DataError(f"a unit must be told by text or a whole number, got a column of type {kind}") from None
    indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return indices, _told_apart(coded.dictionary)


def _told_apart(ids: pa.Array) -> list[Any]:
    """Units as Python values that are as different as they are.

    Its own days have no milliseconds, its times no nanoseconds, its years end at 9999, and in a zone two hours of an
    autumn night are one. So what tells of time is a number of nanoseconds, of a day, of a span or since 1970.
    """
    kind = ids.type
    if is_text(kind):
        return ids.cast(pa.large_binary()).to_pylist()
    if pa.types.is_date32(kind):
        return _told_apart(ids.cast(pa.date64()))
    if not pa.types.is_temporal(kind) or pa.types.is_interval(kind):
        return ids.to_pylist()
    of = pa.types.is_time(kind), pa.types.is_duration(kind), getattr(kind, "tz", None) is not None
    step = _NANOSECONDS[getattr(kind, "unit", "ms")]
    return [(of, number * step) for number in ids.view(f"int{kind.bit_width}").to_pylist()]


def _key(unit: Any) -> Any:
    """A unit without NumPy around it; parts of it that are missing are all alike, which one NaN and another are not.

    A time in a zone is told by its distance from 1970: in an autumn night one may equal two that differ.
    """
    if isinstance(unit, (np.datetime64, np.timedelta64)):
        unit = pd.Timestamp(unit) if isinstance(unit, np.datetime64) else pd.Timedelta(unit)
    if isinstance(unit, datetime) and (offset := unit.utcoffset()) is not None:
        return "in a zone", unit.replace(tzinfo=None) - datetime(1970, 1, 1) - offset
    if isinstance(unit, np.generic):
        unit = unit.item()
    if isinstance(unit, tuple):
        return tuple(None if pd.isna(part) is True else _key(part) for part in unit)
    if type(unit).__eq__ is object.__eq__ and not isinstance(unit, Enum):
        raise TypeError  # equal to itself only: every record would be another person
    return unit
