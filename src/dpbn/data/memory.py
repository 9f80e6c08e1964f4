"""Tables already in memory: pandas, polars, pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dpbn.data.rows import Block
from dpbn.errors import InputError

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True)
class TableReader:
    """A table in memory. A column is converted when it is asked for, so that only one is held twice at a time."""

    columns: Sequence[str]
    rows: int
    column: Callable[[str], Any]
    in_memory = True

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        del names
        yield Block(self.rows, self.column)


def arrow_reader(table: pa.Table) -> TableReader:
    return TableReader(table.column_names, table.num_rows, table.column)


def pandas_reader(frame: pandas.DataFrame) -> TableReader:
    return TableReader(list(frame.columns), len(frame), partial(_from_pandas, frame))


def polars_reader(frame: polars.DataFrame) -> TableReader:
    return TableReader(frame.columns, frame.height, partial(_from_polars, frame))


def _from_pandas(frame: pandas.DataFrame, name: str) -> Any:
    """An Arrow array where pandas knows the type of all values, else the values as they stand.

    Arrow would choose one type for all values of a column without one: a single 0.5 would turn every True into 1.0.
    What one record holds must not change what the others mean.
    """
    from pandas.api.types import infer_dtype, is_object_dtype

    series = frame[name]
    distinct = getattr(series.dtype, "categories", series)
    if is_object_dtype(distinct.dtype) and infer_dtype(distinct, skipna=True) != "string":
        return series.to_numpy(dtype=object)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError):
        return series.to_numpy(dtype=object)


def _from_polars(frame: polars.DataFrame, name: str) -> Any:
    """An Arrow array, or Python objects as they stand: Arrow would see the place of each in memory, not its value."""
    series = frame.get_column(name)
    if str(series.dtype) == "Object":
        return np.fromiter(series.to_list(), dtype=object, count=len(series))
    return series.to_arrow()


_PLAN_LINE = re.compile(
    r" *($|DF \[|(?i:parquet|csv|ipc|ndjson) SCAN|PROJECT |ESTIMATED ROWS|SELECT \[|simple π |WITH_COLUMNS:|\[|FILTER "
    r"|FROM$|(?:END )?UNION\[maintain_order: true\]|PLAN \d+:)"
)
_CALL = re.compile(r"((?:\.[a-z]\w*)+|\w+)\(|\b(Series)\b")  # what stands before the dot may be a literal
_ROW_BY_ROW = frozenset(
    """
    col when .then .otherwise .alias .cast .strict_cast .not .is_null .is_not_null .is_nan .is_not_nan .is_in
    .is_between .fill_null .fill_nan .coalesce .replace .replace_strict .cut .clip .abs .round .floor .ceil
    .str.to_lowercase .str.to_uppercase .str.strip_chars .str.strip_prefix .str.strip_suffix .str.slice .str.replace
    .str.replace_all .str.contains .str.starts_with .str.ends_with .str.len_chars .str.zfill
    .str.to_titlecase .str.concat_horizontal .dt.year .dt.month .dt.day .dt.hour .dt.weekday .dt.date .list.get
    .list.length .list.contains .negate .min_horizontal .max_horizontal .struct.field_by_name
    Datetime Duration Decimal Enum List Array Struct Unknown Int
    """.split()  # noqa: SIM905
)


class PolarsLazyReader:
    """A polars query, run in batches each time it is counted.

    `in_order`: taking one person's rows out must leave the others as they are, and in their order. So the query must
    work row by row, as its plan tells: what polars joins, groups or sorts comes in another order every time, and what
    an expression may do with other rows has no end. A text that reads like such a step is refused, too.
    """

    in_memory = False

    def __init__(self, query: polars.LazyFrame, in_order: bool):
        self._query = query
        plan = query.explain(optimized=False) if in_order else ""
        steps = [line for line in plan.splitlines() if not _PLAN_LINE.match(line)]
        calls = [name for found in _CALL.findall(plan) if (name := "".join(found)) not in _ROW_BY_ROW]
        for step in (*(re.split(r"[^\w ]", step.strip())[0] for step in steps), *calls):
            raise InputError(f"a polars query with a unit must work row by row, got {step!r:.40}: collect() it first")

    @property
    def columns(self) -> Sequence[str]:
        return self._query.collect_schema().names()

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        for frame in self._query.select(list(names)).collect_batches(chunk_size=1 << 17, maintain_order=True):
            yield Block(frame.height, partial(_from_polars, frame), share=None)
