"""Counting inside another engine: DuckDB, Spark, and whatever Ibis speaks to. Only cells come back, never rows.

Every variable becomes a key: the code of its state, or null if unknown. The engine finds it row by row, so that a
collation, by which 'A' and 'a' are one group and either may come back, changes no other row's. Each packed
group is then one GROUP BY over its keys (GROUPING SETS were seen to be many times slower on Spark). So at
most one cell per combination of states leaves the engine, whatever the column holds.

With a unit bound the engine puts each unit's records in order of their keys, shuffles the places by a salted
hash of unit and place, and keeps the first k. Records with equal keys are interchangeable. So for every salt
the choice is a function of that unit's own records: not of the order of rows, the engine's random numbers
(which a session may have seeded) or anybody else, and a unit that comes or goes moves every table by at most k.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.data.encode import plain_type, wrong_type
from dpbn.data.packing import Group, Table, checked_sets, pack, unpacked
from dpbn.data.rows import Progress, Reading
from dpbn.data.sealed import sealed
from dpbn.errors import DataError, PrivacyError, extra
from dpbn.margins import Names
from dpbn.matching import Matching

GROUP_CELLS = 1 << 14  # a scan costs more than cells do: larger groups than in memory
_UNIT, _PLACE, _RANK, _ROWS, _GROUP = "dpbn_unit", "dpbn_place", "dpbn_rank", "dpbn_rows", "dpbn_group"
SIDE_BY_SIDE = 10  # values of a domain that a row is compared with one by one
_TOGETHER = 16  # groups in one query of DuckDB, which has a column for every key of them

with extra("narwhals", "engines"):
    import narwhals as nw

_NESTED = (nw.Struct, nw.List, nw.Array)  # may hold text among others; so may what has no kind
_SAME = (nw.Unknown, nw.Duration)  # to DuckDB a month is 30 days
_MIXED = re.compile(r"\b(UNION|VARIANT|JSONB?)\b", re.IGNORECASE)  # DuckDB reads a file with 1 and "1" as JSON


class PushdownSource:
    """Counts of a lazy table, made where the table lives."""

    can_sample_rows = False  # rows never come here; the boundary thins counts instead

    def __init__(self, native: Any, engine: str, reading: Reading, progress: Progress | None = None):
        self._engine, self._reading, self._progress = engine, reading, progress
        frame, names = _opened(native, engine)
        reading.check_columns(list(native.columns))
        schema = frame.collect_schema()
        self._keys = [
            _Key(f"dpbn_{position}", matching, names[matching.column], schema[names[matching.column]], engine)
            for position, matching in enumerate(reading.matchings)
        ]
        self._table, self._codes = frame, {key.alias: key.expression().alias(key.alias) for key in self._keys}
        columns = list(self._codes.values())
        if reading.unit is not None:
            kind = schema[names[reading.unit]]
            self._spelt = "text" if kind == nw.String else "parts" if kind in (*_NESTED, *_SAME) else ""
            own = _own_kind(native, engine, reading.unit)
            if mixed := _MIXED.search(own):  # 1 and "1" would be two people
                raise DataError(
                    f"the unit column {reading.unit!r} must hold values of one kind, got type {mixed[0].lower()}"
                )
            if engine == "ibis" and (kind in (*_NESTED, nw.Duration) or own.startswith(("map", "unknown"))):
                # it has no bytes of them that every engine understands, and to engines a month is 30 days
                raise DataError(f"a unit must be told by text or a whole number, got type {plain_type(own)}")
            columns.append(_unit(names[reading.unit], kind).alias(_UNIT))
        self._frame = frame.select(*columns)
        self._checked = False
        self._salt = secrets.randbits(62)  # for the estimate's sake only: any salt is as private

    @sealed
    def counts(self, sets: Sequence[Names]) -> Mapping[Names, Table]:
        """Contingency tables over `sets`, axes in the order of the names."""
        sets = checked_sets(self._reading.schema, sets)
        groups = pack(self._reading.schema, sets, GROUP_CELLS)
        self._check()
        keys = [[self._keys[self._reading.schema.position(name)] for name in group.names] for group in groups]
        cells = self._cells(self._records(), [[key.alias for key in its] for its in keys])
        supersets = []
        for group, its, found in zip(groups, keys, cells, strict=True):
            supersets.append(_table(group, its, found))
            if self._progress is not None:
                self._progress(len(supersets) / len(groups))
        return unpacked(groups, supersets, sets)

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], NDArray[np.bool_]]) -> Mapping[Names, Table]:
        raise PrivacyError(f"a sample of records must be drawn where they are held, got {self._engine}")

    def _check(self) -> None:
        """Refuse unknown values, counted over all records in one query; what the engine refuses shows here as well."""
        if self._checked:
            return
        if _forgets_streams(self._table.to_native(), self._engine):
            found = {self._table.select(nw.len()).collect().item() for _ in range(2)}
            if len(found) > 1:
                raise DataError("a relation must be readable more than once, got a stream that was read up")
        if self._reading.on_unknown == "drop":  # a stream that can be read once must fail now, not after the charge
            self._frame.head(1).collect()
            self._checked = True
            return
        watched = {key.alias: key.matching.column for key in self._keys if key.matching.catch_all is None}
        if self._reading.unit is not None:
            watched[_UNIT] = self._reading.unit
        known = {**{key.alias: key.matching.column for key in self._keys}, **watched}
        totals = [nw.len().alias(_ROWS), *(nw.col(alias).count().alias(alias) for alias in known)]
        found = self._frame.select(*totals).collect().rows(named=True)[0]
        rows = int(found[_ROWS])
        self._reading.refuse(((column, rows - int(found[alias])) for alias, column in watched.items()), rows)
        self._checked = True

    def _records(self) -> Any:
        """The keys of the records that count: units bounded first, then those with unknown values left out."""
        frame = self._frame
        if self._reading.unit is not None:
            native = frame.filter(~nw.col(_UNIT).is_null()).to_native()
            aliases = [key.alias for key in self._keys]
            frame = nw.from_native(_NUMBERED[self._engine](native, aliases, self._salt, self._spelt)).lazy()
            frame = frame.filter(nw.col(_RANK) <= self._reading.max_contributions)
        if self._reading.on_unknown == "drop":
            frame = frame.filter(*(~nw.col(key.alias).is_null() for key in self._keys))
        return frame

    def _cells(self, frame: Any, groups: Sequence[Sequence[str]]) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Of every group of keys the combinations that occur, each with its number of records."""
        bounded = self._reading.unit is not None  # then the records are numbered once, not once per group
        if bounded and self._engine == "duckdb":
            yield from _cells_duckdb(frame.to_native(), groups)
            return
        # DuckDB plans for columns that are not asked for; without a bound or a filter they have no say either
        apart = self._engine == "duckdb" and not bounded and self._reading.on_unknown != "drop"
        held = frame.to_native().persist() if bounded and self._engine == "spark" else None
        if held is not None:
            frame = nw.from_native(held).lazy()
        rows = nw.len().alias(_ROWS)
        try:
            for keys in groups:
                if apart and keys:
                    frame = self._table.select(*(self._codes[key] for key in keys))
                counted = frame.group_by(*keys).agg(rows) if keys else frame.select(rows)
                yield counted.select(*keys, _ROWS).collect().rows()
        finally:
            if held is not None:
                held.unpersist()


