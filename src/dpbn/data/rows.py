"""Rows from any columnar reader -> codes -> counts: in memory, or streamed block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpbn.data.encode import Codes, code_dtype, encode, unknown_mark
from dpbn.data.kernel import Tally
from dpbn.data.packing import Table, checked_sets, pack, unpacked
from dpbn.data.sealed import sealed
from dpbn.data.units import UnitBound
from dpbn.domain import Schema
from dpbn.errors import DataError, did_you_mean
from dpbn.margins import Names
from dpbn.matching import Matching

SMALL = 1 << 26  # bytes of codes that are kept of a table on disk, so that a second pass need not read it again
Progress = Callable[[float | None], None]  # told how much of a pass is done, 0 to 1; None if that is unknown


@dataclass(frozen=True)
class Block:
    """Some records: the number of them, and their raw columns by name (Arrow arrays, or sequences of objects)."""

    rows: int
    column: Callable[[str], Any]
    share: float | None = 1.0  # of the table read with this block and those before it, if known


class Reader(Protocol):
    """One kind of table. `blocks` may be called again and yields the same records each time."""

    @property
    def in_memory(self) -> bool:
        """Whether the codes may be kept as well."""
        ...

    @property
    def columns(self) -> Sequence[str]: ...

    def blocks(self, names: Sequence[str]) -> Iterator[Block]: ...


@dataclass(frozen=True)
class Reading:
    """What is public about reading a table: schema, rule per variable, policy, unit bound."""

    schema: Schema
    matchings: tuple[Matching, ...]
    on_unknown: str
    unit: str | None = None
    max_contributions: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns needed, each once."""
        unit = () if self.unit is None else (self.unit,)
        return tuple(dict.fromkeys((*(matching.column for matching in self.matchings), *unit)))

    def check_columns(self, present: Sequence[str]) -> None:
        """Refuse a table that lacks a column, or has one twice."""
        names = list(present)
        missing = [name for name in self.columns if name not in names]
        if missing:
            others = [name for name in names if isinstance(name, str) and name not in self.columns]
            like, hint = next(((name, told) for name in missing if (told := did_you_mean(name, others))), ("", ""))
            if hint and len(missing) > 1:
                hint = f"{hint[:-1]} for {like!r}?"
            plain = {its.column for its in self.matchings if its.variable.column is None}
            if not plain.isdisjoint(missing):
                hint = '; a column of another name is declared by column = "NAME" in the schema file' + hint
            raise DataError(
                f"the table must have a column for every variable{'' if self.unit is None else ' and for the unit'}, "
                f"got {len(names)} columns without {missing[:10]}"
                + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
                + hint
            )
        twice = [name for name in self.columns if names.count(name) > 1]
        if twice:
            raise DataError(f"the table must have each column once, got {twice[:10]} several times")

    def refuse(self, unknown: Iterable[tuple[str, int]], rows: int) -> None:
        """Tell the custodian which columns hold how many unknown values. Never prints a value."""
        found: dict[str, int] = {}
        for column, count in unknown:  # a column may serve several variables
            if count:
                found[column] = max(found.get(column, 0), int(count))
        if not found:
            return
        told = ", ".join(f"{column!r}: {count}" for column, count in list(found.items())[:10])
        more = f" and {len(found) - 10} more columns" if len(found) > 10 else ""
        first = next((its for its in self.matchings if its.column in found), None)  # None: rows without a unit
        never = next((column for column, count in found.items() if count == rows > 1), None)
        declared = (
            "" if first is None else f"; {first.column!r} is declared to be {first.variable.declared}, spelt like this"
        )
        drop = "on_unknown='drop' leaves such records out"
        bare = [its.variable for its in self.matchings if its.column in found and its.variable.catch_all is None]
        if self.on_unknown != "error" and bare:
            drop = (
                f"declare a catch_all state for {bare[0].name!r} too; on_unknown='drop' leaves out all records with an "
                "unknown value, also in the other columns"
            )
        elif not bare and self.unit not in found:
            drop += ", 'catch_all' puts such values into the states declared for them"
        advice = f"no record fits in {never!r}: is it the right column, of the right type?" if never else drop
        wrong = f"missing or undeclared values in {told}{more}, of {rows} records"
        error = DataError(
            f"columns must hold values of the declared domains only (on_unknown={self.on_unknown!r}), "
            f"got {wrong}{declared}; {advice}"
        )
        error.unknown = f"{wrong}; {advice}" if never else wrong
        raise error


