"""One person moves every table by at most the declared sensitivity, and some person moves it by exactly that."""

import datetime
import enum
import fractions
import itertools
import re
import uuid
import zoneinfo
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn.data import files, open_source
from dpbn.data import units as bounds
from dpbn.domain import Schema, Variable
from dpbn.errors import DataError, InputError
from dpbn.graph import Dag
from dpbn.network import Structure
from dpbn.privacy.guarantee import Sensitivity

VARIABLES = (Variable("x", ("a", "b", "c")), Variable("y", ("low", "high"), cut_points=(0.5,)))
STRUCTURE = Structure(Schema(VARIABLES), Dag(("x", "y"), {"y": ("x",)}))
SETS = [("x",), ("y",), ("x", "y"), ()]

value = st.tuples(st.sampled_from(["a", "b", "c", "odd", None]), st.sampled_from([0.0, 0.5, 1.0, None]))
records = st.lists(st.tuples(st.integers(0, 4), value), max_size=12)
THOROUGH = settings(deadline=None, max_examples=50, derandomize=True)


def counted(rows, **options):
    table = pa.table(
        {
            "unit": pa.array([unit for unit, _ in rows], pa.int64()),
            "x": pa.array([x for _, (x, _) in rows], pa.string()),
            "y": pa.array([y for _, (_, y) in rows], pa.float64()),
        }
    )
    return open_source(table, STRUCTURE, on_unknown="drop", **options).counts(SETS)


def distance(first, second):
    return max(int(np.abs(first[names] - second[names]).sum()) for names in SETS)


@THOROUGH
@given(records, value, st.integers(0, 12))
def test_adding_a_record(rows, extra, place):
    place = min(place, len(rows))
    larger = [*rows[:place], (9, extra), *rows[place:]]
    assert distance(counted(rows), counted(larger)) <= Sensitivity().l1


@THOROUGH
@given(records, value)
def test_replacing_a_record(rows, other):
    rows = [*rows, (9, ("a", 0.0))]
    assert distance(counted(rows), counted([*rows[:-1], (9, other)])) <= Sensitivity("replace").l1


@THOROUGH
@given(records, st.lists(st.tuples(value, st.integers(0, 12)), min_size=1, max_size=9), st.integers(1, 3))
def test_adding_a_unit_with_many_rows_scattered_over_the_table(rows, theirs, limit):
    larger = list(rows)
    for its, place in theirs:
        larger.insert(min(place, len(larger)), (9, its))
    bound = {"unit": "unit", "max_contributions": limit}
    assert distance(counted(rows, **bound), counted(larger, **bound)) <= Sensitivity(max_contributions=limit).l1


@THOROUGH
@given(records, st.lists(value, min_size=1, max_size=9), st.lists(value, max_size=9), st.integers(1, 3))
def test_replacing_a_unit(rows, mine, other, limit):
    bound = {"unit": "unit", "max_contributions": limit}
    first = counted([*rows, *((9, its) for its in mine)], **bound)
    second = counted([*((9, its) for its in other), *rows], **bound)
    assert distance(first, second) <= Sensitivity("replace", limit).l1


def test_the_bounds_are_attained():
    rows = [(1, ("a", 0.0))]
    assert distance(counted(rows), counted([])) == Sensitivity().l1
    assert distance(counted(rows), counted([(1, ("b", 0.0))])) == Sensitivity("replace").l1
    bound = {"unit": "unit", "max_contributions": 3}
    many, others = [(1, ("a", 0.0))] * 5, [(1, ("b", 1.0))] * 5
    assert distance(counted(many, **bound), counted([], **bound)) == Sensitivity(max_contributions=3).l1
    assert distance(counted(many, **bound), counted(others, **bound)) == Sensitivity("replace", 3).l1


def test_without_the_bound_a_unit_moves_the_table_further():
    """The tests above would notice a missing bound."""
    assert distance(counted([(1, ("a", 0.0))] * 5), counted([])) == 5


