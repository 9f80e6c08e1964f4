"""One suite for every engine of the main environment; Ibis and its back ends run in tests/ibis_env."""

import pandas as pd
import pytest
from table_contract import CASES, Case, check, plain

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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", ENGINES)
def test_engine_counts_like_the_oracle(name: str, case: Case, tmp_path):
    check(case, ENGINES[name](case.table, tmp_path))
