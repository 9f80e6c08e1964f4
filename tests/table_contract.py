"""What every engine must count alike: cases as Arrow tables, and a plain Python oracle for their counts.

The oracle knows nothing of `dpbn.data`: it walks records and applies the written matching rule.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.errors import DataError
from dpbn.graph import Dag
from dpbn.network import Structure

NAN = float("nan")


@dataclass
class Case:
    name: str
    variables: tuple[Variable, ...]
    table: pa.Table
    options: dict[str, Any] = field(default_factory=dict)
    unknown: dict[str, int] | None = None  # columns and counts the refusal must tell

    @property
    def structure(self) -> Structure:
        names = tuple(variable.name for variable in self.variables)
        return Structure(Schema(self.variables), Dag(names, {b: (a,) for a, b in itertools.pairwise(names)}))

    @property
    def sets(self) -> list[tuple[str, ...]]:
        names = [variable.name for variable in self.variables]
        pairs = [pair for a, b in itertools.combinations(names, 2) for pair in ((a, b), (b, a))]
        return [(), *((name,) for name in names), *pairs, tuple(reversed(names))]


def state_of(variable: Variable, value: Any) -> int | None:
    """The written rule, one value at a time."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return variable.states.index(value) if value in variable.states else None
    if isinstance(value, bool):
        return next((i for i, s in enumerate(variable.states) if s.lower() == str(value).lower()), None)
    if variable.cut_points is not None:
        return sum(value >= cut for cut in variable.cut_points)
    for i, state in enumerate(variable.states):
        try:
            number = int(state) if state.lstrip("+-").isdigit() else float(state)
            if number == value and math.isfinite(number):
                return i
        except ValueError:
            continue
    return None


def expected_counts(case: Case) -> dict[tuple[str, ...], np.ndarray]:
    policy = case.options.get("on_unknown", "error")
    unit, limit = case.options.get("unit"), case.options.get("max_contributions", 1)
    seen: dict[Any, int] = {}
    records = []
    for row in case.table.to_pylist():
        if unit is not None:
            if row[unit] is None:
                continue
            seen[row[unit]] = seen.get(row[unit], 0) + 1
            if seen[row[unit]] > limit:
                continue
        codes = {}
        for variable in case.variables:
            code = state_of(variable, row[variable.column or variable.name])
            if code is None and policy not in ("error", "drop"):
                code = variable.states.index(variable.catch_all)
            codes[variable.name] = code
        if None not in codes.values():
            records.append(codes)
    schema = case.structure.schema
    tables = {}
    for names in case.sets:
        table = np.zeros(schema.shape(names), dtype=np.int64)
        for codes in records:
            table[tuple(codes[name] for name in names)] += 1
        tables[names] = table
    return tables


def check(case: Case, native: Any) -> None:
    """`native` is the case's table in some engine: counts must equal the oracle's, or the refusal must be told."""
    if case.unknown is not None:
        source = open_source(native, case.structure, **case.options)
        with pytest.raises(DataError) as refused:
            source.counts(case.sets)
        message = str(refused.value)
        for column, count in case.unknown.items():
            assert f"{column!r}: {count}" in message
        assert "secret" not in message and refused.value.__cause__ is None
        return
    source = open_source(native, case.structure, **case.options)
    counted = source.counts(case.sets)
    wanted = expected_counts(case)
    assert list(counted) == list(wanted)
    for names, table in wanted.items():
        assert counted[names].dtype == np.int64, names
        assert counted[names].shape == table.shape, names
        np.testing.assert_array_equal(counted[names], table, err_msg=str(names))


YES_NO = ("yes", "no")
ABC = ("a", "b", "c")


def _labels() -> Case:
    table = pa.table({"x": ["yes", "no", "yes", "yes", "no"], "y": ["a", "a", "c", "b", "c"]})
    return Case("labels", (Variable("x", YES_NO), Variable("y", ABC)), table)


def _odd_labels() -> Case:
    states = ("Asy/Patch", ">=75", "it's", 'say "so"', "a,b", " padded ", "ünï", "<5")
    return Case("odd labels", (Variable("x", states),), pa.table({"x": [*states, "it's", "<5"]}))


def _cut_points() -> Case:
    age = Variable("age", ("young", "adult", "old"), cut_points=(18, 65))
    temperature = Variable("temperature", ("low", "high", "none"), cut_points=(36.6,), catch_all="none")
    table = pa.table(
        {
            "age": pa.array([0, 17, 18, 64, 65, 120], type=pa.int32()),
            "temperature": pa.array([36.5, 36.6, 36.7, -1e300, 1e300, 0.0], type=pa.float64()),
        }
    )
    return Case("cut points", (age, temperature), table)


