"""Fault cases with canaries: secrets in every cell and odd place, and everything an observer could read afterwards.

A case builds a private table in some engine, damages something, runs `learn` (or the command), and returns all text
that came out: streams, logs, warnings, the whole chain of the error, release, report, ledger. None may hold a canary.
"""

from __future__ import annotations

import io
import logging
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import dpbn
from dpbn.errors import DataError, DpbnError
from dpbn.report import write_report

CANARY, NUMBER = "KanarienvogelX9", 739184652017
SECRETS = (CANARY, CANARY.lower(), CANARY.upper(), str(NUMBER), f"{NUMBER:,}", f"{NUMBER:e}"[:8], CANARY.encode().hex())

STRUCTURE = dpbn.Structure(
    dpbn.Schema(
        (
            dpbn.Variable("colour", ("red", "green", "other"), catch_all="other"),
            dpbn.Variable("size", ("small", "large"), cut_points=(10.0,)),
            dpbn.Variable("grade", ("1", "2", "3")),
            dpbn.Variable("sick", ("true", "false")),
        )
    ),
    dpbn.Dag(("colour", "size", "grade", "sick"), {"size": ("colour",), "sick": ("grade", "size")}),
)


class Spiteful:
    """A cell that shouts its value whenever it is touched."""

    def _shout(self, *_: Any) -> Any:
        raise RuntimeError(f"I am {CANARY} {NUMBER}")

    __hash__ = __eq__ = __float__ = __int__ = __bool__ = __len__ = __iter__ = _shout  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Spiteful({CANARY})"


ODD: list[Any] = [
    CANARY, f" {CANARY}", f"red{CANARY}", f"<b>{CANARY}</b>", f"{CANARY}\n{CANARY}", f"{CANARY}\x00", f"={CANARY}()",
    f'"{CANARY}', f"{CANARY},{CANARY}", NUMBER, -NUMBER, NUMBER * 10**20, float(NUMBER), Decimal(NUMBER),
    CANARY.encode(), [CANARY], {CANARY: NUMBER}, (CANARY,), datetime(2026, 1, 1), None, float("nan"), float("inf"),
    Spiteful(), type(CANARY, (), {})(), str(NUMBER), f"{NUMBER}.0", "\ud800" + CANARY, "9" * 5000, 10**400, True,
]  # fmt: skip


@dataclass
class Case:
    """One fault: how it is called, and what could be read afterwards."""

    name: str
    texts: list[str] = field(default_factory=list)
    error: BaseException | None = None

    def found(self) -> list[str]:
        """Where a canary was seen."""
        return [text[:300] for text in self.texts if any(secret in text for secret in SECRETS)]

    def untyped(self) -> str | None:
        """The error, if it is not one of ours."""
        known = (DpbnError, KeyboardInterrupt, SystemExit)
        return None if self.error is None or isinstance(self.error, known) else repr(type(self.error))


