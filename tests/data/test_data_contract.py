"""One suite for every engine of the main environment; Ibis and its back ends run in tests/ibis_env."""

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.table_contract import CASES, Case, check, plain

ENGINES = {}


def engine(name):
    def register(function):
        ENGINES[name] = function
        return function

    return register


@engine("pyarrow")
def _pyarrow(table, folder):
    return table


@engine("pandas")
def _pandas(table, folder):
    return table.unify_dictionaries().to_pandas()


@engine("pandas-objects")
def _pandas_objects(table, folder):
    return pd.DataFrame({name: pd.Series(table.column(name).to_pylist(), dtype=object) for name in table.column_names})


@engine("pandas-arrow")
def _pandas_arrow(table, folder):
    return plain(table).to_pandas(types_mapper=pd.ArrowDtype)


@engine("pandas-nullable")
def _pandas_nullable(table, folder):
    return _pandas(table, folder).convert_dtypes()


@engine("polars")
def _polars(table, folder):
    import polars

    return polars.from_arrow(table.unify_dictionaries())


@engine("polars-lazy")
def _polars_lazy(table, folder):
    return _polars(table, folder).lazy()


@engine("parquet")
def _parquet(table, folder):
    pq.write_table(table, folder / "one.parquet", row_group_size=2)
    return folder / "one.parquet"


@engine("parquet-folder")
def _parquet_folder(table, folder):
    """Every file with its own dictionary, and text written plainly."""
    half = table.num_rows // 2
    for part, rows in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(plain(rows), folder / f"part-{part}.parquet")
    return str(folder)


@engine("csv")
def _csv(table, folder):
    pa.csv.write_csv(plain(table), folder / "table.csv")
    return str(folder / "table.csv")


@engine("csv-glob")
def _csv_glob(table, folder):
    for part in range(3):
        rows = table.slice(part * 2, 2 if part < 2 else None)
        pd.DataFrame(plain(rows).to_pandas()).to_csv(folder / f"part-{part}.csv", index=False)
    return str(folder / "part-*.csv")


@engine("duckdb")
def _duckdb(table, folder):
    import duckdb

    held = plain(table)
    connection = duckdb.connect()
    connection.register("held", held)
    return connection.table("held")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", ENGINES)
def test_engine_counts_like_the_oracle(name: str, case: Case, tmp_path):
    check(case, ENGINES[name](case.table, tmp_path))
