"""Limits, policies and refusals that do not depend on the engine."""

import itertools

import pandas as pd
import pyarrow as pa
import pytest

from dpbn.data import open_source
from dpbn.data.packing import pack
from dpbn.domain import Schema, Variable
from dpbn.errors import DataError, InputError, StructureError, TooLargeError
from dpbn.formats import load_network
from dpbn.graph import Dag
from dpbn.network import Structure


def independent(*variables: Variable) -> Structure:
    names = tuple(variable.name for variable in variables)
    return Structure(Schema(variables), Dag(names, {}))


def test_too_large_tables_are_refused_before_any_row_is_read():
    variables = [Variable(f"v{i}", tuple(map(str, range(100)))) for i in range(40)]
    structure = independent(*variables)

    class Untouchable(pd.DataFrame):
        def __getitem__(self, key):
            raise AssertionError("a value was read")

    source = open_source(Untouchable(columns=list(structure.nodes)), structure)
    with pytest.raises(TooLargeError, match=r"at most 10,000,000 cells, got 100,000,000: .*merge states"):
        source.counts([("v0", "v1", "v2", "v3")])
    with pytest.raises(TooLargeError, match=r"at most 100,000,000 cells, got 101,000,000"):
        source.counts(list(itertools.combinations(structure.nodes, 3))[:101])


def test_limits_are_inclusive():
    structure = independent(Variable("a", tuple(map(str, range(10_000)))), Variable("b", tuple(map(str, range(1000)))))
    table = pa.table({"a": ["9999"], "b": ["0"]})
    assert open_source(table, structure).counts([("a", "b")])[("a", "b")][9999, 0] == 1


def test_alarm_packs_into_six_groups_that_cover_every_family():
    structure = load_network("alarm").structure
    sets = [family.names for family in structure.dag.families]
    groups = pack(structure.schema, sets)
    assert len(groups) == 6
    assert sorted(names for group in groups for names in group.sets) == sorted(sets)
    assert all(set(names) <= set(group.names) for group in groups for names in group.sets)
    assert max(group.cells for group in groups) <= 8192


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_unknown": "other"}, "a declared catch-all state"),
        ({"on_unknown": "catchall"}, "'catch_all' or a declared .* got 'catchall'; did you mean 'catch_all'"),
        ({"on_unknown": "catch_all"}, "declares a catch_all state, got none"),
        ({"on_unknown": None}, "got None"),
        ({"max_contributions": 2}, "must be 1 without a unit"),
        ({"unit": "p", "max_contributions": 0}, "whole number >= 1, got 0"),
        ({"unit": "p", "max_contributions": True}, "got True"),
        ({"unit": ""}, "name of a column"),
    ],
)
def test_bad_options_are_refused_at_once(options, message):
    with pytest.raises(InputError, match=message):
        open_source(pd.DataFrame({"x": ["a"], "p": [1]}), independent(Variable("x", ("a", "b"))), **options)


def test_a_variable_without_catch_all_still_refuses_unknown_values():
    structure = independent(Variable("x", ("a", "other"), catch_all="other"), Variable("y", ("a", "b")))
    source = open_source(pd.DataFrame({"x": ["?"], "y": ["?"]}), structure, on_unknown="other")
    with pytest.raises(DataError, match="in 'y': 1, of 1 records"):
        source.counts([("x",)])


def test_catch_all_is_proposed_where_every_refused_column_has_one():
    structure = independent(Variable("x", ("a", "other"), catch_all="other"), Variable("y", ("a", "b")))
    proposed = r"'drop' leaves such records out, 'catch_all' puts such values into the states declared for them$"
    with pytest.raises(DataError, match=proposed):
        open_source(pd.DataFrame({"x": ["?", "a"], "y": ["a", "b"]}), structure).counts([("x",)])
    for rows in ({"x": ["?", "a"], "y": ["?", "b"]}, {"x": ["?", "a"], "y": ["a", "b"], "p": [None, "1"]}):
        with pytest.raises(DataError, match=r"'drop' leaves such records out$"):
            open_source(pd.DataFrame(rows), structure, unit="p" if "p" in rows else None).counts([("x",)])


def test_a_connection_is_no_table_yet():
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(InputError, match=r"got .*DuckDBPyConnection: give a table of it, as connection.table"):
        open_source(duckdb.connect(), independent(Variable("x", ("a",))))


