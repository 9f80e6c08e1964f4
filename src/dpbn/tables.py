"""Public tables (predictions, synthetic rows, rows to predict) as CSV or Parquet files."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbn.errors import FormatError, InputError
from dpbn.files import write_atomically

if TYPE_CHECKING:
    import pandas

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_table(table: pandas.DataFrame | Mapping[str, Any], path: str | Path) -> Path:
    """Write CSV or Parquet by extension, whole or not at all. In CSV, text that a spreadsheet would run as
    a formula gets a leading apostrophe."""
    import pandas

    path = Path(path)
    frame = pandas.DataFrame(table)
    if path.suffix == ".csv":
        safe = frame.rename(columns=_harmless)
        for column in safe.columns:
            if not pandas.api.types.is_numeric_dtype(safe[column]):
                safe[column] = safe[column].astype(object).map(_harmless, na_action="ignore")
        return write_atomically(path, safe.to_csv(index=False))
    if path.suffix == ".parquet":
        with tempfile.TemporaryFile() as file:
            frame.to_parquet(file, index=False)
            file.seek(0)
            return write_atomically(path, file.read())
    raise InputError(f"an output table must end in .csv or .parquet, got {path.name!r}")


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) and not _number(value) else value


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_table(path: str | Path) -> pandas.DataFrame:
    """CSV (all columns as text, empty is missing) or Parquet."""
    import pandas

    path = Path(path)
    try:
        if path.suffix == ".parquet":
            return pandas.read_parquet(path)
        if path.suffix == ".csv":
            return pandas.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    except (ValueError, OSError) as error:
        raise FormatError(f"must be a readable table: {type(error).__name__}", source=str(path)) from None
    raise InputError(f"a table must end in .csv or .parquet, got {path.name!r}")
