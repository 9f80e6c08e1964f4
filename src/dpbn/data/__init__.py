"""Private rows in any engine -> integer codes -> contingency tables. The last sight of rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dpbn.data.rows import Progress, Reader, Reading, RowSource, known_codes
from dpbn.data.sealed import sealed
from dpbn.errors import InputError, received
from dpbn.matching import matchings
from dpbn.network import Structure

if TYPE_CHECKING:
    from dpbn.data.pushdown import PushdownSource

__all__ = ["has_records", "open_source"]


@sealed
def open_source(
    data: Any,
    structure: Structure,
    *,
    unit: str | None = None,
    max_contributions: int = 1,
    on_unknown: str = "error",
    progress: Progress | None = None,
) -> RowSource | PushdownSource:
    """Make `data` countable: check options and column names now, read values only when counts are asked for.

    `progress` is told while counting how much of the pass is done. It follows the table: for the custodian only.
    """
    if isinstance(max_contributions, bool) or not isinstance(max_contributions, int) or max_contributions < 1:
        raise InputError(f"max_contributions must be a whole number >= 1, got {received(max_contributions)}")
    if unit is None and max_contributions != 1:
        raise InputError(f"max_contributions must be 1 without a unit column, got {max_contributions}")
    if unit is not None and (not isinstance(unit, str) or not unit):
        raise InputError(f"unit must be the name of a column, got {received(unit)}")
    if unit is not None and any("\ud800" <= letter <= "\udfff" for letter in unit):  # halves of pairs
        raise InputError(f"unit must be a name that a release file can hold, got {received(unit)}")
    progress = None if progress is None else _told(progress)
    reading = Reading(structure.schema, matchings(structure.schema, on_unknown), on_unknown, unit, max_contributions)
    engine = _engine(data)
    if engine is None:
        return RowSource(_reader(data, unit), reading, progress)
    from dpbn.data.pushdown import PushdownSource

    return PushdownSource(data, engine, reading, progress)


@sealed
def has_records(path: str, structure: Structure, unit: str | None, on_unknown: str) -> bool:
    """Whether any record in these files counts, read up to the first that does. Exact: for the custodian only."""
    reader = _reader(path, unit)
    if on_unknown != "drop":  # all count, or the table is refused where it is counted
        return any(block.rows for block in reader.blocks(reader.columns[:1]))
    reading = Reading(structure.schema, matchings(structure.schema, on_unknown), on_unknown, unit)
    reading.check_columns(reader.columns)
    return any(codes.shape[1] for codes in known_codes(reader, reading))


def _told(progress: Progress) -> Progress:
    """The caller's function; if it fails, that is not told as a fault of the table."""

    def tell(share: float | None) -> None:
        try:
            progress(share)
        except Exception as error:
            raise InputError(f"progress must take a share from 0 to 1, or None, got {type(error).__name__}") from None

    return tell


def _kinds(data: Any) -> set[tuple[str, str]]:
    """Package and name of every class of `data`: no engine is imported to find out what it is."""
    return {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__}


def _engine(data: Any) -> str | None:
    """The engine that counts by itself, if `data` lives in one."""
    for package, name in _kinds(data):
        if name == "DuckDBPyRelation":
            return "duckdb"
        if package == "ibis" and name == "Table":
            return "ibis"
        if package == "pyspark" and name == "DataFrame":
            return "spark"
    return None


def _reader(data: Any, unit: str | None) -> Reader:
    """The reader for this kind of table."""
    from dpbn.data import memory

    kinds = _kinds(data)
    if ("pandas", "DataFrame") in kinds:
        return memory.pandas_reader(data)
    if ("pyarrow", "Table") in kinds:
        return memory.arrow_reader(data)
    if ("polars", "DataFrame") in kinds:
        return memory.polars_reader(data)
    if ("polars", "LazyFrame") in kinds:
        return memory.PolarsLazyReader(data, in_order=unit is not None)
    if isinstance(data, (str, os.PathLike)):
        from dpbn.data.files import file_reader

        return file_reader(os.fspath(data))
    kind = type(data)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    hint = ': give a table of it, as connection.table("NAME")' if name.endswith("DuckDBPyConnection") else ""
    raise InputError(f"data must be a table, a path or a query of a known engine, got {name}{hint}")
