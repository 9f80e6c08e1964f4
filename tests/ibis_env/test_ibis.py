"""The contract through Ibis, on DuckDB and on a real PostgreSQL. Runs in its own environment: `make test-ibis`."""

import pyarrow as pa
import pytest

from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.errors import DataError
from dpbn.formats import load_network
from dpbn.graph import Dag
from dpbn.network import Structure
from tests.table_contract import CASES, Case, check, plain

ibis = pytest.importorskip("ibis", reason="Ibis has pins of its own: `make test-ibis` runs these tests")


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def connection(request):
    if request.param == "duckdb":
        return ibis.duckdb.connect()
    server = request.getfixturevalue("postgres")  # asked for first: without it there may be no client library either
    return ibis.postgres.connect(**server)


def held(connection, table: pa.Table):
    return connection.create_table(ibis.util.gen_name("held"), plain(table))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ibis_counts_like_the_oracle(connection, case: Case):
    check(case, held(connection, case.table))


def test_a_network_learned_where_the_table_lives(connection):
    network = load_network("asia")
    frame = network.sample(2000, seed=5)
    sets = [family.names for family in network.structure.dag.families]
    there = open_source(held(connection, pa.Table.from_pandas(frame)), network.structure).counts(sets)
    here = open_source(frame, network.structure).counts(sets)
    assert all((there[names] == here[names]).all() for names in sets)


def test_the_bound_chooses_at_most_k_records_of_every_unit(connection):
    units = [unit for unit in range(30) for _ in range(unit % 5)]
    people, values = Variable("p", tuple(map(str, range(30)))), Variable("y", ("a", "b"))
    structure = Structure(Schema((people, values)), Dag(("p", "y"), {}))
    table = pa.table({"p": units, "y": ["ab"[row % 2] for row in range(len(units))]})
    counts = open_source(held(connection, table), structure, unit="p", max_contributions=2).counts([("p", "y")])
    assert counts[("p", "y")].sum(axis=1).tolist() == [min(unit % 5, 2) for unit in range(30)]


def test_odd_column_names_and_types(connection):
    for column in ("a.b", "a b", 'say "x"', "group", "Upper"):
        structure = Structure(Schema((Variable("y", ("a", "b"), column=column),)), Dag(("y",), {}))
        counts = open_source(held(connection, pa.table({column: ["a", "b", "b"]})), structure).counts([("y",)])
        assert counts[("y",)].tolist() == [1, 2]
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    with pytest.raises(DataError, match="text, numbers or booleans, got type Date"):
        open_source(held(connection, pa.table({"y": pa.array([0], pa.date32())})), structure)


@pytest.mark.parametrize("kind", ["JSON", "VARIANT", "UNION(number INT, label VARCHAR)"])
def test_people_told_by_numbers_and_text_in_one_column_are_refused(kind):
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    table = ibis.duckdb.connect().sql(f"SELECT 'a' AS y, 1::{kind} AS p")
    with pytest.raises(DataError, match=r"'p' must hold values of one kind, got type (json|union)"):
        open_source(table, structure, unit="p")


def test_a_unit_of_several_parts_is_refused(connection):
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    with pytest.raises(DataError, match="text or a whole number, got type array"):
        open_source(held(connection, pa.table({"p": [["u"]], "y": ["a"]})), structure, unit="p")


@pytest.mark.parametrize("whole", [True, False])
def test_people_told_by_a_month_and_by_30_days_are_refused(connection, whole):
    """Engines call them equal: one would take the other's place among the records that count."""
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    span, kind = "CAST('1 month' AS interval)", "interval"
    if not whole:
        span, kind = (f"MAP([1], [{span}])", "map") if connection.name == "duckdb" else ("'x'::tsvector", "unknown")
    table = connection.sql(f"SELECT 'a' AS y, {span} AS p")
    for people in (table, table.cast({"p": table.schema()["p"].copy(nullable=False)})):
        with pytest.raises(DataError, match=f"text or a whole number, got type {kind}"):
            open_source(people, structure, unit="p")