def test_who_catches_values_is_not_sent_to_drop_without_a_word():
    """ "drop" catches nothing: the records whose values were to be caught would go as well."""
    structure = independent(Variable("x", ("a", "other"), catch_all="other"), Variable("y", ("a", "b")))
    table = pd.DataFrame({"x": ["?", "a", "?"], "y": ["a", "b", "?"]})
    told = "declare a catch_all state for 'y' too; on_unknown='drop' leaves out all records with an unknown value"
    for policy in ("catch_all", "other"):
        with pytest.raises(DataError, match=told):
            open_source(table, structure, on_unknown=policy).counts([("x",)])


def test_missing_repeated_and_mistyped_columns():
    structure = independent(Variable("x", ("a", "b")))
    with pytest.raises(DataError, match=r"got 1 columns without \['x'\]"):
        open_source(pd.DataFrame({"z": ["a"]}), structure)
    with pytest.raises(DataError, match="several times"):
        open_source(pd.DataFrame([["a", "b"]], columns=["x", "x"]), structure)
    with pytest.raises(DataError, match="got type timestamp: of dates make numbers or states first"):
        open_source(pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}), structure).counts([("x",)])
    with pytest.raises(InputError, match="got dict"):
        open_source({"x": ["a"]}, structure)


def test_two_labels_of_one_number_cannot_match_numbers():
    structure = independent(Variable("x", ("1", "1.0")))
    assert open_source(pd.DataFrame({"x": ["1.0"]}), structure).counts([("x",)])[("x",)].tolist() == [0, 1]
    with pytest.raises(StructureError, match="different numbers"):
        open_source(pd.DataFrame({"x": [1]}), structure).counts([("x",)])


def test_a_column_of_several_kinds_follows_the_same_rule():
    structure = independent(Variable("x", ("1", "true", "b", "other"), catch_all="other"))
    frame = pd.DataFrame({"x": pd.Series([1, 1.0, "1", True, "b", None, 2, [1], False], dtype=object)})
    counts = open_source(frame, structure, on_unknown="other").counts([("x",)])
    assert counts[("x",)].tolist() == [3, 1, 1, 4]


def test_sampling_masks_records():
    frame = load_network("asia").sample(100, seed=1)
    source = open_source(frame, load_network("asia").structure)
    half = source.sampled_counts([("asia", "smoke")], lambda rows: pd.Series(range(rows)).to_numpy() < 50)
    first = open_source(frame.iloc[:50], load_network("asia").structure).counts([("asia", "smoke")])
    assert source.can_sample_rows
    assert half[("asia", "smoke")].tolist() == first[("asia", "smoke")].tolist()


@pytest.mark.parametrize("states", [255, 256])
def test_the_mark_of_an_unknown_value_is_no_state(states):
    labels = tuple(map(str, range(states)))
    source = open_source(pa.table({"v": [*labels, "?"]}), independent(Variable("v", labels)), on_unknown="drop")
    assert source.counts([("v",)])["v",].tolist() == [1] * states


def test_numbers_match_labels_that_they_equal_and_no_others():
    structure = independent(Variable("v", ("1", "0.5", "300")))
    for column in (pa.array([1, 2], pa.int8()), pa.array([1.0, 0.5000001, 300.0001, 1 - 1e-9])):
        source = open_source(pa.table({"v": column}), structure, on_unknown="drop")
        assert source.counts([("v",)])["v",].tolist() == [1, 0, 0]


def test_a_missing_column_says_which_name_it_may_have_and_how_to_declare_it():
    structure = independent(Variable("hb", ("a",)), Variable("stay", ("b",)), Variable("sex", ("F",), column="gender"))
    table = pd.DataFrame({"Hb": ["a"], "los": ["b"], "gender": ["F"]})
    with pytest.raises(DataError) as caught:
        open_source(table, structure)
    told = str(caught.value)
    assert "without ['hb', 'stay']; a column of another name" in told and told.endswith("; did you mean 'Hb' for 'hb'?")
    with pytest.raises(DataError) as caught:
        open_source(table.rename(columns={"Hb": "hb", "los": "stay", "gender": "g"}), structure)
    assert str(caught.value).endswith("without ['gender']")  # its column is declared, and wrong