class RowSource:
    """Counts over a reader's records. Codes are kept if the table is in memory anyway, or if they are small."""

    can_sample_rows = True

    def __init__(self, reader: Reader, reading: Reading, progress: Progress | None = None):
        reading.check_columns(reader.columns)
        self._reader, self._reading, self._progress = reader, reading, progress
        self._kept: tuple[Codes, ...] | None = None
        self._positions = {name: position for position, name in enumerate(reading.schema.names)}

    @sealed
    def counts(self, sets: Sequence[Names]) -> Mapping[Names, Table]:
        """Contingency tables over `sets`, axes in the order of the names."""
        return self._count(sets, lambda codes: codes)

    @sealed
    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], NDArray[np.bool_]]) -> Mapping[Names, Table]:
        """Counts over one sample of the records that count at all: `keep(rows)` is asked once per block."""
        return self._count(sets, lambda codes: np.compress(keep(codes.shape[1]), codes, axis=1))

    def _count(self, sets: Sequence[Names], choose: Callable[[Codes], Codes]) -> Mapping[Names, Table]:
        sets = checked_sets(self._reading.schema, sets)
        groups = pack(self._reading.schema, sets)
        tally = Tally(groups, self._positions)
        for codes in self._codes():
            tally.add(choose(codes))
        return unpacked(groups, tally.supersets, sets)

    def _codes(self) -> Iterator[Codes]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Codes] | None = []
        size = 0
        for codes in known_codes(self._reader, self._reading, self._progress):
            size += codes.nbytes
            if size > SMALL and not self._reader.in_memory:
                kept = None
            if kept is not None:
                kept.append(codes)
            yield codes
        self._kept = None if kept is None else tuple(kept)


def known_codes(reader: Reader, reading: Reading, progress: Progress | None = None) -> Iterator[Codes]:
    """Code matrices of the records that count: units bounded first, then unknown values dealt with.

    The bound looks at unit and position only. Under "error" every record is checked, also those the
    bound leaves out, so that the same table is always refused.
    """
    dtype = code_dtype(reading.schema)
    mark = unknown_mark(dtype)
    bound = None if reading.unit is None else UnitBound(reading.unit, reading.max_contributions)
    unknown, without_unit, rows = [0] * len(reading.matchings), 0, 0
    for block in reader.blocks(reading.columns):
        rows += block.rows
        codes = np.empty((len(reading.matchings), block.rows), dtype=dtype)
        kept: NDArray[np.bool_] | None = None
        if bound is not None:
            kept, without = bound.keep(block.column(bound.column), block.rows)
            without_unit += without
        for position, (matching, out) in enumerate(zip(reading.matchings, codes, strict=True)):
            encode(block.column(matching.column), matching, out)
            if not out.size or int(out.max()) < matching.variable.size:
                continue
            strange = out == mark
            if matching.catch_all is not None:
                out[strange] = matching.catch_all
            else:
                unknown[position] += int(strange.sum())
                kept = ~strange if kept is None else kept & ~strange
        yield codes if kept is None or kept.all() else np.compress(kept, codes, axis=1)
        if progress is not None:  # the consumer is done with the block
            progress(block.share)
    if reading.on_unknown != "drop":
        columns = [matching.column for matching in reading.matchings]
        reading.refuse([*zip(columns, unknown, strict=True), (reading.unit or "", without_unit)], rows)