def _table(group: Group, keys: Sequence[_Key], cells: Sequence[tuple[Any, ...]]) -> Table:
    superset = np.zeros(group.shape, dtype=np.int64)
    for *values, total in cells:
        cell = tuple(key.code(value) for key, value in zip(keys, values, strict=True))
        if None in cell:  # the table has changed since it was checked
            raise DataError("columns must hold values of the declared domains only, got others while counting")
        superset[cell] += total
    return superset


def _own_kind(native: Any, engine: str, column: str) -> str:
    """The type of a column as its engine writes it; Spark tells nobody apart by a type that mixes kinds."""
    if engine == "duckdb":
        return str(native.types[native.columns.index(column)])
    return str(native.schema()[column]).lstrip("!") if engine == "ibis" else ""  # a mark of what is never missing


def _forgets_streams(native: Any, engine: str) -> bool:
    """Whether a DuckDB counts that reads a stream of Arrow batches as empty the second time; newer ones refuse."""
    if engine == "spark" or (engine == "ibis" and native.get_backend().name != "duckdb"):
        return False
    import duckdb

    return int(duckdb.__version__.split(".")[0]) < 2


def _opened(native: Any, engine: str) -> tuple[Any, dict[str, str]]:
    """The lazy frame, and what each column is called in it. Spark reads dots in a name and ignores case: renamed."""
    if engine != "spark":
        frame = nw.from_native(native).lazy()
        return frame, {name: name for name in frame.collect_schema().names()}
    plain = [f"column_{position}" for position in range(len(native.columns))]
    return nw.from_native(native.toDF(*plain)).lazy(), dict(zip(native.columns, plain, strict=True))


