"""Files: how they are found, and that a broken one is refused without quoting it."""

import gzip
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpbn.data import files, open_source
from dpbn.data import rows as row_source
from dpbn.data.files import file_reader
from dpbn.domain import Schema, Variable
from dpbn.errors import DataError, InputError
from dpbn.formats import load_network
from dpbn.graph import Dag
from dpbn.network import Structure

STRUCTURE = Structure(
    Schema((Variable("x", ("yes", "no", "01", "1.5")), Variable("n", ("low", "high"), cut_points=(10,)))),
    Dag(("x", "n"), {}),
)


def count(path, **options):
    tables = open_source(path, STRUCTURE, **options).counts([("x",), ("n",)])
    return tables[("x",)].tolist(), tables[("n",)].tolist()


def test_csv_fields_match_as_they_are_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,n\nyes,9.5\n"no",10\n01,1e3\n1,-3\n1.50,12\n\n')
    assert count(path) == ([1, 1, 2, 1], [2, 3])


def test_a_column_in_which_no_record_fits_is_told_of(tmp_path):
    (tmp_path / "t.csv").write_text("x,n\nyes,1\nno,2\nmaybe,low\n")
    with pytest.raises(DataError, match=r"'x': 1, of 3 records.*, spelt like this; on_unknown='drop' leaves such"):
        count(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"no record fits in 'x': is it the right column, of the right type\?$"):
        count(pa.table({"x": [True, False, True], "n": [1, 2, 3]}))  # as an engine may read yes and no