def test_one_person_cannot_count_twice_under_a_number_and_a_text(tmp_path):
    """Two files of one folder, the unit once as 1 and once as "1": two people to a dictionary, one in truth."""
    for name, units in (("a", pa.array([1, 2])), ("b", pa.array(["1", "2"]))):
        pq.write_table(pa.table({"unit": units, "x": ["a", "b"], "y": [0.0, 1.0]}), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="one kind"):
        open_source(tmp_path, STRUCTURE, unit="unit").counts(SETS)
    for units in ([1, "1"], [b"1", "1"]):
        mixed = pd.DataFrame({"unit": units, "x": ["a", "b"], "y": [0.0, 1.0]}, dtype=object)
        with pytest.raises(DataError, match="one kind"):
            open_source(mixed, STRUCTURE, unit="unit").counts(SETS)


# values of every kind that a column without a type may hold; one of them must not change what the others mean
BIG = 2**53 + 1
KINDS = [
    *(0, 1, BIG, 2**60 + 1, 2**64 - 1, 10**30, True, False, np.bool_(True), np.int8(1), np.uint64(2**63)),
    *(0.0, 1.0, 0.1, 0.5, 2.0**53, 1e300, float("inf"), float("nan"), np.float32(0.1), np.float32(1), 1j),
    *("1", "0.1", "true", "a", "", b"1", np.str_("a"), None, pd.NA, pd.NaT, (1,), [1], pa.scalar("a"), pa.scalar(1)),
    *(Decimal("0.1"), Decimal(1), Decimal("1e30"), fractions.Fraction(1, 10), datetime.date(2020, 1, 1)),
    *(np.timedelta64(1, "Y"), np.timedelta64(12, "M"), np.datetime64(1, "ns"), np.datetime64(1, "s"), np.array([1.0])),
    *(datetime.datetime(2020, 1, 1), datetime.timedelta(1), pd.Timestamp("2020"), pd.Interval(0, 1), pd.Period("2020")),
]
LABELS = Variable("x", ("1", "0.1", "true", "a", "false", str(BIG), str(2**60 + 1), "0", "1e30"))
CUTS = Variable("x", ("a", "1", "true"), cut_points=(0.1, 0.5))


def objects(values):
    """One object each, also where NumPy would see an array of arrays."""
    return np.fromiter(values, dtype=object, count=len(values))


def mixed(values, variable, categorical=False):
    column = pd.Series(objects(values), dtype=object)
    structure = Structure(Schema((variable,)), Dag(("x",), {}))
    frame = pd.DataFrame({"x": column.astype("category") if categorical else column})
    return open_source(frame, structure, on_unknown="drop").counts([("x",)])["x",]


@pytest.mark.parametrize("variable", [LABELS, CUTS], ids=["labels", "cuts"])
def test_what_one_record_holds_does_not_change_what_the_others_mean(variable):
    alone = [mixed([value], variable) for value in KINDS]
    assert sum(int(table.sum()) for table in alone) > 15
    for (first, one), (second, other) in itertools.product(zip(KINDS, alone, strict=True), repeat=2):
        np.testing.assert_array_equal(mixed([first, second], variable), one + other, err_msg=f"{first!r} {second!r}")


def test_a_number_that_two_labels_equal_is_unknown_like_other_odd_values(tmp_path):
    """A refusal would tell of that one record, also where odd values are dropped."""
    labels = Variable("x", ("1", "1.0", "a"))
    assert mixed(["1", "1.0", "a", 1, 1.5], labels).tolist() == [1, 1, 1]
    (tmp_path / "t.csv").write_text("x\n1\n1.0\na\n1.00\n")
    structure = Structure(Schema((labels,)), Dag(("x",), {}))
    counts = open_source(tmp_path / "t.csv", structure, on_unknown="drop").counts([("x",)])
    assert counts["x",].tolist() == [1, 1, 1]


def test_a_value_that_equals_another_is_not_taken_for_it():
    spans = Variable("x", ("1", "12"))
    month, year = np.timedelta64(12, "M"), np.timedelta64(1, "Y")
    assert month == year
    np.testing.assert_array_equal(mixed([year, month, month], spans), mixed([year], spans) + mixed([month] * 2, spans))


