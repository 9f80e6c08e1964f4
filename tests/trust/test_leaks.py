"""Nothing leaves beside the noise: no canary in anything an observer can read, and releases that follow from noise."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpbn
from dpbn.data import open_source
from dpbn.data.sealed import sealed
from dpbn.errors import DataError
from dpbn.report import write_report
from tests.trust.canary import CANARY, ENGINES, NUMBER, STRUCTURE, Case, chain, clean_rows, command_case, library_case
from tests.trust.canary import watched as watch

CASES_PER_ENGINE = 30


@pytest.mark.parametrize("engine", ENGINES)
def test_no_canary_leaves_the_library(engine, tmp_path):
    outcomes = set()
    for number in range(CASES_PER_ENGINE):
        folder = tmp_path / str(number)
        folder.mkdir()
        case = library_case(number, folder, engine)
        assert not case.found(), case
        assert not case.untyped(), (case.name, case.error)
        outcomes.add(type(case.error).__name__)
    assert {"DataError", "NoneType"} <= outcomes, "the cases must reach both refusals and releases"


def test_no_canary_leaves_through_spark(tmp_path, spark):
    outcomes = set()
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        case = library_case(number, folder, "spark")
        assert not case.found(), case
        assert not case.untyped(), (case.name, case.error)
        outcomes.add(type(case.error).__name__)
    assert "DataError" in outcomes and len(outcomes) > 1


def test_no_canary_leaves_the_command(tmp_path):
    codes = set()
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        case = command_case(number, folder)
        assert not case.found(), case
        codes.add(getattr(case.error, "code", 0))
    assert codes == {0, 1}


@pytest.mark.parametrize("content", [f"colour,size\n{CANARY},{NUMBER}\n", f'colour\n"{CANARY}\n', f"{CANARY}\xff\n"])
def test_no_canary_leaves_a_process(content, tmp_path):
    (tmp_path / "private.csv").write_bytes(content.encode("latin-1"))
    code = "from dpbn.cli import script; script()"
    done = subprocess.run(
        [sys.executable, "-c", code, "learn", "private.csv", "asia", "-e", "1", "-o", "x.json", "-y"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1]), "DPBN_DEBUG": ""},
        check=False,
    )
    assert done.returncode == 1
    assert CANARY.encode() not in done.stdout + done.stderr and str(NUMBER).encode() not in done.stdout + done.stderr
    assert not (tmp_path / "x.json").exists()


def test_the_search_finds_a_canary_wherever_an_error_hides_it():
    def hidden(error, **attached):
        for name, value in attached.items():
            setattr(error, name, value)
        return error

    secret = ValueError(f"bad value {CANARY}")
    noted = ValueError("x")
    noted.add_note(f"was {NUMBER}")
    for error in (
        secret,
        noted,
        hidden(DataError("x"), __cause__=secret),
        hidden(DataError("x"), __context__=secret),
        hidden(DataError("x"), rows=[CANARY]),
        ExceptionGroup("x", [secret]),
    ):
        case = Case("control")
        with watch(case):
            raise error
        assert case.found(), error


def test_engines_do_quote_values_so_sealing_is_what_holds_them_back():
    query = pl.DataFrame({"grade": ["1", CANARY]}).lazy().with_columns(pl.col("grade").cast(pl.Int64))
    with pytest.raises(pl.exceptions.PolarsError) as quoted:
        query.collect()
    assert any(CANARY in text for text in chain(quoted.value))
    structure = dpbn.Structure(dpbn.Schema((dpbn.Variable("grade", ("1", "2")),)), dpbn.Dag(("grade",), {}))
    with pytest.raises(DataError) as sealed:
        dpbn.learn(query, structure, 1.0)
    assert not any(CANARY in text for text in chain(sealed.value))
    assert sealed.value.__cause__ is None and sealed.value.__context__ is None


def test_a_type_is_named_without_the_values_it_is_made_of():
    for column, told in (("colour", r"got type struct$"), ("person", r"got a column of type struct$")):
        frame = clean_rows(3, random.Random(0)).astype(object)
        frame[column] = [{CANARY: 1}] * 3
        with pytest.raises(DataError, match=told) as refused:
            dpbn.learn(pa.Table.from_pandas(frame), STRUCTURE, 1.0, unit="person" if column == "person" else None)
        assert not any(CANARY in text for text in chain(refused.value))


def test_values_that_stand_for_nothing_are_not_quoted():
    for column, told in (("colour", "'colour': 3, of 3"), ("person", "a unit must be told by text or a whole number")):
        frame = clean_rows(3, random.Random(0)).astype(object)
        frame[column] = [{CANARY: 1}] * 3
        with pytest.raises(DataError, match=told) as refused:
            dpbn.learn(frame, STRUCTURE, 1.0, unit="person" if column == "person" else None)
        assert not any(CANARY in text for text in chain(refused.value))


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**30])
def test_numbers_beyond_every_float_fall_into_the_outer_intervals(value):
    frame = clean_rows(3, random.Random(0)).astype(object)
    frame["size"] = pd.Series([value, value, 1.5], dtype=object)
    counts = open_source(frame, STRUCTURE).counts([("size",)])[("size",)]
    assert counts.tolist() == ([3, 0] if value < 0 else [1, 2])


class Replay:
    """Noise whose results are those recorded on another table, whatever the counts: noise held equal, exactly."""

    def __init__(self, recorded=None):
        self._real, self._recorded, self._made = dpbn.InsecureNoise(3), recorded, []

    def _result(self, kind, *arguments):
        made = getattr(self._real, kind)(*arguments)
        self._made.append(made)
        return made if self._recorded is None else self._recorded[len(self._made) - 1].copy()

    def laplace(self, counts, scale):
        return self._result("laplace", counts, scale)

    def gaussian(self, counts, scale):
        return self._result("gaussian", counts, scale)

    def summed(self, counts, scale, draws):
        return self._result("summed", counts, scale, draws)

    def joint(self, tables, scale):
        return self._result("joint", tables, scale)

    def keep(self, rows, rate):
        made = self._real.keep(rows, rate)  # which rows are in depends on how many there are: never shown
        self._made.append(made)
        return made

    def thin(self, counts, rate):
        return self._result("thin", counts, rate)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "uniform"},
        {"method": "icml2020"},
        {"method": "optimized"},
        {"method": "optimized", "delta": 1e-6},
        {"method": "optimized", "delta": 0.05},  # summed noise
        {"method": "optimized", "delta": 0.1},  # Gaussian noise
        {"method": "uniform", "unit": "person", "max_contributions": 2},
        {"method": "optimized", "neighbors": "replace", "on_unknown": "other"},
    ],
    ids=str,
)
def test_a_release_is_a_function_of_the_noisy_counts_and_public_facts(options, tmp_path):
    """With equal noisy counts, neighbouring and even unrelated tables give byte-identical releases and reports."""
    dice = random.Random(1)
    table = clean_rows(60, dice)
    others = [table.iloc[:-1], table.iloc[:0], clean_rows(200, dice), table.sample(frac=1.0, random_state=0)]
    if options.get("on_unknown") == "other":
        others.append(table.assign(colour=["never declared"] * len(table)))
    recorder = Replay()
    first = dpbn.learn(table, STRUCTURE, 1.0, noise=recorder, **options)
    assert recorder._made
    drawn = {m.mechanism for m in first.measurements}
    assert drawn == {0.05: {"laplace", "summed"}, 0.1: {"laplace", "gaussian"}}.get(options.get("delta"), drawn)
    path = first.save(tmp_path / "first.json")
    pages = [page.read_bytes() for page in write_report(first, tmp_path / "a.html", title="x")]
    for other in others:
        again = dpbn.learn(other, STRUCTURE, 1.0, noise=Replay(recorder._made), **options)
        assert again.save(tmp_path / "second.json").read_bytes() == path.read_bytes()
        assert again.id == first.id
        assert [page.read_bytes() for page in write_report(again, tmp_path / "a.html", title="x")] == pages


@pytest.mark.parametrize("method", ["uniform", "optimized"])
def test_neighbours_differ_in_noisy_counts_and_what_follows_only(method):
    """The same seed on neighbouring tables: each table moves by one in one cell; sizes, scales and names stay."""
    from dpbn.release import to_dict

    table = clean_rows(60, random.Random(1))
    one, two = (
        to_dict(dpbn.learn(rows, STRUCTURE, 1.0, method=method, noise=dpbn.InsecureNoise(5)))
        for rows in (table, table.iloc[:-1])
    )
    for first, second in zip(one["measurements"], two["measurements"], strict=True):
        change = np.abs(np.array(first.pop("values")) - np.array(second.pop("values")))
        assert change.sum() == 1
    cpts = [document["network"].pop("cpts") for document in (one, two)]
    assert cpts[0] != cpts[1]
    for document in (one, two):
        document.pop("weak_rows")  # a property of the release, computed from its noisy counts
    assert one == two


def test_a_panic_of_an_engine_is_sealed_too():
    """Panics of polars are no Exceptions, and quote what they stumbled over."""

    @sealed
    def panics():
        raise pl.exceptions.PanicException(f"cannot handle {CANARY}")

    assert not issubclass(pl.exceptions.PanicException, Exception)
    with pytest.raises(DataError, match="got PanicException") as caught:
        panics()
    assert not any(CANARY in text for text in chain(caught.value))


def test_an_interrupt_stays_an_interrupt():
    @sealed
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