def chain(error: BaseException | None) -> Iterator[str]:
    """Everything a logger or debugger would print of an error and of all errors attached to it."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield from (str(one), repr(one), *map(repr, one.args), *getattr(one, "__notes__", ()))
        yield "".join(traceback.format_exception(one))
        yield from (repr(value) for value in vars(one).values())
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


@contextmanager
def watched(case: Case) -> Iterator[None]:
    """Collect streams, logs, warnings and errors of a block into `case`."""
    out, err, log = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    handler.addFilter(lambda record: not record.name.startswith("py4j"))  # Spark's wire: every row, as it says in DEBUG
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned, redirect_stdout(out), redirect_stderr(err):
        warnings.simplefilter("always")
        try:
            yield
        except BaseException as error:
            case.error = error
            case.texts += chain(error)
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
    case.texts += [out.getvalue(), err.getvalue(), log.getvalue(), *(str(w.message) for w in warned)]


# -- tables ---------------------------------------------------------------------------------------------------


def clean_rows(rows: int, dice: random.Random) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "colour": [dice.choice(["red", "green", "other"]) for _ in range(rows)],
            "size": [dice.choice([1.5, 20.0, 10.0]) for _ in range(rows)],
            "grade": [dice.choice([1, 2, 3]) for _ in range(rows)],
            "sick": [dice.choice([True, False]) for _ in range(rows)],
            "person": [f"{CANARY}-{dice.randrange(20)}" for _ in range(rows)],
            "unused": [dice.choice([CANARY, str(NUMBER)]) for _ in range(rows)],
        }
    )


def with_canaries(frame: pd.DataFrame, dice: random.Random) -> pd.DataFrame:
    """Up to three cells replaced by odd values."""
    frame = frame.astype(object)
    for _ in range(dice.randrange(4)):
        row, column = dice.randrange(len(frame)), dice.randrange(len(frame.columns))
        value = dice.choice(ODD)
        cells = list(frame.iloc[:, column])
        cells[row] = value
        frame[frame.columns[column]] = pd.Series(cells, dtype=object)
    return frame


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Every cell as text, for engines whose columns have one type."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float) and value in (1.5, 10.0, 20.0):
            return "small" if value < 10 else "large"
        return str(value).replace("\ud800", "?")

    return frame.map(lambda value: CANARY if isinstance(value, Spiteful) else text(value))


def damaged(path: Path, dice: random.Random) -> None:
    """Cut, overwrite, insert: the bytes of a file as a failing disk leaves them."""
    content = bytearray(path.read_bytes())
    for _ in range(dice.randrange(3)):
        place = dice.randrange(len(content) + 1)
        junk = dice.choice([b"\xff\xfe", b"\x00", b'"', b",", b"\n", CANARY.encode(), b"\r", b",,,,,,,,"])
        kind = dice.randrange(3)
        if kind == 0:
            del content[place:]
        elif kind == 1:
            content[place : place + len(junk)] = junk
        else:
            content[place:place] = junk
    path.write_bytes(bytes(content))


def pandas_table(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    return frame


def arrow_table(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    return pa.Table.from_pandas(as_text(frame) if dice.random() < 0.7 else frame)


def polars_table(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    import polars as pl  # here, because the environment of Ibis has none

    return pl.DataFrame({name: as_text(frame)[name].tolist() for name in frame.columns})


def polars_query(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    """Lazy: the cast fails while counting, with the value in the engine's own message."""
    import polars as pl

    query = polars_table(frame, folder, dice).lazy()
    return query.with_columns(pl.col("grade").cast(pl.Int64)) if dice.random() < 0.7 else query