def _numbers_as_labels() -> Case:
    variables = (
        Variable("whole", ("0", "1", "2")),
        Variable("real", ("0.5", "1", "2.0")),
        Variable("flag", ("true", "false")),
        Variable("shout", ("False", "True")),
    )
    table = pa.table(
        {
            "whole": pa.array([0, 1, 2, 1], type=pa.int64()),
            "real": pa.array([0.5, 1.0, 2.0, -0.0 + 1], type=pa.float64()),
            "flag": pa.array([True, False, True, True]),
            "shout": pa.array([True, False, False, True]),
        }
    )
    return Case("numbers as labels", variables, table)


def _kinds_of_numbers() -> Case:
    variables = (
        Variable("small", ("-1", "7")),
        Variable("single", ("0.5", "2")),
        Variable("exact", ("1.5", "20")),
        Variable("price", ("cheap", "fair", "dear"), cut_points=(1.25, 10)),
        Variable("level", ("none", "some", "all"), cut_points=(0, 1)),
    )
    money = pa.decimal128(9, 2)
    table = pa.table(
        {
            "small": pa.array([-1, 7, 7, -1], type=pa.int16()),
            "single": pa.array([0.5, 2.0, 2.0, 0.5], type=pa.float32()),
            "exact": pa.array([Decimal("1.50"), Decimal("20.00"), Decimal("1.50"), Decimal("1.50")], type=money),
            "price": pa.array([Decimal("1.25"), Decimal("1.24"), Decimal("10.00"), Decimal("9.99")], type=money),
            "level": pa.array([float("inf"), float("-inf"), -0.0, 0.5], type=pa.float64()),
        }
    )
    return Case("kinds of numbers", variables, table)


def _strange_numbers() -> Case:
    variables = (Variable("n", ("0", "1")), Variable("t", ("a", "b")))
    table = pa.table({"n": pa.array([0.0, -0.0, float("inf"), 1.0, NAN, 0.5]), "t": ["a", "b", "a", "b", "a", "b"]})
    return Case("numbers outside", variables, table, {}, {"n": 3})


def _beyond_floats() -> Case:
    """No float is 9007199254740993, in whatever engine; a whole number may be."""
    label = str(2**53 + 1)
    variables = (Variable("r", ("0", label)), Variable("k", ("0", label)))
    reals = pa.array([0.0, 2.0**53, 0.0, 0.0], type=pa.float64())
    wholes = pa.array([2**53 + 1, 0, 2**53, 0], type=pa.int64())
    return Case("numbers beyond floats", variables, pa.table({"r": reals, "k": wholes}), {"on_unknown": "drop"})


def _no_label_fits() -> Case:
    table = pa.table({"n": [1, 2], "f": [True, None], "r": [1.0, 2.0]})
    variables = (Variable("n", ("a", "b")), Variable("f", ("yes", "no")), Variable("r", ("a", "b")))
    return Case("labels of another kind", variables, table, {}, {"n": 2, "f": 2, "r": 2})


_DIRTY = pa.table(
    {
        "x": ["yes", None, "secret", "no", "yes", "secret"],
        "n": pa.array([1.0, 2.0, NAN, None, 70.0, 1.0]),
        "k": pa.array([0, 1, 7, 1, None, 0], type=pa.int64()),
        "f": pa.array([True, None, False, True, False, True]),
    }
)


def _dirty(name: str, unknown: dict[str, int] | None = None, **options: Any) -> Case:
    catch = "on_unknown" in options and options["on_unknown"] not in ("error", "drop")
    extra = {"catch_all": "other"} if catch else {}
    tail = ("other",) if catch else ()
    variables = (
        Variable("x", ("yes", "no", *tail), **extra),
        Variable("n", ("low", "high", *tail), cut_points=(50.0,), **extra),
        Variable("k", ("0", "1", *tail), **extra),
        Variable("f", ("true", "false", *tail), **extra),
    )
    return Case(name, variables, _DIRTY, options, unknown)


def _renamed() -> Case:
    table = pa.table({"Patient Sex": ["f", "m", "f"], "select": ["a", "b", "c"], "x": ["unused"] * 3})
    return Case(
        "renamed", (Variable("x", ("f", "m"), column="Patient Sex"), Variable("y", ABC, column="select")), table
    )


def _swapped() -> Case:
    table = pa.table({"x": ["a", "b", "c"], "y": ["yes", "no", "no"]})
    return Case("swapped names", (Variable("x", YES_NO, column="y"), Variable("y", ABC, column="x")), table)