@pytest.mark.parametrize("lazy", [False, True])
def test_people_told_by_python_objects_in_polars(lazy):
    """Arrow would see where each object lies in memory: every record another person."""
    one, other = uuid.UUID(int=1), uuid.UUID(int=2)
    people = [one if row % 2 else uuid.UUID(int=1) for row in range(20)] + [other]
    frame = pl.DataFrame({"unit": pl.Series(people, dtype=pl.Object), "x": ["a"] * 21, "y": [0.0] * 21})
    source = open_source(frame.lazy() if lazy else frame, STRUCTURE, unit="unit", max_contributions=2)
    assert source.counts(SETS)["x",].tolist() == [3, 0, 0]


def test_people_told_by_the_uuids_of_a_parquet_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 4)
    stored = pa.array([uuid.UUID(int=row % 2).bytes for row in range(20)] + [None], pa.binary(16))
    units = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    pq.write_table(pa.table({"unit": units, "x": ["a"] * 21, "y": [0.0] * 21}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", STRUCTURE, unit="unit", max_contributions=3, on_unknown="drop")
    assert source.counts(SETS)["x",].tolist() == [6, 0, 0]


def test_people_told_by_a_type_of_somebody_over_a_dictionary():
    """Which may hold a value twice."""
    names = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["p", "p", "q"]))

    class Name(pa.ExtensionType):
        def __init__(self):
            super().__init__(names.type, "dpbn.test.name")

        def __arrow_ext_serialize__(self):
            return b""

    units = pa.ExtensionArray.from_storage(Name(), names)
    source = open_source(pa.table({"unit": units, "x": ["a"] * 3, "y": [0.0] * 3}), STRUCTURE, unit="unit")
    assert source.counts(SETS)["x",].tolist() == [2, 0, 0]


@pytest.mark.parametrize("kind", ["many people", "a missing one"])
def test_people_told_by_dictionaries_that_arrow_cannot_unify(kind):
    """One more person, or one that is missing, is one too many for the dictionaries of two chunks."""
    first = [f"p{i}" for i in range(100)]
    second = [f"p{i}" for i in range(50, 150)] if kind == "many people" else [*first[50:], None]
    chunks = [pa.DictionaryArray.from_arrays(pa.array(range(len(its)), pa.int8()), its) for its in (first, second)]
    rows = len(first) + len(second)
    table = pa.table({"unit": pa.chunked_array(chunks), "x": ["a"] * rows, "y": [0.0] * rows})
    counts = open_source(table, STRUCTURE, unit="unit", on_unknown="drop").counts(SETS)
    assert counts["x",].tolist() == [len({*first, *second} - {None}), 0, 0]


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.string(), pa.large_string(), pa.float32(), pa.bool_(), pa.timestamp("us", "UTC"), pa.date32()],
)
def test_people_in_many_small_chunks_are_those_of_one_and_are_not_told_one_chunk_at_a_time(kind, monkeypatch):
    dice = np.random.default_rng(0)
    people = pa.array([None if one == 7 else int(one) for one in dice.integers(0, 300, 2000)])
    people = people.cast(pa.int32()).cast(kind) if kind == pa.date32() else people.cast(kind)
    chunks = pa.chunked_array([people.slice(start, 1) for start in range(0, 1000)] + [people.slice(1000)])
    asked = []
    monkeypatch.setattr(
        bounds, "_factorized", lambda values, known=bounds._factorized: asked.append(0) or known(values)
    )
    at_once, in_pieces = bounds.UnitBound("who", 2).keep(people, 2000), bounds.UnitBound("who", 2).keep(chunks, 2000)
    np.testing.assert_array_equal(at_once[0], in_pieces[0])
    assert at_once[1] == in_pieces[1] > 0
    assert len(asked) == 2


def test_a_large_chunk_of_people_stays_by_itself(monkeypatch):
    monkeypatch.setattr(bounds, "_PIECE", 40)
    chunks = pa.chunked_array([[1, 1], [1], [2, 2, 2, 2, 2, 2], [], [1, 2], [3, 3, 3]])
    assert [len(piece) for piece in bounds._pieces(chunks)] == [3, 6, 5]
    assert list(bounds._pieces(pa.chunked_array([], pa.int64()))) == []
    kept, _ = bounds.UnitBound("who", 2).keep(chunks, len(chunks))
    assert kept.astype(int).tolist() == [1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0]


