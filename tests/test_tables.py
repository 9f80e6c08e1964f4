"""Public tables: formula-safe CSV, Parquet, and refusals."""

import pandas
import pytest

from dpbn.errors import InputError
from dpbn.tables import read_table, write_table


def test_csv_is_harmless_in_a_spreadsheet(tmp_path):
    frame = pandas.DataFrame({"=cmd": ["=1+1", "@x", "-2", "+3.5", "plain", None], "n": [1, -2, 3, 4, 5, 6]})
    text = write_table(frame, tmp_path / "t.csv").read_text()
    assert text.splitlines()[0] == "'=cmd,n"
    assert "'=1+1" in text
    assert "'@x" in text
    assert "\n-2,3" in text  # a negative number is a number
    assert read_table(tmp_path / "t.csv")["n"].tolist() == ["1", "-2", "3", "4", "5", "6"]


def test_parquet_keeps_values(tmp_path):
    frame = pandas.DataFrame({"a": pandas.Categorical(["=x", "y"])})
    assert read_table(write_table(frame, tmp_path / "t.parquet"))["a"].tolist() == ["=x", "y"]


def test_other_extensions_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.csv or \.parquet"):
        write_table({"a": [1]}, tmp_path / "t.pickle")
    with pytest.raises(InputError):
        read_table(tmp_path / "t.xlsx")
