"""Public tables (predictions, synthetic rows, rows to predict) as CSV or Parquet files."""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbn.errors import DpbnError, FormatError, InputError
from dpbn.files import MOST_COLUMNS, csv_header, is_utf16, other_mark, write_atomically
from dpbn.matching import FORMULA_STARTS, is_number

if TYPE_CHECKING:
    import pandas


def check_ending(path: str | Path) -> Path:
    """Refuse a name that says no format, before the work that the table is."""
    path = Path(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"an output table must end in .csv or .parquet, got {path.name!r}")
    return path


def write_table(table: pandas.DataFrame | Mapping[str, Any], path: str | Path) -> Path:
    """Write CSV or Parquet by extension, whole or not at all. In CSV, text that a spreadsheet would run as
    a formula gets a leading apostrophe."""
    import pandas

    path = check_ending(path)
    frame = pandas.DataFrame(table)
    if path.suffix.lower() == ".csv":
        safe = frame.rename(columns=_harmless)
        for column in safe.columns:
            if not pandas.api.types.is_numeric_dtype(safe[column]):
                safe[column] = safe[column].astype(object).map(_harmless, na_action="ignore")
        text = safe.to_csv(index=False)
        if ";" in text or "\t" in text:  # spreadsheets may separate by these: quotes keep a cell whole
            text = safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
        return write_atomically(path, text)
    with tempfile.TemporaryFile() as file:
        frame.to_parquet(file, index=False)
        file.seek(0)
        return write_atomically(path, file.read())


def _harmless(value: Any) -> Any:
    runs = isinstance(value, str) and value.startswith(FORMULA_STARTS) and not is_number(value)
    return f"'{value}" if runs else value


def read_table(path: str | Path) -> pandas.DataFrame:
    """CSV (all columns as text, empty is missing) or Parquet."""
    import pandas

    path = Path(path)
    try:
        if path.suffix.lower() == ".parquet":
            table = pandas.read_parquet(path)
            return table.reset_index() if any(table.index.names) else table  # pandas sets some columns apart
        if path.suffix.lower() == ".csv":
            return _read_csv(path)
    except DpbnError:
        raise
    except (ValueError, OSError) as error:
        raise FormatError(f"a table must be readable: {_reason(error, path)}", source=str(path)) from None
    raise InputError(f"a table must end in .csv or .parquet, got {path.name!r}")


def _read_csv(path: Path) -> pandas.DataFrame:
    """Lines of another length are refused: pandas would take their first fields for an index and shift the others."""
    from pyarrow import csv as arrow
    from pyarrow import string

    with path.open("rb") as file:
        width = len(csv_header(file))
    if width > MOST_COLUMNS:
        raise InputError(f"{path.name!r} must have at most {MOST_COLUMNS:,} columns, got {width:,}")
    with arrow.open_csv(path, parse_options=arrow.ParseOptions(newlines_in_values=True)) as opened:
        names = opened.schema.names
    if len(set(names)) < len(names):
        several = [name for name, times in Counter(names).items() if times > 1]
        raise InputError(f"columns of {path.name!r} must have different names, got {several[:10]} several times")
    alone = len(names) == 1  # in a single column an empty line is a missing value
    table = arrow.read_csv(
        path,
        parse_options=arrow.ParseOptions(newlines_in_values=True, ignore_empty_lines=not alone),
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(names, string()), null_values=[""], strings_can_be_null=True
        ),
    )
    return table.to_pandas()


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, ValueError) and is_utf16(path):
        return "its text must be UTF-8, got UTF-16: save it as CSV UTF-8"
    if fields := re.search(r"Expected (\d+) columns, got (\d+)", str(error)):
        with path.open("rb") as file:
            mark = other_mark(csv_header(file))
        hint = f" (columns must be separated by commas, got {mark!r} between them)" if mark else ""
        return f"lines must have as many fields as the header, {fields[1]}, got one with {fields[2]}{hint}"
    if "Empty CSV file" in str(error):
        return "it must have a header line and rows, got an empty file"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    is_text = not (isinstance(error, UnicodeDecodeError) or "UTF8" in str(error))
    return type(error).__name__ if is_text else "its text must be UTF-8"