def test_people_told_by_numbers_and_text_in_binary_json_are_refused(connection):
    if connection.name != "postgres":
        pytest.skip("JSON of DuckDB is text")
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    with pytest.raises(DataError, match="must hold values of one kind, got type jsonb"):
        open_source(connection.sql("SELECT 'a' AS y, CAST('1' AS jsonb) AS p"), structure, unit="p")


@pytest.fixture
def collated(connection):
    """Tables of text that the engine compares without regard to case, or of another type."""

    def run(statement):
        done = connection.raw_sql(statement)
        if connection.name == "postgres":
            done.close()

    def make(records, kind=None):
        name = ibis.util.gen_name("collated")
        if kind is None and connection.name == "postgres":
            how = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
            run(f"CREATE COLLATION IF NOT EXISTS nocase ({how})")
        kind = kind or "text COLLATE nocase"
        run(f"CREATE TABLE {name} (x {kind}, p {kind})")
        for x, p in records:
            run(f"INSERT INTO {name} VALUES ('{x}', '{p}')")
        return connection.table(name)

    return make


@pytest.mark.parametrize("policy", ["drop", "other"])
def test_a_spelling_that_the_engine_calls_equal_changes_no_other_record(collated, policy):
    structure = Structure(Schema((Variable("x", ("a", "b", "other"), catch_all="other"),)), Dag(("x",), {}))
    records = [("a", str(person)) for person in range(5)]
    for larger in ([("A", "z"), *records], [*records, ("A", "z")]):
        assert open_source(collated(larger), structure, on_unknown=policy).counts([("x",)])["x",].tolist() == [6, 0, 0]


def test_people_whom_the_engine_calls_equal(collated, connection):
    """Two where the engine can tell their bytes, else one with the records of both: never more than k for either."""
    structure = Structure(Schema((Variable("x", ("a", "b")),)), Dag(("x",), {}))
    records = [*[("a", "p1")] * 3, *[("b", "P1")] * 9]
    counts = open_source(collated(records), structure, unit="p", max_contributions=3).counts([("x",)])["x",]
    assert counts.tolist() == [3, 3] if connection.name == "duckdb" else counts.sum() == 3


def test_numbers_without_a_limit(collated, connection):
    """PostgreSQL has numbers that are no float: one refuses the table, before anything is charged."""
    if connection.name != "postgres":
        pytest.skip("decimals of DuckDB have a limit")
    structure = Structure(
        Schema((Variable("x", ("low", "high", "?"), cut_points=(0.5,), catch_all="?"),)), Dag(("x",), {})
    )
    fine = collated([("0", "1"), ("NaN", "1"), ("Infinity", "2")], "numeric")
    assert open_source(fine, structure, on_unknown="?").counts([("x",)])["x",].tolist() == [1, 1, 1]
    with pytest.raises(DataError, match="NumericValueOutOfRange"):  # the first question already, that of their number
        open_source(collated([("1e400", "1")], "numeric"), structure, on_unknown="?").counts([()])


@pytest.mark.parametrize("policy", ["error", "drop"])
def test_a_stream_that_old_duckdb_would_read_as_empty_the_second_time_is_refused(policy):
    """Ibis keeps to DuckDB 1, whose own relations are taken too; newer ones refuse by themselves."""
    duckdb = pytest.importorskip("duckdb")
    structure = Structure(Schema((Variable("y", ("a", "b")),)), Dag(("y",), {}))
    table = pa.table({"y": ["a", "b", "b"] * 1000})
    held = duckdb.connect().from_arrow(table)
    assert open_source(held, structure, on_unknown=policy).counts([("y",)])["y",].tolist() == [1000, 2000]
    behind = ibis.duckdb.connect()
    behind.con.register("s", table.to_reader(max_chunksize=100))
    for stream in (duckdb.connect().from_arrow(table.to_reader(max_chunksize=100)), behind.table("s")):
        with pytest.raises(DataError, match="readable more than once, got a stream"):
            open_source(stream, structure, on_unknown=policy).counts([("y",)])