def _shared_column() -> Case:
    age = Variable("age", ("young", "old"), cut_points=(40,))
    decade = Variable("decade", ("first", "later"), cut_points=(10,), column="age")
    return Case("one column twice", (age, decade), pa.table({"age": [1, 20, 50, 60]}))


def _units(name: str, limit: int, **options: Any) -> Case:
    # values are constant within a unit, so every choice of rows gives the same counts
    units = [1, 2, 2, 3, 3, 3, 3, 1, 4]
    label = {1: "a", 2: "b", 3: "c", 4: "a"}
    table = pa.table({"person": units, "y": [label[unit] for unit in units]})
    return Case(name, (Variable("y", ABC),), table, {"unit": "person", "max_contributions": limit, **options})


def _units_missing(unknown: dict[str, int] | None, **options: Any) -> Case:
    table = pa.table({"person": ["p", None, "q", "q", None], "y": ["a", "b", "c", "c", "a"]})
    name = f"missing unit, {options.get('on_unknown', 'error')}"
    return Case(name, (Variable("y", ABC),), table, {"unit": "person", "max_contributions": 1, **options}, unknown)


def _units_drop() -> Case:
    table = pa.table({"person": ["p", "p", "q", "q", "r"], "y": ["zz", "zz", "c", "c", "a"]})
    options = {"unit": "person", "max_contributions": 1, "on_unknown": "drop"}
    return Case("units and drop", (Variable("y", ABC),), table, options)


def _dictionary() -> Case:
    table = pa.table(
        {
            "x": pa.chunked_array(
                [
                    pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array(["yes", "no", "unused"])),
                    pa.DictionaryArray.from_arrays(pa.array([1, 1, 0], pa.int32()), pa.array(["no", "yes"])),
                ]
            ),
            "k": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0, 0, 1], pa.int8()), pa.array([5, 3])),
        }
    )
    return Case("dictionaries", (Variable("x", YES_NO), Variable("k", ("3", "4", "5"))), table)


def _dictionary_missing() -> Case:
    values = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 1], pa.int32()), pa.array(["yes", "no", "secret"]))
    return Case("dictionary with unknowns", (Variable("x", YES_NO),), pa.table({"x": values}), {}, {"x": 2})


def _rows(name: str, rows: int) -> Case:
    table = pa.table({"x": pa.array(["yes"] * rows, pa.string()), "n": pa.array([1.5] * rows, pa.float64())})
    return Case(name, (Variable("x", YES_NO), Variable("n", ("low", "high"), cut_points=(2.0,))), table)


def _all_missing() -> Case:
    table = pa.table({"x": pa.array([None, None], pa.string()), "y": ["a", "b"]})
    return Case("all missing", (Variable("x", YES_NO), Variable("y", ABC)), table, {"on_unknown": "drop"})


def _wide() -> Case:
    states = tuple(f"s{i}" for i in range(300))
    table = pa.table({"w": [f"s{i * 7 % 300}" for i in range(500)], "x": ["yes", "no"] * 250})
    return Case("300 states", (Variable("w", states), Variable("x", YES_NO)), table)


def _random() -> Case:
    generator = np.random.default_rng(7)
    names = [f"v{i}" for i in range(6)]
    variables = tuple(Variable(name, tuple(f"s{j}" for j in range(2 + i % 3))) for i, name in enumerate(names))
    columns = {v.name: [v.states[j] for j in generator.integers(0, v.size, 400)] for v in variables}
    return Case("six random columns", variables, pa.table(columns))


CASES = (
    _labels(),
    _odd_labels(),
    _cut_points(),
    _numbers_as_labels(),
    _kinds_of_numbers(),
    _strange_numbers(),
    _beyond_floats(),
    _no_label_fits(),
    _dirty("unknown, error", {"x": 3, "n": 2, "k": 2, "f": 1}),
    _dirty("unknown, drop", on_unknown="drop"),
    _dirty("unknown, catch_all", on_unknown="catch_all"),
    _dirty("unknown, named catch-all", on_unknown="other"),
    _renamed(),
    _swapped(),
    _shared_column(),
    _units("at most one", 1),
    _units("at most three", 3),
    _units_missing({"person": 2}),
    _units_missing(None, on_unknown="drop"),
    _units_drop(),
    _dictionary(),
    _dictionary_missing(),
    _rows("no rows", 0),
    _rows("one row", 1),
    _all_missing(),
    _wide(),
    _random(),
)

Engine = Callable[[pa.Table, Any], Any]


def plain(table: pa.Table) -> pa.Table:
    """Without dictionary columns, for engines that have no such thing."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks])
        columns[name] = column
    return pa.table(columns)