class _Key:
    """One variable inside the engine: an expression whose values are codes."""

    def __init__(self, alias: str, matching: Matching, column: str, kind: Any, engine: str):
        self.alias, self.matching, self._engine = alias, matching, engine
        self._column, self._kind = column, kind
        if not kind.is_numeric() and kind not in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
            raise wrong_type(matching, str(kind))

    def code(self, value: int | None) -> int | None:
        return self.matching.catch_all if value is None else value

    def expression(self) -> Any:
        column = nw.col(self._column)
        if self._kind == nw.Boolean:
            return _place(column, self.matching.booleans, self._engine)
        if not self._kind.is_numeric():
            text = column if self._kind == nw.String else column.cast(nw.String)
            return _place(text, self.matching.texts, self._engine)
        if self._kind.is_integer() and self.matching.cuts is None:
            whole = {n: c for n, c in self.matching.numbers.items() if isinstance(n, int) and abs(n) < 2**63}
            return _place(column, whole, self._engine)
        number = column.cast(nw.Float64)
        if self.matching.cuts is None:
            return _place(number, self.matching.floats, self._engine)
        known = ~column.is_null()
        if not self._kind.is_integer():
            known = known & ~number.is_nan()  # engines disagree on how NaN compares
        return nw.when(known).then(_interval(number, list(self.matching.cuts), 0))


def _place(column: Any, codes: Mapping[Any, int], engine: str) -> Any:
    """The code of the first value that the column equals, null if none; of many values, the one among its like first.

    Engines plan for longer than long expressions are. DuckDB can look into a list; a list of others minds collations,
    or is none.
    """
    if not codes:
        return nw.when(column.is_null() & ~column.is_null()).then(nw.lit(0))  # null everywhere
    values, part = list(codes), math.isqrt(len(codes))
    if engine == "duckdb" and len(values) > SIDE_BY_SIDE:
        return column.replace_strict(values, list(codes.values()), default=None, return_dtype=nw.Int64)
    if len(values) > SIDE_BY_SIDE**2:
        parts = [{v: codes[v] for v in values[start : start + part]} for start in range(0, len(values), part)]
        return nw.coalesce(*(nw.when(column.is_in(list(its))).then(_place(column, its, engine)) for its in parts))
    found = [nw.when(column == nw.lit(value)).then(nw.lit(code)) for value, code in codes.items()]
    return nw.coalesce(*found) if len(found) > 1 else found[0]


def _interval(number: Any, cuts: Sequence[float], first: int) -> Any:
    """The number of cut points at or below `number`, by halving: a CASE no deeper than their logarithm."""
    if not cuts:
        return nw.lit(first)
    middle = len(cuts) // 2
    above = _interval(number, cuts[middle + 1 :], first + middle + 1)
    return nw.when(number >= nw.lit(float(cuts[middle]))).then(above).otherwise(_interval(number, cuts[:middle], first))


