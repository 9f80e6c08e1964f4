"""No canary leaves through Ibis, on DuckDB and on PostgreSQL: the fault cases of tests/trust with its tables."""

import pytest

pytest.importorskip("ibis", reason="Ibis has pins of its own: `make test-ibis` runs these tests")
canary = pytest.importorskip("tests.trust.canary", reason="the fault cases need the engines of the other environment")


def ibis_query(connection, frame, dice):
    import ibis

    held = connection.create_table(ibis.util.gen_name("held"), canary.as_text(frame))
    return held.mutate(grade=held.grade.cast("int64")) if dice.random() < 0.5 else held


@pytest.mark.parametrize("backend", ["duckdb", "postgres"])
def test_no_canary_leaves_through_ibis(backend, request, tmp_path, monkeypatch):
    import ibis

    if backend == "postgres":
        connection = ibis.postgres.connect(**request.getfixturevalue("postgres"))
    else:
        connection = ibis.duckdb.connect()
    monkeypatch.setitem(canary.SLOW_ENGINES, "ibis", lambda frame, folder, dice: ibis_query(connection, frame, dice))
    outcomes = set()
    for number in range(25):
        folder = tmp_path / str(number)
        folder.mkdir()
        case = canary.library_case(number, folder, "ibis")
        assert not case.found(), case
        assert not case.untyped(), (case.name, case.error)
        outcomes.add(type(case.error).__name__)
    assert {"DataError", "NoneType"} <= outcomes, "the cases must reach both refusals and releases"
