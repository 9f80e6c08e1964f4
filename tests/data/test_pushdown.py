"""Engines that count by themselves: the contract on Spark, and that only cells come back."""

import sys

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest

from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.errors import DataError, PrivacyError
from dpbn.formats import load_network
from dpbn.graph import Dag
from dpbn.learning import learn
from dpbn.network import Structure
from dpbn.privacy import blocks
from dpbn.privacy.ledger import Ledger
from tests.table_contract import CASES, check, plain


@pytest.fixture(params=["duckdb", "spark"])
def native(request):
    if request.param == "spark":
        return request.getfixturevalue("spark").createDataFrame
    duckdb = pytest.importorskip("duckdb")

    def register(table):
        connection = duckdb.connect()
        connection.register("held", table)
        return connection.table("held")

    return register


def test_spark_counts_like_the_oracle(spark, subtests):
    for case in CASES:
        with subtests.test(case.name):
            check(case, spark.createDataFrame(plain(case.table)))


def test_only_cells_come_back(native, monkeypatch):
    """Also when every row holds a different, undeclared value."""
    network = load_network("asia")
    frame = network.sample(5000, seed=2)
    table = pa.table({node: frame[node].astype(str).to_list() for node in network.nodes})
    table = table.set_column(0, network.nodes[0], pa.array([f"strange {row}" for row in range(5000)]))
    variables = [
        Variable(v.name, (*v.states, "other"), catch_all="other") if v.name == network.nodes[0] else v
        for v in network.structure.schema
    ]
    structure = Structure(Schema(tuple(variables)), network.structure.dag)
    fetched = []
    collect = nw.LazyFrame.collect

    def recorded(self, *args, **kwargs):
        result = collect(self, *args, **kwargs)
        fetched.append(len(result))
        return result

    monkeypatch.setattr(nw.LazyFrame, "collect", recorded)
    source = open_source(native(table), structure, on_unknown="other")
    counts = source.counts([family.names for family in structure.dag.families])
    assert counts[(network.nodes[0],)].tolist() == [0, 0, 5000]
    assert 0 < max(fetched) <= structure.schema.cells(structure.nodes)
    assert sum(rows > 1 for rows in fetched) == 1  # one group for all of asia, beside the checks


def test_the_bound_chooses_at_most_k_records_of_every_unit(native):
    units = [unit for unit in range(40) for _ in range(unit % 7)]
    values = [("a", "b", "c")[row % 3] for row in range(len(units))]
    structure = Structure(
        Schema((Variable("y", ("a", "b", "c")), Variable("p", tuple(map(str, range(40)))))), Dag(("y", "p"), {})
    )
    source = open_source(native(pa.table({"y": values, "p": units})), structure, unit="p", max_contributions=3)
    counts = source.counts([("p", "y")])[("p", "y")]
    assert counts.sum(axis=1).tolist() == [min(unit % 7, 3) for unit in range(40)]
    whole = open_source(pa.table({"y": values, "p": units}), structure).counts([("p", "y")])[("p", "y")]
    assert (counts <= whole).all()


def test_the_choice_depends_on_nobody_else(native):
    """Not on the order of rows either, nor on the engine's random numbers: a session may have seeded them."""
    variables = (Variable("y", ("a", "b", "c")), Variable("z", ("0", "1")))
    structure = Structure(Schema(variables), Dag(("y", "z"), {}))
    rows = [(unit, "abc"[i % 3], i % 2) for unit in range(60) for i in range(4)]

    def counted(rows):
        table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(("p", "y", "z"))})
        source = open_source(native(table), structure, unit="p", max_contributions=1)
        source._salt = 7
        return source.counts([("y", "z")])[("y", "z")]

    alone = counted(rows)
    assert np.abs(alone - counted([*rows[::-1], (999, "a", 0), (999, "b", 1)])).sum() == 1
    shares = alone.sum(axis=1) / 60  # of a, b, c: records 0 to 3 of each unit are a, b, c, a
    assert abs(shares[0] - 0.5) < 0.3 and shares.min() > 0.05