def _unit(column: str, kind: Any) -> Any:
    unit = nw.col(column)
    return nw.when(~unit.is_nan()).then(unit) if kind.is_float() else unit


# Text is partitioned by its bytes: by a collation "p1" and "P1" would be one person. Where text is a part of the unit,
# both count, since other units may be written alike.


def _numbered_duckdb(relation: Any, keys: Sequence[str], salt: int, spelt: str) -> Any:
    told = {"text": f"encode({_UNIT})", "parts": f"{_UNIT}, encode({_UNIT}::VARCHAR)"}.get(spelt, _UNIT)
    unit = f"PARTITION BY {told} ORDER BY"
    placed = relation.project(f"*, row_number() OVER ({unit} {', '.join(keys)}) AS {_PLACE}")
    return placed.project(f"*, row_number() OVER ({unit} hash({_UNIT}, {_PLACE}, {salt}), {_PLACE}) AS {_RANK}")


def _cells_duckdb(relation: Any, groups: Sequence[Sequence[str]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """As `_cells`, several groups in one query over the same records, so that they are numbered once for all."""
    for first in range(0, len(groups), _TOGETHER):
        some = groups[first : first + _TOGETHER]
        counts = [
            f"SELECT {', '.join([f'{number} AS {_GROUP}', *keys, f'count(*) AS {_ROWS}'])} FROM kept GROUP BY ALL"
            for number, keys in enumerate(some)
        ]
        columns = ", ".join(dict.fromkeys([key for keys in some for key in keys])) or _RANK
        kept = f"WITH kept AS MATERIALIZED (SELECT {columns} FROM dpbn_records) "
        found = relation.query("dpbn_records", kept + " UNION ALL BY NAME ".join(counts))
        place = {name: position for position, name in enumerate(found.columns)}
        cells: list[list[tuple[Any, ...]]] = [[] for _ in some]
        for row in found.fetchall():
            number = row[place[_GROUP]]
            cells[number].append(tuple(row[place[name]] for name in (*some[number], _ROWS)))
        yield from cells


def _numbered_ibis(table: Any, keys: Sequence[str], salt: int, spelt: str) -> Any:
    import ibis

    def unit(of: Any) -> list[Any]:
        # Ibis has no bytes that every engine understands
        return [of[_UNIT], of[_UNIT].hash()] if spelt == "text" else [of[_UNIT]]

    placed = table.mutate(**{_PLACE: ibis.row_number().over(group_by=unit(table), order_by=list(keys))})
    mixed = (placed[_UNIT].cast("string") + "/" + placed[_PLACE].cast("string") + f"/{salt}").hash()
    rank = ibis.row_number().over(group_by=unit(placed), order_by=[mixed, placed[_PLACE]]) + 1  # Ibis counts from 0
    return placed.mutate(**{_RANK: rank})


def _numbered_spark(frame: Any, keys: Sequence[str], salt: int, spelt: str) -> Any:
    from pyspark.sql import Window, functions

    whole = functions.col(_UNIT)
    told = {"text": [whole.cast("binary")], "parts": [whole, whole.cast("string").cast("binary")]}.get(spelt, [whole])
    unit = Window.partitionBy(*told)
    placed = frame.withColumn(_PLACE, functions.row_number().over(unit.orderBy(*keys)))
    mixed = functions.xxhash64(functions.col(_UNIT), functions.col(_PLACE), functions.lit(salt))
    return placed.withColumn(_RANK, functions.row_number().over(unit.orderBy(mixed, _PLACE)))


_NUMBERED: Mapping[str, Callable[[Any, Sequence[str], int, str], Any]] = {
    "duckdb": _numbered_duckdb,
    "ibis": _numbered_ibis,
    "spark": _numbered_spark,
}