def duckdb_query(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    connection = duckdb.connect()
    connection.register("private", pa.Table.from_pandas(as_text(frame)))
    cast = dice.choice(["grade", "grade", "CAST(grade AS INTEGER) AS grade", "error(person) AS grade"])
    return connection.sql(f"SELECT * EXCLUDE (grade), {cast} FROM private")


def csv_file(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    path = folder / dice.choice(["private.csv", "private.csv.gz"])
    as_text(frame).to_csv(path, index=False, header=dice.random() < 0.9)
    damaged(path, dice)
    return str(path)


def parquet_file(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    inner = folder / dice.choice([".", f"unused2={CANARY}", f"grade={CANARY}"])
    inner.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pandas(as_text(frame)), inner / "part-0.parquet")
    damaged(inner / "part-0.parquet", dice)
    return folder


def spark_query(frame: pd.DataFrame, folder: Path, dice: random.Random) -> Any:
    """Lazy as well, on the session that runs already; errors come back from another process with the row in them."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    held = session.createDataFrame(as_text(frame).astype(str))
    cast = dice.choice(["grade", "grade", "CAST(grade AS INT) AS grade", "raise_error(person) AS grade"])
    return held.selectExpr(*(name for name in held.columns if name != "grade"), cast)


ENGINES: dict[str, Callable[[pd.DataFrame, Path, random.Random], Any]] = {
    "pandas": pandas_table, "arrow": arrow_table, "polars": polars_table, "polars-lazy": polars_query,
    "duckdb": duckdb_query, "csv": csv_file, "parquet": parquet_file,
}  # fmt: skip


SLOW_ENGINES = {"spark": spark_query}  # named when wanted: a case takes seconds


# -- cases ----------------------------------------------------------------------------------------------------


class BrokenNoise(dpbn.InsecureNoise):
    """Noise that fails at its k-th draw, as a dying machine would."""

    def __init__(self, at: int, error: BaseException):
        super().__init__(0)
        self._left, self._error = at, error

    def laplace(self, counts: Any, scale: float) -> Any:
        self._left -= 1
        if self._left < 0:
            raise self._error
        return super().laplace(counts, scale)


def options_of(dice: random.Random) -> dict[str, Any]:
    method = dice.choice(["uniform", "uniform", "optimized", "icml2020"])
    options: dict[str, Any] = {"method": method, "on_unknown": dice.choice(["error", "drop", "other", "catch_all"])}
    if method == "optimized" and dice.random() < 0.5:
        options["delta"] = 1e-6
    if dice.random() < 0.4:
        options |= {"unit": "person", "max_contributions": dice.choice([1, 2])}
    if dice.random() < 0.2:
        options["neighbors"] = "replace"
    return options


def library_case(number: int, folder: Path, engine: str | None = None) -> Case:
    """Fault case `number`: the same number is the same case."""
    dice = random.Random(number)
    engine = engine or dice.choice(list(ENGINES))
    case = Case(f"library {number} {engine}")
    options = options_of(dice)
    ledger_path = folder / "budget.db"
    frame = with_canaries(clean_rows(dice.choice([1, 7, 40]), dice), dice)
    fault = dice.choice(["none", "none", "noise", "interrupt", "memory", "budget", "full"])
    with watched(case):
        try:
            data = (ENGINES | SLOW_ENGINES)[engine](frame, folder, dice)
        except Exception:  # the engine itself cannot hold this table: not our channel
            return case
        if fault in ("noise", "interrupt", "memory"):
            kinds = {"noise": RuntimeError("x"), "interrupt": KeyboardInterrupt(), "memory": MemoryError()}
            options["noise"] = BrokenNoise(dice.randrange(3), kinds[fault])
            if fault != "interrupt":
                options["delta"] = 0.0
        else:
            ledger = dpbn.Ledger(ledger_path)
            ledger.open_dataset("ward", 0.5 if fault == "budget" else 100, "1e-3")
            options |= {"ledger": ledger, "dataset": "ward"}
        release = dpbn.learn(data, STRUCTURE, 1.0, **options)
        if fault == "full":
            release.save(folder / "no such folder" / "x.json")
        release.save(folder / "x.release.json")
        write_report(release, folder / "x.html", title="x")
        case.texts += [repr(release), release.statement, str(release.details), str(release.options)]
    for path in (folder / "x.release.json", folder / "x.html", *folder.glob("*.md"), *folder.glob("privacy.json")):
        if path.exists():
            case.texts.append(path.read_text("utf-8"))
    for path in folder.glob("budget.db*"):
        case.texts.append(path.read_bytes().decode("latin-1"))
    if isinstance(case.error, (RuntimeError, MemoryError)) and fault in ("noise", "memory"):
        case.error = None  # the fault itself, raised by the noise given: it is the caller's own
    return case


def command_case(number: int, folder: Path) -> Case:
    """The same through `dpbn learn` on a damaged file, in this process."""
    from dpbn.cli import main

    dice = random.Random(10**6 + number)
    case = Case(f"command {number}")
    frame = with_canaries(clean_rows(dice.choice([1, 7, 40]), dice), dice)
    engine = dice.choice(["csv", "parquet"])
    data = str(ENGINES[engine](frame, folder, dice))
    dpbn.write_network(_uniform_network(), folder / "public.json")
    arguments = ["learn", data, str(folder / "public.json"), "-e", "1", "-y", "-o", str(folder / "x.release.json")]
    arguments += ["--method", dice.choice(["uniform", "optimized"]), "--on-unknown", dice.choice(["error", "drop"])]
    arguments += dice.choice([[], ["--unit", "person"], ["--unit", "person", "--max-contributions", "2"], ["--json"]])
    before = sys.argv
    with watched(case):
        try:
            sys.argv = ["dpbn", *arguments]
            main()
        finally:
            sys.argv = before
    # what this process attaches to SystemExit is not printed by the command; its streams are what counts
    case.texts = [text for text in case.texts if "Traceback" not in text or "SystemExit" not in text]
    for path in folder.glob("x.*"):
        case.texts.append(path.read_text("utf-8"))
    return case


def _uniform_network() -> dpbn.BayesianNetwork:
    import numpy as np

    shapes = {node: STRUCTURE.shape(node) for node in STRUCTURE.nodes}
    return dpbn.BayesianNetwork(STRUCTURE, {node: np.full(shape, 1 / shape[-1]) for node, shape in shapes.items()})


__all__ = ["CANARY", "ENGINES", "NUMBER", "STRUCTURE", "Case", "DataError", "chain", "command_case", "library_case"]