def test_bounded_records_are_counted_for_many_groups_at_once(native, monkeypatch):
    from dpbn.data import pushdown

    monkeypatch.setattr(pushdown, "_TOGETHER", 2)
    monkeypatch.setattr(pushdown, "GROUP_CELLS", 1)
    names = ("a", "b", "c", "d", "e")
    structure = Structure(Schema(tuple(Variable(name, ("0", "1", "2")) for name in names)), Dag(names, {}))
    generator = np.random.default_rng(5)
    table = pa.table({name: generator.integers(0, 3, 90) for name in names} | {"p": np.arange(90) // 3})
    sets = [*((name,) for name in names), ("d", "b"), ()]
    bounded = open_source(native(table), structure, unit="p", max_contributions=3).counts(sets)
    for chosen, counts in open_source(table, structure).counts(sets).items():
        np.testing.assert_array_equal(bounded[chosen], counts)
    assert open_source(native(table), structure, unit="p").counts([()])[()] == 30


@pytest.mark.parametrize("engine", [True, False], ids=["engine", "memory"])
def test_a_record_counts_in_every_table_or_in_none(native, engine, monkeypatch):
    """Joint noise rests on it: with a bound on rows per person, unknown values, and a query for every table."""
    from dpbn.data import pushdown

    monkeypatch.setattr(pushdown, "GROUP_CELLS", 1)
    names = ("a", "b", "c", "d")
    structure = Structure(Schema(tuple(Variable(name, ("0", "1", "2")) for name in names)), Dag(names, {}))
    generator = np.random.default_rng(8)
    table = pa.table({name: generator.integers(0, 4, 400) for name in names} | {"p": np.arange(400) // 5})  # 3: unknown
    source = open_source(
        native(table) if engine else table, structure, unit="p", max_contributions=2, on_unknown="drop"
    )
    sets = [("a",), ("b", "a"), ("a", "c"), ("d", "a", "b")]
    folded = blocks.fold(list(source.counts(sets).values()), sets)
    blocks.check_totals(folded)
    assert 20 < folded[0].sum() < 120


def test_a_seeded_session_changes_nothing():
    duckdb = pytest.importorskip("duckdb")
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    units, values = [unit for unit in range(200) for _ in range(4)], ["a", "b", "b", "b"] * 200

    def counted(units, values):
        connection = duckdb.connect()
        connection.register("held", pa.table({"p": units, "y": values}))
        connection.execute("SELECT setseed(0.3)").fetchall()
        source = open_source(connection.table("held"), structure, unit="p")
        source._salt = 7
        return source.counts([("y",)])[("y",)]

    one_more = counted([999, *units], ["a", *values])
    assert (one_more - counted(units, values)).tolist() == [1, 0]


def test_rows_cannot_be_sampled_outside(native):
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    source = open_source(native(pa.table({"y": ["a"]})), structure)
    assert not source.can_sample_rows
    with pytest.raises(PrivacyError, match="where they are held"):
        source.sampled_counts([("y",)], lambda rows: np.ones(rows, dtype=bool))


def test_missing_columns_and_types_without_states(native):
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    with pytest.raises(DataError, match=r"without \['y'\]"):
        open_source(native(pa.table({"z": ["a"]})), structure)
    with pytest.raises(DataError, match="text, numbers or booleans, got type Date"):
        open_source(native(pa.table({"y": pa.array([0], pa.date32())})), structure)


def test_a_column_named_with_dots_quotes_and_spaces(native):
    pytest.importorskip("duckdb", minversion="2", reason="older ones do not find a column with dots")
    for column in ("a.b", "a b", 'say "x"', "group"):
        structure = Structure(Schema((Variable("y", ("a", "b"), column=column),)), Dag(("y",), {}))
        counts = open_source(native(pa.table({column: ["a", "b", "b"]})), structure).counts([("y",)])
        assert counts[("y",)].tolist() == [1, 2]


def test_engines_are_imported_only_when_used():
    import subprocess

    code = (
        "import sys, pandas, dpbn, dpbn.data; from dpbn.formats import load_network; net = load_network('asia');"
        "dpbn.data.open_source(net.sample(9, seed=1), net.structure).counts([('asia',)]);"
        "print([m for m in ('polars', 'duckdb', 'pyspark', 'narwhals', 'ibis', 'numba') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert ran.stdout.strip() == "[]"


def environment():
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize("policy", ["error", "drop"])
def test_a_stream_that_can_be_read_once_is_refused_before_the_charge(policy, tmp_path):
    """The default method reads the table twice: to count the records, and for the tables that this count suggests."""
    duckdb = pytest.importorskip("duckdb")
    table = pa.table({"a": ["x", "y"] * 50, "b": ["x", "x", "y", "y"] * 25})
    schema = Schema(tuple(Variable(name, ("x", "y")) for name in "ab"))
    structure = Structure(schema, Dag(("a", "b"), {"a": (), "b": ("a",)}))
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open_dataset("once", 2)
    stream = duckdb.connect().from_arrow(table.to_reader(max_chunksize=10))
    with pytest.raises(DataError, match="readable"):
        learn(stream, structure, 1.0, on_unknown=policy, ledger=ledger, dataset="once")
    assert ledger.remaining("once").epsilon == 2


def test_a_table_that_changes_while_it_is_counted_is_to_be_copied():
    from dpbn.measure import Curator
    from dpbn.measurement import Joint
    from dpbn.privacy.guarantee import Budget, Sensitivity
    from dpbn.privacy.noise import SecureNoise

    class Changing:
        can_sample_rows = False

        def counts(self, sets):
            return {names: np.full((2,), place) for place, names in enumerate(sets)}

    curator = Curator(Changing(), SecureNoise(), Budget(1.0), Sensitivity())
    with pytest.raises(PrivacyError, match="unequal totals") as refused:
        curator.measure([Joint((("x",), ("y",)), 2.0)])
    assert refused.value.__notes__ == ["a table that changes while an engine counts it must be copied first"]


@pytest.mark.parametrize("policy", ["error", "drop", "other"])
def test_a_group_is_planned_without_the_other_columns_where_they_have_no_say(native, policy, monkeypatch):
    rows = {"a": ["x", "y", "odd", "x"], "b": ["y", "y", "x", "odd"], "c": ["x", "x", "x", "y"]}
    if policy == "error":
        rows = {name: [value.replace("odd", "y") for value in column] for name, column in rows.items()}
    schema = Schema(tuple(Variable(name, ("x", "y", "other"), catch_all="other") for name in "abc"))
    structure = Structure(schema, Dag(tuple("abc"), {}))
    planned, group_by = [], nw.LazyFrame.group_by

    def recorded(frame, *keys, **options):
        planned.append((list(keys), frame.collect_schema().names()))
        return group_by(frame, *keys, **options)

    monkeypatch.setattr(nw.LazyFrame, "group_by", recorded)
    monkeypatch.setattr("dpbn.data.pushdown.GROUP_CELLS", 1)
    sets = [(name,) for name in "abc"]
    table = native(pa.table(rows))
    found = open_source(table, structure, on_unknown=policy).counts(sets)
    expected = open_source(pa.table(rows), structure, on_unknown=policy).counts(sets)
    for names in sets:
        assert found[names].tolist() == expected[names].tolist()
    apart = not hasattr(table, "selectExpr") and policy != "drop"
    assert [keys == columns for keys, columns in planned] == [apart] * 3


def collated(native, records):
    """Text that the engine compares without regard to case."""
    table = native(pa.table({"x": [x for x, _ in records], "p": [p for _, p in records]}))
    if hasattr(table, "selectExpr"):
        return table.coalesce(1).selectExpr("x collate UTF8_LCASE as x", "p collate UTF8_LCASE as p")
    return table.project("x COLLATE NOCASE AS x, p COLLATE NOCASE AS p")


@pytest.mark.parametrize("policy", ["drop", "other"])
@pytest.mark.parametrize(("place", "states"), [(0, 2), (5, 2), (0, 40), (0, 400)])
def test_a_spelling_that_the_engine_calls_equal_changes_no_other_record(native, policy, place, states):
    records = [("a", str(person)) for person in range(5)]
    labels = ("a", *(f"b{state}" for state in range(states - 1)), "other")
    structure = Structure(Schema((Variable("x", labels, catch_all="other"),)), Dag(("x",), {}))
    larger = [*records[:place], ("A", "z"), *records[place:]]
    first, second = (open_source(collated(native, r), structure, on_unknown=policy) for r in (records, larger))
    assert np.abs(first.counts([("x",)])["x",] - second.counts([("x",)])["x",]).sum() <= 1


def test_people_whom_the_engine_calls_equal_are_two(native):
    structure = Structure(Schema((Variable("x", ("a", "b")),)), Dag(("x",), {}))
    records = [*[("a", "p1")] * 3, *[("b", "P1")] * 9]
    source = open_source(collated(native, records), structure, unit="p", max_contributions=3)
    assert source.counts([("x",)])["x",].tolist() == [3, 3]


def test_a_column_that_is_there_twice_is_refused(native):
    table = native(pa.table({"x": ["a"], "z": ["b"]}))
    table = table.toDF("x", "x") if hasattr(table, "toDF") else table.project("x, z AS x")
    with pytest.raises(DataError, match="each column once"):
        open_source(table, Structure(Schema((Variable("x", ("a", "b")),)), Dag(("x",), {})))


@pytest.mark.parametrize("whole", ["struct", "list"])
def test_people_of_several_parts_whom_the_engine_calls_equal_are_two(native, whole):
    structure = Structure(Schema((Variable("x", ("a", "b")),)), Dag(("x",), {}))
    table = collated(native, [*[("a", "p1")] * 3, *[("b", "P1")] * 9])
    if hasattr(table, "selectExpr"):
        table = table.selectExpr("x", "struct(p, 1) AS p" if whole == "struct" else "array(p) AS p")
    else:
        table = table.project("x, {'a': p, 'b': 1} AS p" if whole == "struct" else "x, [p] AS p")
    source = open_source(table, structure, unit="p", max_contributions=3)
    assert source.counts([("x",)])["x",].tolist() == [3, 3]


@pytest.mark.parametrize("kind", ["VARIANT", "UNION(number INT, label VARCHAR)", "JSON"])
@pytest.mark.parametrize("whole", ["{}", "[{}]", "{{'a': {}}}"])
def test_people_told_by_numbers_and_text_in_one_column_are_refused(kind, whole):
    duckdb = pytest.importorskip("duckdb")
    structure = Structure(Schema((Variable("x", ("a", "b")),)), Dag(("x",), {}))
    number, text = (whole.format(f"{value}::{kind}") for value in ("1", """'"1"'::VARCHAR"""))
    table = duckdb.connect().sql(f"SELECT 'a' AS x, {number} AS p UNION ALL SELECT 'a', {text}")
    with pytest.raises(DataError, match=r"'p' must hold values of one kind, got type (variant|union|json)"):
        open_source(table, structure, unit="p")
    assert open_source(table, structure).counts([("x",)])["x",].tolist() == [2, 0]


def test_people_told_by_numbers_and_text_in_a_file_of_json_are_refused(tmp_path):
    """DuckDB reads such a column as JSON."""
    duckdb = pytest.importorskip("duckdb")
    structure = Structure(Schema((Variable("x", ("a", "b")),)), Dag(("x",), {}))
    (tmp_path / "t.json").write_text('{"p": 1, "x": "a"}\n{"p": "1", "x": "a"}\n{"p": "p2", "x": "b"}')
    with pytest.raises(DataError, match="'p' must hold values of one kind, got type json"):
        open_source(duckdb.connect().read_json(str(tmp_path / "t.json")), structure, unit="p")


def test_people_told_by_a_month_and_by_30_days_are_two():
    duckdb = pytest.importorskip("duckdb")
    structure = Structure(Schema((Variable("x", ("a", "b")),)), Dag(("x",), {}))
    table = duckdb.connect().sql("SELECT 'a' AS x, INTERVAL 1 MONTH AS p UNION ALL SELECT 'b', INTERVAL 30 DAY")
    assert open_source(table, structure, unit="p").counts([("x",)])["x",].tolist() == [1, 1]


def test_the_catch_all_state_and_what_falls_into_it_are_one_cell(native):
    structure = Structure(Schema((Variable("v", ("x", "other"), catch_all="other"),)), Dag(("v",), {}))
    table = pa.table({"v": ["other", "x", "odd", "other", None]})
    assert open_source(native(table), structure, on_unknown="other").counts([("v",)])["v",].tolist() == [1, 4]


def test_records_without_a_person_are_nobodys(native):
    structure = Structure(Schema((Variable("v", ("x", "y")),)), Dag(("v",), {}))
    table = pa.table({"who": [1.0, float("nan"), None, float("nan"), 2.0], "v": ["x", "y", "y", "y", "x"]})
    counts = open_source(native(table), structure, unit="who", on_unknown="drop").counts([("v",)])
    assert counts["v",].tolist() == [2, 0]


@pytest.mark.parametrize("states", [1, 10, 11, 101, 150])
def test_domains_of_every_size(native, states):
    labels = tuple(f"state {state}" for state in range(states))
    table = pa.table(
        {"x": [*labels, labels[0]], "n": [*range(states), 0], "f": [float(n) for n in [*range(states), 0]]}
    )
    variables = tuple(Variable(name, labels if name == "x" else tuple(map(str, range(states)))) for name in "xnf")
    structure = Structure(Schema(variables), Dag(("x", "n", "f"), {}))
    found = open_source(native(table), structure).counts([(name,) for name in "xnf"])
    assert all(counts.tolist() == [2, *[1] * (states - 1)] for counts in found.values())
