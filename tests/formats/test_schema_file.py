"""The schema file: there and back, and every mistake a typed error."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn import Dag, Schema, Structure, Variable, load_structure
from dpbn.errors import FormatError
from dpbn.formats.schema_file import read_schema, write_schema

STRUCTURE = Structure(
    Schema((Variable("age", ("young", "old")), Variable("heart rate", ("low", "high", "?")))),
    Dag(("age", "heart rate"), {"heart rate": ("age",)}),
)


def test_declarations_are_applied():
    text = """
unit = "patient"
max_contributions = 3
[variables.age]
column = "AGE"
cut_points = [40, 65.5]
states = ["young", "middle", "old", "unknown"]
catch_all = "unknown"
[variables."heart rate"]
catch_all = "?"
"""
    structure, unit, most = read_schema(text, STRUCTURE)
    assert (unit, most) == ("patient", 3)
    assert structure.dag == STRUCTURE.dag
    states = ("young", "middle", "old", "unknown")
    assert structure.schema["age"] == Variable(
        "age", states, column="AGE", cut_points=(40.0, 65.5), catch_all="unknown"
    )
    assert structure.schema["heart rate"].catch_all == "?"
    assert read_schema(write_schema(structure, unit, most), STRUCTURE) == (structure, "patient", 3)


def test_an_empty_file_changes_nothing():
    assert read_schema("", STRUCTURE) == (STRUCTURE, None, 1)


@pytest.mark.parametrize("name", ["asia", "alarm"])
def test_the_written_file_reads_back(name):
    structure = load_structure(name)
    assert read_schema(write_schema(structure), structure) == (structure, None, 1)


labels = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(labels, st.lists(labels, min_size=2, max_size=4, unique=True), labels)
def test_any_label_reads_back(name, states, column):
    variable = Variable(name, tuple(states), column=column, catch_all=states[-1])
    structure = Structure(Schema((variable,)), Dag((name,), {}))
    plain = Structure(Schema((Variable(name, ("x", "y")),)), Dag((name,), {}))
    unit = f"{column} of"
    assert read_schema(write_schema(structure, unit, 2), plain) == (structure, unit, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unit = ", "1:8: a schema file must be TOML"),
        ("a = 1", "no keys but .* got 'a'"),
        ("unit = 3", "name of a column, got 3"),
        ("max_contributions = 2", "must be 1 without a unit"),
        ('unit = "p"\nmax_contributions = 0', "whole number >= 1, got 0"),
        ('unit = "p"\nmax_contributions = true', "whole number >= 1, got True"),
        ('unit = "age"', "whose row it is, got 'age', which holds a variable"),
        ('unit = "y"\n[variables.age]\ncolumn = "y"', "whose row it is, got 'y', which holds a variable"),
        ("variables = 3", "must be tables"),
        ("variables.age = 3", "must be a table"),
        ("variables.weight.column = 'w'", "got 'weight'"),
        ("variables.age.colour = 'w'", "got 'colour'"),
        ("variables.age.column = 3", "column of .* must be a string, got 3"),
        ("variables.age.column = ''", "non-empty"),
        ("variables.age.states = 'ab'", "list of strings"),
        ("variables.age.states = ['a', 3]", "list of strings"),
        ("variables.age.states = ['a', 'a']", "distinct"),
        ("variables.age.cut_points = 3", "list of numbers"),
        ("variables.age.cut_points = ['3']", "list of numbers"),
        ("variables.age.cut_points = ['2024-04-01']", "of dates make numbers or states first"),
        ("variables.age.cut_points = [2024-04-01]", "of dates make numbers or states first"),
        ("variables.age.cut_points = [nan]", "finite"),
        ("variables.age.cut_points = [1, 2]", "one state more"),
        ("variables.age.cut_points = [1, 2]", r"^\[variables.age\]: variable 'age' must have"),
        ("variables.Age.column = 'w'", "got 'Age'; did you mean 'age'"),
        ("unit = person", "1:8: a schema file must be TOML: Invalid value: text needs straight quotes"),
        ("unit = “person”", "text needs straight quotes"),
        ("variables.age.catch_all = 'x'", "one of its states, got 'x'"),
        ("a = " + "[" * 100_000, "nested|TOML"),
        ("a = " + "1" * 10_000, "TOML"),
        ("a = 2020-13-40", "TOML"),
        ("[age]\ncut_points = [40]", r"the section of a variable must be \[variables.age\], got \[age\]"),
        ("folder/ward.schema.toml", r"text of its file, as from read_text\(\), got the name 'folder/ward.schema.toml'"),
        (Path("ward.schema.toml"), r"text of its file, as from read_text\(\), got .*Path"),
    ],
)
def test_a_mistake_is_a_typed_error(text, message):
    with pytest.raises(FormatError, match=message):
        read_schema(text, STRUCTURE)


def test_what_is_written_names_every_key_that_may_be_added():
    header = write_schema(STRUCTURE).partition("[variables.")[0]
    for key in ("unit", "max_contributions", "column", "cut_points", "catch_all"):
        assert f"# {key} = " in header, key
    assert all(line.startswith("#") for line in header.split("\n") if line)


def test_writing_checks_its_arguments():
    with pytest.raises(FormatError, match="whose row it is, got 'age', which holds a variable"):
        write_schema(STRUCTURE, "age")
    with pytest.raises(FormatError, match="must be 1 without a unit"):
        write_schema(STRUCTURE, None, 2)
