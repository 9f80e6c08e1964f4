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