@pytest.mark.parametrize("threads", ["1", "2"])
def test_broken_lines_are_told_apart_whatever_the_threads(tmp_path, threads):
    """pyarrow says it in other words where it has one thread, and takes their number from the environment."""
    path = tmp_path / "t.csv"
    path.write_text("x,n\nyes,1\nyes,2,secret\n")
    code = f"from dpbn.data.files import CsvReader; CsvReader([{str(path)!r}])"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "got one that has not" in found.stderr and "secret" not in found.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x;n\nyes;secret\n", "separated by commas, got ';' between them"),
        ("x;n\nyes;1,5\n", "separated by commas, got ';' between them"),  # decimal commas
        ("x;n;how, by car\nyes;1,5;no\n1,0;3,5;no\n", "separated by commas, got ';' between them"),
        ("x,n\nyes,1\nyes,2,secret\n", "got one that has not"),
        ("x,z\nyes,secret\n", r"without \['n'\]"),
        ("", "a header line and rows, got an empty file"),
        ("x,n" + "," * 20_000 + "\n", "at most 16,384 columns, got 20,002"),
        ("x,n\nsecret,1\nyes,\nyes,low\n", "'x': 1, 'n': 1, of 3 records"),
    ],
)
def test_broken_csv_is_refused_without_quoting_it(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as refused:
        count(path)
    assert "secret" not in str(refused.value) and refused.value.__cause__ is None


@pytest.mark.parametrize("policy", ["error", "drop"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_an_open_quote_does_not_swallow_the_records_after_it(tmp_path, name, policy):
    """Not even in a column that nobody asks for."""
    path, rows = tmp_path / name, "yes,1,fine\n" * 5
    write = gzip.compress if name.endswith("gz") else bytes
    for text, header in ((f'{rows}yes,1,"secret\n{rows}', "x,n,note\n"), ('"yes\nno\n', "x\n")):
        structure = STRUCTURE if "n" in header else Structure(Schema((Variable("x", ("yes", "no")),)), Dag(("x",), {}))
        path.write_bytes(write(f"{header}{text}".encode()))
        with pytest.raises(DataError, match="must close every quote") as refused:
            open_source(path, structure, on_unknown=policy).counts([()])
        assert "secret" not in str(refused.value)
    for ending in ("", "\n", "\r\n", "\n\n"):
        path.write_bytes(write(f'x,n,note\nyes,1,"two\nlines"\nno,20,5"{ending}'.encode()))
        assert count(path) == ([1, 1, 0, 0], [1, 1])
    for header in (b"x,n\n", b"x,n", b"\xef\xbb\xbfx,n", b'"x","n"'):  # a line without an end may be the header, too
        path.write_bytes(write(header))
        assert count(path) == ([0, 0, 0, 0], [0, 0])


def test_no_record_can_pass_for_the_end_of_a_file(tmp_path):
    """One that knows the words of our own last line would hide all records after it."""
    path = tmp_path / "t.csv"
    path.write_text('x,n,note\nyes,1,fine\ndpbn,dpbn,"\n' + "yes,1,fine\n" * 5)
    with pytest.raises(DataError, match="must close every quote"):
        open_source(path, STRUCTURE, on_unknown="drop").counts([()])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_files_of_every_length_end_well_in_their_last_block(tmp_path, monkeypatch, name):
    monkeypatch.setattr(files, "CSV_BYTES", 128)
    path, write = tmp_path / name, gzip.compress if name.endswith("gz") else bytes
    for length in range(140):
        path.write_bytes(write(f"x,n,note\nno,20,{'n' * length}\nyes,1,fine".encode()))
        assert count(path) == ([1, 1, 0, 0], [1, 1])
    path.write_bytes(write(b'x,n,note\nyes,1,"secret\n' + b"yes,1,fine\n" * 50))
    with pytest.raises(DataError, match="must close every quote and have shorter lines"):
        count(path)


def test_csv_files_of_one_folder_may_differ_in_other_columns(tmp_path):
    (tmp_path / "a.csv").write_text("x,n\nyes,1\n")
    (tmp_path / "b.csv").write_text('note,n,x\n"a\nb",20,no\n')
    assert count(tmp_path) == ([1, 1, 0, 0], [1, 1])


@pytest.mark.parametrize("header", ["x,n", '"x","n"', "\ufeffx,n"])
def test_csv_files_are_parsed_once_each(tmp_path, monkeypatch, header):
    """And the first once more, for its columns."""
    opened, parse = [], pa.csv.open_csv
    monkeypatch.setattr(pa.csv, "open_csv", lambda *given, **options: opened.append(0) or parse(*given, **options))
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text(f"{header}\nyes,1\n", "utf-8")
    assert count(tmp_path) == ([3, 0, 0, 0], [3, 0])
    assert len(opened) == 1 + 3
    (tmp_path / "c.csv").write_text('x,n,"no\nte"\nyes,1,2\n')
    assert count(tmp_path) == ([3, 0, 0, 0], [3, 0])
    assert len(opened) == 4 + 4


def test_csv_that_is_not_utf8(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,n\n\xff\xfe,1\n")
    with pytest.raises(DataError, match=r"UTF-8 .*: save it as CSV UTF-8"):
        count(path)
    path.write_bytes(b"x,n,\xc2ge,r\xe9sum\xe9\n1,2,3,4\n")
    with pytest.raises(DataError, match=r"header line in UTF-8: save it as CSV UTF-8$"):
        count(path)
    for text in ("x,n\na,1\n", "x\na\n"):
        path.write_text(text, encoding="utf-16")
        with pytest.raises(DataError, match="got UTF-16: save it as CSV UTF-8"):
            count(path)


def test_folders_named_like_columns_are_columns(tmp_path):
    for x, name in (("yes", "yes"), ("no", "no"), ("1.5", "1%2E5"), ("", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"x={name}"
        folder.mkdir()
        pq.write_table(pa.table({"n": [1.0, 20.0] if x else [1.0]}), folder / "part.parquet")
    assert count(tmp_path, on_unknown="drop") == ([2, 2, 0, 2], [3, 3])


def test_parquet_files_must_agree_on_columns(tmp_path):
    pq.write_table(pa.table({"x": ["yes"], "n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["yes"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"got none named \['n'\]"):
        count(tmp_path)


def test_broken_parquet_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match="readable Parquet"):
        count(path)


@pytest.mark.parametrize("path", ["nowhere.parquet", "nowhere-*.csv", "."])
def test_nothing_there(tmp_path, path):
    with pytest.raises(InputError, match="existing file, folder or glob"):
        count(str(tmp_path / path))


def test_copies_in_folders_set_aside_are_not_counted(tmp_path):
    """Jupyter and Spark leave them."""
    for folder in (".", ".ipynb_checkpoints", ".k=1", "_temporary/0", "_k=1"):
        (tmp_path / "rows" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "rows" / folder / "may.csv").write_text("x,n\nyes,1\n")
    for name in ("_may.csv", "_may=1.csv", "._may=1.csv"):
        (tmp_path / "rows" / name).write_text("x,n\nyes,1\n")
    assert count(tmp_path / "rows") == ([2, 0, 0, 0], [2, 0])
    (tmp_path / "rows").rename(tmp_path / "_rows")
    assert count(tmp_path / "_rows") == ([2, 0, 0, 0], [2, 0])
    for pattern, rows in (("**/*.csv", 2), ("*/*.csv", 1), ("_temporary/*/*.csv", 1), ("_*.csv", 2), (".*/*.csv", 2)):
        assert count(str(tmp_path / "_rows" / pattern)) == ([rows, 0, 0, 0], [rows, 0])
    for pattern, rows in (("[_m]*.csv", 3), ("[!x]*.csv", 1)):  # a mark that is named, and one that is merely let in
        assert count(str(tmp_path / "_rows" / pattern)) == ([rows, 0, 0, 0], [rows, 0])


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_of_two_names_is_not_counted_twice(tmp_path, link):
    (tmp_path / "may.csv").write_text("x,n\nyes,1\n")
    link(tmp_path / "may.csv", tmp_path / "latest.csv")
    for path in (tmp_path, tmp_path / "*.csv"):
        with pytest.raises(InputError, match="every file once, got 2 names of 1 files"):
            count(str(path))
    assert count(tmp_path / "latest.csv") == ([1, 0, 0, 0], [1, 0])


def test_a_file_and_its_compressed_copy_are_not_both_counted(tmp_path):
    (tmp_path / "may.csv").write_text("x,n\nyes,1\n")
    (tmp_path / "MAY.csv").write_text("x,n\nyes,1\n")  # another file, where case matters
    assert count(tmp_path)[0] == [len(os.listdir(tmp_path)), 0, 0, 0]
    (tmp_path / "may.csv.gz").write_bytes(gzip.compress((tmp_path / "may.csv").read_bytes()))
    with pytest.raises(InputError, match=r"with and without \.gz"):
        count(str(tmp_path))


def test_a_plain_copy_is_told_to_the_custodian(tmp_path):
    """It may be meant: two days may have the same few records. Nor is what a folder is named after in the file."""
    for name in ("k=1/may.csv", "k=2/may.csv", "june.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x,n\nyes,2\n" if name == "june.csv" else "x,n\nyes,1\n")
    assert count(tmp_path)[0] == [3, 0, 0, 0]
    (tmp_path / "june - Kopie.csv").write_text("x,n\nyes,2\n")
    with pytest.warns(UserWarning, match="1 of 4 files have the bytes of another"):
        assert count(tmp_path)[0] == [4, 0, 0, 0]


def test_folders_named_like_files_are_read_as_folders(tmp_path):
    """Spark writes a table as a folder `may.csv` with parts in it."""
    for month in ("may.csv", "june.csv"):
        (tmp_path / month).mkdir()
        (tmp_path / month / "part-0.csv").write_text(f"x,n\nyes,{len(month)}\n")
    assert count(tmp_path)[0] == count(str(tmp_path / "**" / "*.csv"))[0] == [2, 0, 0, 0]


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: os.symlink("gone", path), lambda path: os.symlink("/dev/zero", path)]
)
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, make):
    (tmp_path / "may.csv").write_text("x,n\nyes,1\n")
    make(tmp_path / "june.csv")
    with pytest.raises(InputError, match="got a pipe, a device or a broken link"):
        count(tmp_path)


@pytest.mark.parametrize(
    "log",
    ["_delta_log/00000.json", ".hoodie/hoodie.properties", "metadata/v1.metadata.json", "snapshot/LATEST"],
)
def test_old_versions_of_a_table_are_not_counted_beside_the_present_one(tmp_path, log):
    """A record that was changed is in two files of such a table."""
    for part in ("data/k=1/old", "data/k=2/new"):
        (tmp_path / part).parent.mkdir(parents=True)
        pq.write_table(pa.table({"x": ["yes"], "n": [1]}), tmp_path / f"{part}.parquet")
    assert count(tmp_path)[0] == [2, 0, 0, 0]
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).write_text("{}")
    for path in (tmp_path, tmp_path / "data", tmp_path / "data" / "*" / "*.parquet"):
        with pytest.raises(InputError, match="an engine that knows which of them count"):
            count(str(path))


def test_small_files_of_a_ducklake_are_not_counted_beside_the_one_they_were_merged_into(tmp_path):
    for part in ("ducklake-0197", "ducklake-0198"):
        pq.write_table(pa.table({"x": ["yes"], "n": [1]}), tmp_path / f"{part}.parquet")
    with pytest.raises(InputError, match="an engine that knows which of them count"):
        count(tmp_path)
    assert count(tmp_path / "ducklake-0198.parquet")[0] == [1, 0, 0, 0]


def test_a_column_that_a_later_file_has_twice_is_refused(tmp_path):
    (tmp_path / "1.csv").write_text("x,n\nyes,1\n")
    (tmp_path / "2.csv").write_text("x,n,z,z\nyes,1,0,0\n")
    assert count(tmp_path)[0] == [2, 0, 0, 0]
    (tmp_path / "2.csv").write_text("x,n,x\nyes,1,no\n")
    with pytest.raises(DataError, match=r"2\.csv' must have each column once, got \['x'\] several times"):
        count(tmp_path)


def test_a_column_that_a_later_parquet_file_has_twice_is_refused(tmp_path):
    """Of a person in the file and another in the name of its folder, neither counts."""
    table = pa.table({"x": ["yes"], "n": [1], "who": ["p1"]})
    pq.write_table(table, tmp_path / "1.parquet")
    (tmp_path / "who=p2").mkdir()
    pq.write_table(table, tmp_path / "who=p2" / "2.parquet")
    assert count(tmp_path)[0] == [2, 0, 0, 0]
    with pytest.raises(DataError, match=r"2\.parquet' must have each column once, got \['who'\] several times"):
        count(tmp_path, unit="who")
    (tmp_path / "who=p2" / "2.parquet").unlink()
    pq.write_table(pa.table([["yes"], ["no"], [1]], names=["x", "x", "n"]), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet' must have each column once, got \['x'\] several times"):
        count(tmp_path)


def test_mixed_or_unknown_kinds(tmp_path):
    (tmp_path / "a.csv").write_text("x,n\n")
    (tmp_path / "b.parquet").write_bytes(b"")
    (tmp_path / "c.xlsx").write_bytes(b"")
    for path in (tmp_path, tmp_path / "c.xlsx"):
        with pytest.raises(InputError, match=r"must all end in .parquet or .pq, or all in .csv or .csv.gz, got"):
            count(path)


@pytest.mark.parametrize(("small", "passes"), [(1 << 26, 1), (10, 4)])
def test_a_small_table_on_disk_is_read_once_and_a_large_one_again(small, passes, tmp_path, monkeypatch):
    monkeypatch.setattr(row_source, "SMALL", small)
    network = load_network("asia")
    rows = network.sample(500, seed=3)
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "rows.parquet", row_group_size=100)
    told = []
    source = open_source(tmp_path / "rows.parquet", network.structure, progress=told.append)
    for _ in range(2):
        assert source.counts([()])[()] == 500
        assert source.counts([("smoke",)])[("smoke",)].tolist() == [(rows["smoke"] == s).sum() for s in ("yes", "no")]
    assert told.count(1.0) == passes


def test_a_progress_that_fails_is_not_told_as_a_fault_of_the_table(tmp_path):
    network = load_network("asia")
    network.sample(50, seed=3).to_csv(tmp_path / "rows.csv", index=False)
    source = open_source(tmp_path / "rows.csv", network.structure, progress=lambda share: 1 // 0)
    with pytest.raises(InputError, match=r"progress .* got ZeroDivisionError"):
        source.counts([()])


def test_a_refused_table_is_refused_again(tmp_path):
    network = load_network("asia")
    rows = network.sample(50, seed=3).astype(str)
    rows.loc[7, "smoke"] = "perhaps"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    source = open_source(tmp_path / "rows.csv", network.structure)
    for _ in range(2):
        with pytest.raises(DataError, match="'smoke': 1"):
            source.counts([()])


@pytest.mark.parametrize(("header", "meant"), [("X,n", "'X'"), (" x ,n", "' x '"), ("x,N,k", "'N'")])
def test_a_column_of_almost_the_right_name_is_suggested(tmp_path, header, meant):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\nyes,1{',2' if header.count(',') == 2 else ''}\n")
    with pytest.raises(DataError, match=f"did you mean {meant}"):
        open_source(path, STRUCTURE)


def test_a_column_that_another_variable_needs_is_not_suggested(tmp_path):
    structure = Structure(Schema((Variable("x1", ("a",)), Variable("x2", ("a",)))), Dag(("x1", "x2"), {}))
    (tmp_path / "t.csv").write_text("x1\na\n")
    with pytest.raises(DataError, match=r"without \['x2'\]; a column of another name"):
        open_source(tmp_path / "t.csv", structure)


def test_a_csv_file_without_a_column_of_the_others_says_which(tmp_path):
    (tmp_path / "a.csv").write_text("x,n\nyes,1\n")
    (tmp_path / "b.csv").write_text("X,n\nyes,secret\n")
    with pytest.raises(DataError, match=r"b\.csv' must have the columns of the other files, got none named \['x'\]"):
        count(tmp_path)


@pytest.mark.parametrize(
    "data", [gzip.compress(b"x,n\n" + b"yes,1\n" * 99)[:-12], b"x,n\nyes,1\n"], ids=["cut off", "no gzip"]
)
def test_a_damaged_gzip_file_is_called_so(tmp_path, data):
    (tmp_path / "t.csv.gz").write_bytes(data)
    with pytest.raises(DataError, match=r"t\.csv\.gz' must be whole gzip data"):
        count(tmp_path / "t.csv.gz")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("hospital.duckdb", "a table of a database is given in Python, as a DuckDB, Spark or Ibis table"),
        ("hospital.SQLITE", "a table of a database is given in Python"),
        ("visits.xlsx", "save a spreadsheet as CSV first"),
    ],
)
def test_files_of_other_programs_say_what_to_do_first(tmp_path, name, advice):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=advice):
        file_reader(str(tmp_path / name))