def test_people_told_by_days_are_told_alike_in_every_chunk():
    day = pa.array([0, 1, 86_400_000], pa.int64()).cast(pa.date64(), safe=False)
    for chunks in ([day, day], [day, day.slice(0, 1), day.slice(1)]):
        table = pa.table({"unit": pa.chunked_array(chunks), "x": ["a"] * 6, "y": [0.0] * 6})
        assert open_source(table, STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [3, 0, 0]


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.date64()])
def test_people_told_by_times_beyond_what_python_has_refuse_no_table(kind):
    units = pa.array([0, 1, 2**62, 2**62], pa.int64()).view(kind)
    table = pa.table({"unit": units, "x": ["a"] * 4, "y": [0.0] * 4})
    assert open_source(table, STRUCTURE, unit="unit", on_unknown="drop").counts(SETS)["x",].tolist() == [3, 0, 0]


def test_people_told_by_objects_without_a_value_are_refused():
    """Two of them are never equal: each record counted as another person."""

    class Person:
        pass

    for units in ([Person(), Person()], [(1, Person()), (1, Person())]):
        frame = pd.DataFrame({"unit": objects(units), "x": "a", "y": 0.0})
        with pytest.raises(DataError, match="cannot be told"):
            open_source(frame, STRUCTURE, unit="unit", on_unknown="drop").counts(SETS)
    color = enum.Enum("color", ["RED"])
    frame = pd.DataFrame({"unit": objects([color.RED, color.RED]), "x": "a", "y": 0.0})
    assert open_source(frame, STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [1, 0, 0]


def test_people_told_by_times_are_the_same_in_files_of_other_units(tmp_path):
    """A second is a second; midnight of a day is that day."""
    second = [pa.array([86_400], pa.int64()).view(pa.timestamp("s")).cast(pa.timestamp(unit)) for unit in ("ms", "ns")]
    other = pa.array([172_800_000], pa.int64()).view(pa.timestamp("ms"))
    for number, unit in enumerate([*second, second[0].cast(pa.date32()), other]):
        pq.write_table(pa.table({"unit": unit, "x": ["a"], "y": [0.0]}), tmp_path / f"{number}.parquet")
    assert open_source(tmp_path, STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [2, 0, 0]


def test_a_polars_query_that_looks_at_other_rows_is_refused_where_people_are_bounded(tmp_path):
    """Whose rows come first, or what they hold, would follow everybody's rows."""
    frame = pl.DataFrame({"unit": [1, 1, 2], "x": ["a", "b", "c"], "y": [0.0] * 3})
    frame.write_parquet(tmp_path / "t.parquet")
    lazy, kinds = frame.lazy(), pl.LazyFrame({"x": ["a", "b", "c"], "z": [1, 2, 3]})
    several = {
        "INNER JOIN": [lazy.join(kinds, on="x")],
        "LEFT JOIN": [lazy.join(kinds, on="x", how="left").filter(pl.col("z") > 0)],
        "AGGREGATE": [lazy.group_by("x", "unit").agg(pl.col("y").first())],
        "UNIQUE": [lazy.unique("unit")],
        "SORT BY ": [lazy.sort("y").with_columns(z=1)],
        "OPAQUE_PYTHON": [lazy.map_batches(lambda some: some)],
        "UNPIVOT": [lazy.rename({"x": "first"}).unpivot("first", index=["unit", "y"], value_name="x")],
        "UNION": [pl.union([lazy, lazy]).with_columns(z=1)],
        "SLICE": [lazy.head(2), lazy.tail(2)],
        "HCONCAT": [pl.concat([lazy.select("unit"), lazy.select("x", "y")], how="horizontal")],
        ".sort_by": [lazy.select(pl.all().sort_by("y"))],
        ".unique": [lazy.with_columns(pl.col("x").unique().first())],
        ".top_k_by": [lazy.select(pl.all().top_k_by("y", 3))],
        ".shuffle": [lazy.select(pl.all().shuffle(seed=1)).filter(pl.col("x") != "d")],
        ".reverse": [lazy.with_columns(pl.col("x").reverse())],
        ".shift": [lazy.with_columns(pl.col("x").shift(fill_value="a"))],
        ".mean": [lazy.filter(pl.col("y") >= pl.col("y").mean())],
        "len": [lazy.filter(pl.len() > 1)],
        ".python_udf": [lazy.with_columns(pl.col("x").map_batches(lambda some: some, return_dtype=pl.String))],
        "Series": [lazy.with_columns(pl.Series("x", ["a", "b", "c"]))],
    }
    for step, queries in several.items():
        for query in queries:
            with pytest.raises(
                InputError, match=rf"must work row by row, got '{re.escape(step)}.*collect\(\) it first"
            ):
                open_source(query, STRUCTURE, unit="unit")
            assert open_source(query, STRUCTURE).counts(SETS)[()] > 0
            assert open_source(query.collect(), STRUCTURE, unit="unit").counts(SETS)["x",].sum() in (1, 2)
    with pytest.raises(InputError, match=r"got '\.over'"):
        open_source(lazy.select(pl.all().over("x", mapping_strategy="explode")), STRUCTURE, unit="unit")


def test_a_polars_query_that_works_row_by_row_is_counted_where_people_are_bounded(tmp_path):
    frame = pl.DataFrame({"unit": [1, 1, 2], "x": ["A ", "b", "c"], "y": ["0", "0", None], "l": [["a"], ["b"], ["c"]]})
    frame.write_parquet(tmp_path / "t.parquet")
    stored = pl.scan_parquet(tmp_path / "t.parquet").rename({"y": "SORT"}).rename({"SORT": "y"})
    named = stored.with_columns(
        pl.when(pl.col("x") != "c").then(pl.col("x").str.strip_chars().str.to_lowercase()).otherwise(pl.lit("c")),
        pl.col("y").fill_null("0").cast(pl.Float64),
    )
    lists = named.with_columns(pl.col("l").list.first().alias("x"))
    literals = named.with_columns(pl.lit(1).alias("z"), pl.when(pl.col("x") != "d").then(1.5).alias("w"))
    literals = literals.with_columns(pl.when(pl.col("x") != "d").then(1).alias("v"))
    wider = pl.concat([named, named.with_columns(z=1.5)], how="diagonal")
    chosen = named.filter(pl.col("x").is_in(["a", "b", "c"]))
    for query in (chosen, pl.concat([named, named]).drop_nulls(), lists, literals, wider):
        assert open_source(query, STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", ["csv", "ipc", "ndjson", "parquet"])
def test_a_polars_scan_of_any_kind_is_counted_where_people_are_bounded(tmp_path, kind):
    """Unless it numbers rows or stops after some: both follow the rows before."""
    frame = pl.DataFrame({"unit": [1, 1, 2], "x": ["a", "b", "c"], "y": [0.0] * 3})
    getattr(frame, f"write_{kind}")(tmp_path / "t")
    scan = getattr(pl, f"scan_{kind}")
    assert open_source(scan(tmp_path / "t"), STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [1, 0, 1]
    for name, options in (("ROW_INDEX", {"row_index_name": "row"}), ("SLICE", {"n_rows": 2})):
        with pytest.raises(InputError, match=f"must work row by row, got '{name}"):
            open_source(scan(tmp_path / "t", **options), STRUCTURE, unit="unit")


def test_objects_in_polars_match_value_by_value():
    frame = pl.DataFrame({"x": pl.Series(["a", 1, "b"], dtype=pl.Object), "y": [0.0] * 3})
    assert open_source(frame, STRUCTURE, on_unknown="drop").counts(SETS)["x",].tolist() == [1, 1, 0]


def test_who_is_a_person_does_not_depend_on_who_else_is_there():
    """To NumPy a whole number beyond 2^53 equals a float near it; where pandas met them depended on all others."""
    generator = np.random.default_rng(0)
    people = []
    for start in generator.integers(2**52, 2**53, 120).tolist():
        people += [
            float(start << 7),
            *(np.int64((start << 7) + step) for step in generator.permutation(range(1, 64))[:6]),
        ]
    for size in (785, 786, 787, 788, 789):
        values = [*people[:size], 7]
        frame = pd.DataFrame({"unit": objects(values), "x": "a", "y": 0.0})
        assert open_source(frame, STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [size + 1, 0, 0]
    day = [np.datetime64("2020-01-01", "ns"), np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01")]
    for two in ([(1, np.nan), (1, float("nan")), (2, np.nan)], [*day, datetime.datetime(2020, 1, 1), day[0] + 1]):
        frame = pd.DataFrame({"unit": objects(two), "x": "a", "y": 0.0})
        assert open_source(frame, STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [2, 0, 0]


NIGHT = 1603585800  # 2020-10-25 02:30 in Paris, for the first time
PARIS = zoneinfo.ZoneInfo("Europe/Paris")
HOURS = [datetime.datetime(2020, 10, 25, 2, 30, tzinfo=PARIS, fold=fold) for fold in (0, 1)]
UTC = pd.Timestamp(NIGHT, unit="s", tz="UTC")


@pytest.mark.parametrize(
    "two",
    [
        [np.timedelta64(1, "us"), np.timedelta64(1000, "ns"), pd.Timedelta(1, "us"), np.timedelta64(1, "s")],
        [np.timedelta64(1000, "ns"), 1000],
        [HOURS[0], *HOURS, UTC.tz_convert(PARIS)],
        [UTC.tz_convert(PARIS), UTC.to_pydatetime(), UTC, UTC + pd.Timedelta(1, "h")],
        [(1, np.timedelta64(1000, "ns")), (1, 1000)],
    ],
)
def test_people_told_by_spans_and_by_times_of_an_autumn_night(two):
    """A span in nanoseconds is no whole number; of that night's times one may equal two that differ."""
    for order in itertools.permutations(two):
        frame = pd.DataFrame({"unit": pd.Series(objects(order), dtype=object), "x": "a", "y": 0.0})
        assert open_source(frame, STRUCTURE, unit="unit").counts(SETS)["x",].tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        (pa.time64("ns"), [9001, 9002, 9003]),
        (pa.timestamp("s", "Europe/Paris"), [NIGHT, NIGHT + 3600, NIGHT + 7200]),
        (pa.timestamp("ns"), [9001, 9002, 9003]),
        (pa.duration("ns"), [9001, 9002, 9003]),
    ],
    ids=str,
)
def test_people_whom_python_might_take_for_one_another(tmp_path, monkeypatch, kind, others):
    """Within a batch, and from batch to batch."""
    monkeypatch.setattr(files, "BATCH_ROWS", 4)
    units = pa.array([1, 1, 1, others[0], others[1], others[2], others[2], 1, *others], pa.int64()).cast(kind)
    pq.write_table(pa.table({"unit": units, "x": ["a"] * 11, "y": [0.0] * 11}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", STRUCTURE, unit="unit")
    assert source.counts(SETS)["x",].tolist() == [4, 0, 0]


@pytest.mark.parametrize("file", [False, True])
def test_a_record_that_is_no_text_leaves_the_others_as_they_are(file, tmp_path):
    """Bytes that are not UTF-8, in a dictionary of text: unknown as a value, a person like others as a unit."""
    broken = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    table = pa.table({"unit": broken, "x": broken.dictionary_encode(), "y": [0.0] * 3})
    if file:
        pq.write_table(table, tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet" if file else table, STRUCTURE, on_unknown="drop", unit="unit")
    assert source.counts(SETS)["x",].tolist() == [1, 1, 0]


def test_a_categorical_column_without_a_type_counts_value_by_value():
    np.testing.assert_array_equal(mixed([0.1, True, True], LABELS, categorical=True), [0, 1, 2, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(mixed([True, True], LABELS, categorical=True), [0, 0, 2, 0, 0, 0, 0, 0, 0])


def test_records_without_a_person_are_nobodys_whatever_the_column_holds():
    for missing in (pa.array([1.0, np.nan, None, np.nan, 2.0]), pa.array([1, None, None, None, 2])):
        table = pa.table({"who": missing, "x": ["a", "b", "b", "b", "c"], "y": [0.0] * 5})
        source = open_source(table, STRUCTURE, unit="who", on_unknown="drop")
        assert source.counts([("x",)])["x",].tolist() == [1, 0, 1]
