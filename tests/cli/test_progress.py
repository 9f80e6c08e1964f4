"""How far counting is: told to the caller, drawn on a terminal only, written nowhere else."""

import fcntl
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpbn
from dpbn.data import files, open_source

ASIA = dpbn.load_network("asia")
SETS = [("smoke", "lung"), ("dysp",)]


def shares(data, **options):
    told = []
    open_source(data, ASIA.structure, progress=told.append, **options).counts(SETS)
    return told


@pytest.fixture
def rows():
    return ASIA.sample(1000, seed=1)


def test_parquet_tells_the_share_of_rows_read(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 100)
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "one.parquet")
    told = shares(tmp_path / "one.parquet")
    assert told == pytest.approx([step / 10 for step in range(1, 11)])
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "two.parquet")
    told = shares(tmp_path)
    assert told == pytest.approx([step / 20 for step in range(1, 21)])


def test_csv_tells_the_share_of_bytes_read(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CSV_BYTES", 4096)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    told = shares(tmp_path / "rows.csv")
    assert len(told) > 3 and told == sorted(told) and 0 < told[0] < 0.5 and told[-1] == 1
    rows.to_csv(tmp_path / "packed.csv.gz", index=False)
    assert set(shares(tmp_path / "packed.csv.gz")) == {None}


def test_engines_tell_the_share_of_queries_answered(rows, monkeypatch):
    import duckdb

    from dpbn.data import pushdown

    monkeypatch.setattr(pushdown, "GROUP_CELLS", 4)
    held = pa.Table.from_pandas(rows)
    assert shares(duckdb.connect().from_arrow(held)) == [0.5, 1.0]


def test_a_table_in_memory_is_one_step(rows):
    assert shares(rows) == [1.0]


def test_learn_tells_every_pass(rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    told = []
    quiet = dpbn.learn(tmp_path / "rows.csv", ASIA, 1.0, progress=told.append, noise=dpbn.InsecureNoise(1))
    assert told and set(told) == {1.0}
    assert quiet.id == dpbn.learn(tmp_path / "rows.csv", ASIA, 1.0, noise=dpbn.InsecureNoise(1)).id


BAR = """
import sys, time
import dpbn.cli.shared as shared
shared.PATIENCE = float(sys.argv.pop(1))
from dpbn.data import files
files.CSV_BYTES = 1 << 14
from dpbn.data.rows import RowSource
import dpbn.data.rows as rows
add = rows.Tally.add
def slowly(self, codes):
    time.sleep(0.2)
    add(self, codes)
rows.Tally.add = slowly
from dpbn.cli import main
main()
"""


def on_a_terminal(patience, *arguments, cwd):
    """What a terminal on standard error is sent while the command runs, and its standard output."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, b"\x18\x00\x64\x00\x00\x00\x00\x00")  # 24 lines of 100
    environment = {**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1]), "TERM": "xterm"}
    line = [sys.executable, "-c", BAR, str(patience), *map(str, arguments)]
    process = subprocess.Popen(line, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    seen = b""
    while True:
        try:
            part = os.read(reader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    out = process.communicate()[0]
    os.close(reader)
    assert process.returncode == 0, seen
    return seen.decode(), out.decode()


def test_the_bar_is_drawn_on_a_terminal_and_only_if_it_takes_long(rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["learn", "rows.csv", "asia", "-e", 1, "--method", "uniform", "-y", "-o"]
    seen, out = on_a_terminal(0.05, *arguments, "a.json", cwd=tmp_path)
    assert "counting" in seen and "%" in seen and "━" in seen
    assert "1000" not in seen and "1,000" not in seen, "a share, not the number of records"
    assert out.startswith("wrote a.json") and "counting" not in out
    seen, out = on_a_terminal(60, *arguments, "b.json", cwd=tmp_path)
    assert seen == ""
    assert (tmp_path / "a.json").read_text().count("counting") == 0


def test_nothing_is_drawn_into_a_pipe(run, patients, monkeypatch):
    monkeypatch.setattr("dpbn.cli.shared.PATIENCE", 0.0)
    outcome = run("learn", patients, "asia", "-e", 1, "--method", "uniform", "-o", "r.json", "-y")
    assert outcome.code == 0 and outcome.err == ""
