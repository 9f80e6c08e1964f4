"""The table of results: one row per (network, method, epsilon, rows, run), in Parquet or CSV; means and errors."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbn.errors import InputError
from dpbn.evaluate.metrics import MEASURES
from dpbn.files import write_atomically

if TYPE_CHECKING:
    import pandas

KEY = ("network", "method", "epsilon", "rows", "run", "queries", "against", "seed")
COLUMNS = (*KEY, "delta", "data_seed", "question_seed", "noise_seed", "seconds", *MEASURES, "refusal")
Row = dict[str, Any]


def check_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"a table of results must end in .parquet or .csv, got {path.name!r}")
    return path


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """The whole table, written beside the old one and renamed over it."""
    import pandas

    path = check_path(path)
    table = pandas.DataFrame(list(rows), columns=list(COLUMNS))
    table["refusal"] = table["refusal"].astype("string")
    buffer = io.BytesIO()
    if path.suffix == ".csv":
        table.to_csv(buffer, index=False)
    else:
        table.to_parquet(buffer, index=False)
    write_atomically(path, buffer.getvalue())


def read_rows(path: str | Path) -> list[Row]:
    """Rows written by `write_rows`; none if there is no file yet."""
    import pandas

    path = check_path(path)
    if not path.exists():
        return []
    if path.suffix == ".csv":
        from pyarrow import csv, string

        text = dict.fromkeys(("network", "method", "against", "refusal"), string())
        table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=text)).to_pandas()
    else:
        table = pandas.read_parquet(path)
    missing = sorted(set(COLUMNS) - set(table.columns))
    if missing:
        raise InputError(f"{path.name!r} must be a table of results of this version, got none of the columns {missing}")
    rows: list[Row] = table.to_dict("records")
    for row in rows:
        row["refusal"] = row["refusal"] if isinstance(row["refusal"], str) else ""
    return rows


def key(row: Row) -> tuple[Any, ...]:
    """What makes a row unique: a restart skips the keys that are there."""
    return tuple(row[name] for name in KEY)


def summary(rows: Iterable[Row]) -> pandas.DataFrame:
    """Mean and standard error over runs of every measure, one row for all runs of a kind.

    `runs` counts those that gave an answer, `refusal` says why others did not.
    """
    import pandas

    table = pandas.DataFrame(list(rows), columns=list(COLUMNS))
    columns, by = [*MEASURES, "seconds"], ["network", "rows", "epsilon", "method"]
    groups = table.groupby(by, sort=False)
    means = groups[columns].mean()
    errors = groups[columns].agg(standard_error).add_suffix("_se")
    done = (table["refusal"] == "").groupby([table[name] for name in by], sort=False).sum().rename("runs")
    reason = groups["refusal"].agg("max").rename("refusal")
    return pandas.concat([means, errors, done, reason], axis=1).reset_index()


def entry(table: pandas.DataFrame, network: str, method: str, epsilon: float) -> Row | None:
    """The row of a summary for one network, method and epsilon, if there is one."""
    mine = table[(table["network"] == network) & (table["method"] == method) & (table["epsilon"] == epsilon)]
    return next(iter(mine.to_dict("records")), None)


def with_error(value: float, error: float, digits: int = 4) -> str:
    """A mean and its standard error in so many digits, as far as they are numbers."""
    if math.isnan(value):
        return "–"
    return f"{value:.{digits}f}" + ("" if math.isnan(error) else f" ± {error:.{digits}f}")


def standard_error(values: Any) -> float:
    """Of the mean; not a number below two values."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")
