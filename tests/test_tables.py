"""Public tables: formula-safe CSV, Parquet, and refusals."""

import csv
import errno

import numpy as np
import pandas
import pytest

import dpbn
from dpbn import Dag, Schema, Structure, Variable
from dpbn.errors import DpbnError, InputError
from dpbn.tables import read_table, write_table


def test_csv_is_harmless_in_a_spreadsheet(tmp_path):
    frame = pandas.DataFrame({"=cmd": ["=1+1", "@x", "-2", "+3.5", "plain", None], "n": [1, -2, 3, 4, 5, 6]})
    text = write_table(frame, tmp_path / "t.csv").read_text()
    assert text.splitlines()[0] == "'=cmd,n"
    assert "'=1+1" in text
    assert "'@x" in text
    assert "\n-2,3" in text  # a negative number is a number
    assert read_table(tmp_path / "t.csv")["n"].tolist() == ["1", "-2", "3", "4", "5", "6"]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_csv_is_harmless_in_a_spreadsheet_that_separates_by_other_marks(tmp_path, mark):
    frame = pandas.DataFrame({f"n{mark}=1+1": [f"x{mark}=cmd|' /C calc'!A0", "y", None], "p": [0.5, -1.0, 2.0]})
    path = write_table(frame, tmp_path / "t.csv")
    cells = [cell for line in csv.reader(path.read_text().splitlines(), delimiter=mark) for cell in line]
    assert not any(cell.startswith("=") for cell in cells), cells
    assert read_table(path).iloc[:2].equals(frame.iloc[:2].astype(str))
    assert pandas.isna(read_table(path).iloc[2, 0])


def test_parquet_keeps_values(tmp_path):
    frame = pandas.DataFrame({"a": pandas.Categorical(["=x", "y"])})
    assert read_table(write_table(frame, tmp_path / "t.parquet"))["a"].tolist() == ["=x", "y"]


def test_columns_that_pandas_set_apart_in_parquet_are_read(tmp_path):
    pandas.DataFrame({"id": ["a", "b"], "n": [1, 2]}).set_index("id").to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").to_dict("list") == {"id": ["a", "b"], "n": [1, 2]}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_file_that_cannot_be_opened_says_why(tmp_path, monkeypatch, name):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "open")

    (tmp_path / name).touch()
    monkeypatch.setattr("pyarrow.csv.open_csv", refuse)
    monkeypatch.setattr("pandas.read_parquet", refuse)
    with pytest.raises(DpbnError, match="a table must be readable: Permission denied"):
        read_table(tmp_path / name)


def test_other_extensions_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.csv or \.parquet"):
        write_table({"a": [1]}, tmp_path / "t.pickle")
    with pytest.raises(InputError):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    "text, told",
    [
        ("a,b,c\n1,2,3,\n1,2,3,\n", "as the header, 3, got one with 4"),
        ("a,b\n1\n", "as the header, 2, got one with 1"),
        ("a,b,b,c\n1,2,3,4\n", r"different names, got \['b'\] several times"),
        ("a;b;how, by car\n1;2;no\n", "separated by commas, got ';' between them"),
        ("a\tb\n1,5\t2\n", "separated by commas"),
        ("a;b\n1,5;2\n".encode("utf-16"), "got UTF-16: save it as CSV UTF-8"),
        ("", "a table must be readable: it must have a header line and rows, got an empty file"),
    ],
)
def test_a_csv_file_that_would_shift_or_lose_columns_is_refused(text, told, tmp_path):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DpbnError, match=told):
        read_table(tmp_path / "t.csv")


def test_a_csv_file_of_too_many_columns_is_refused_at_once(tmp_path):
    (tmp_path / "t.csv").write_text("," * 1_000_000 + "\n")
    with pytest.raises(InputError, match="at most 16,384 columns, got 1,000,001"):
        read_table(tmp_path / "t.csv")


def test_an_empty_line_of_a_single_column_is_a_missing_value(tmp_path):
    (tmp_path / "t.csv").write_text("a\n85\n\n110\n")
    assert read_table(tmp_path / "t.csv")["a"].isna().tolist() == [False, True, False]


def test_states_that_look_like_formulas_survive_a_csv_file(tmp_path):
    """Written after an apostrophe, and understood again by whoever learns from the file or predicts."""
    strip = Variable("strip", ("-", "+", "++", "=1"))
    structure = Structure(Schema((strip, Variable("y", ("no", "yes")))), Dag(("strip", "y"), {"y": ("strip",)}))
    frame = pandas.DataFrame({"strip": ["-", "++", "=1", "+"], "y": ["yes"] * 4})
    path = write_table(frame, tmp_path / "t.csv")
    release = dpbn.learn(path, structure, method="exact")
    np.testing.assert_allclose(release.network.cpt("strip"), [0.25] * 4)
    asked = dpbn.Inference(release).predict_proba(read_table(path)[["strip"]], "y")
    assert asked.shape == (4, 2)


@pytest.mark.parametrize("name", ["@home", "'@home", "-x", "plain"])
def test_names_that_look_like_formulas_survive_a_csv_file(name, tmp_path):
    """Headers are disarmed like values, and found again by whoever learns from the file or predicts."""
    structure = Structure(
        Schema((Variable(name, ("no", "yes")), Variable("y", ("no", "yes")))), Dag((name, "y"), {"y": (name,)})
    )
    path = write_table({name: ["no", "yes", "yes", "yes"], "y": ["no", "yes", "yes", "yes"]}, tmp_path / "t.csv")
    release = dpbn.learn(path, structure, method="exact")
    np.testing.assert_allclose(release.network.cpt(name), [0.25, 0.75])
    asked = dpbn.Inference(release).predict_proba(read_table(path), "y")
    np.testing.assert_allclose(asked[:, 1], [0, 1, 1, 1])
    dpbn.Inference(release).predict_proba(read_table(path)[[read_table(path).columns[0]]], name)


@pytest.mark.parametrize("name", ["T.CSV", "t.Parquet"])
def test_an_extension_may_be_written_in_capitals(tmp_path, name):
    write_table({"x": ["yes", "no"]}, tmp_path / name)
    assert read_table(tmp_path / name)["x"].tolist() == ["yes", "no"]
