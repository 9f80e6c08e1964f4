"""Parquet and CSV files, folders and globs, read in batches: memory does not grow with the rows."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import secrets
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dpbn.data.encode import Written, is_text
from dpbn.data.rows import Block
from dpbn.errors import DataError, InputError
from dpbn.files import MOST_COLUMNS, csv_header, is_utf16, other_mark
from dpbn.matching import headers_by_name, unguarded

BATCH_ROWS = 1 << 17
CSV_BYTES = 1 << 24
_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".csv.gz")
_FIRST = {  # what to do with files of other programs
    (".duckdb", ".db", ".sqlite", ".sqlite3"): ": a table of a database is given in Python, as a DuckDB, Spark or "
    "Ibis table, or written to Parquet first",
    (".xlsx", ".xls", ".ods"): ": save a spreadsheet as CSV first",
}
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_END = secrets.token_hex(16)  # fields of a last line of our own, which no record can hold


def file_reader(path: str) -> ParquetReader | CsvReader:
    """The reader for a file, a folder of files or a glob, by extension."""
    files = _files(path)
    for suffixes, reader in ((_PARQUET, ParquetReader), (_CSV, CsvReader)):
        if all(name.lower().endswith(suffixes) for name in files):
            return reader(files)
    hint = next((told for endings, told in _FIRST.items() if path.lower().endswith(endings)), "")
    raise InputError(
        f"files must all end in {' or '.join(_PARQUET)}, or all in {' or '.join(_CSV)}, got {path!r}{hint}"
    )


def _files(path: str) -> list[str]:
    if glob.has_magic(path) and not Path(path).exists():
        named = [part for part in Path(path).parts if part.startswith(("_", ".", "[")) and not part.startswith("[!")]
        files = sorted(file for file in glob.glob(path, recursive=True) if not _set_aside(Path(file), named))
    elif Path(path).is_dir():
        found = (file for file in Path(path).rglob("*") if file.name.lower().endswith((*_PARQUET, *_CSV)))
        files = sorted(str(file) for file in found if not _set_aside(file.relative_to(path)))
    else:
        files = [path] if Path(path).is_file() else []
    files = [file for file in files if not Path(file).is_dir()]  # Spark's tables are folders of such names
    if not files:
        raise InputError(f"data must be an existing file, folder or glob of Parquet or CSV files, got {path!r}")
    if not all(map(os.path.isfile, files)):  # who opened a pipe would wait for its writer
        raise InputError(f"data must be files, got a pipe, a device or a broken link in {path!r}")
    distinct = {(stat.st_dev, stat.st_ino) for stat in map(os.stat, files)}
    if len(distinct) < len(files):  # through a link every record would count twice
        raise InputError(f"data must have every file once, got {len(files)} names of {len(distinct)} files in {path!r}")
    if len({re.sub(r"\.gz$", "", file, flags=re.IGNORECASE) for file in files}) < len(files):
        raise InputError(f"data must have every file once, got one with and without .gz in {path!r}")
    if len(files) > 1 and _keeps_versions(files):
        raise InputError(
            f"files of a Delta Lake, DuckLake, Hudi, Iceberg or Paimon table must be read by an engine that knows "
            f"which of them count, got {path!r}: pass a DuckDB or Spark table"
        )
    if copies := len(files) - _contents(files):
        told = f"{copies} of {len(files)} files have the bytes of another: every record of a copy counts again"
        warnings.warn(f"{told}, in {path!r}", stacklevel=2)
    return files


def _contents(files: Sequence[str]) -> int:
    """How many different ones there are, with what their folders say; only files of one size are read."""
    kinds = {file: (os.path.getsize(file), *_partitions(file).items()) for file in files}
    alike = Counter(kinds.values())
    return len({(kind, _digest(file) if alike[kind] > 1 else b"") for file, kind in kinds.items()})


def _digest(file: str) -> bytes:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def _set_aside(file: Path, named: Sequence[str] = ()) -> bool:
    """Whether a file, or a folder on the way to it, is hidden from readers: copies of editors, unfinished writes.

    What a glob has `named`, mark and all, is meant.
    """
    parts = [part for part in file.parent.parts if not part.startswith("_") or "=" not in part]
    marked = (part for part in (*parts, file.name) if part.startswith(("_", ".")))
    return any(not any(fnmatchcase(part, pattern) for pattern in named) for part in marked)


def _keeps_versions(files: Sequence[str]) -> bool:
    """Whether the files belong to a table that keeps what was changed or deleted: a record may be in several."""
    folders = {folder for file in files for folder in Path(file).absolute().parents}
    return any(
        (folder / "_delta_log").exists()
        or (folder / ".hoodie").exists()
        or any((folder / "metadata").glob("*.metadata.json"))
        or (folder / "snapshot" / "LATEST").exists()
        for folder in folders
    ) or any(Path(file).name.startswith("ducklake-") for file in files)  # its catalogue may be anywhere


class ParquetReader:
    """Text columns come as dictionaries, as most of them are stored; folders named key=value are columns too."""

    in_memory = False

    def __init__(self, files: Sequence[str]):
        self._files = list(files)
        self._sizes = [os.path.getsize(file) for file in files]
        self.columns = [*self._open(self._files[0], ()).schema_arrow.names, *_partitions(self._files[0])]

    def _open(self, file: str, texts: Sequence[str]) -> pq.ParquetFile:
        try:  # without pre-buffering only the pages of one batch are held, however large the row groups
            return pq.ParquetFile(file, read_dictionary=list(texts), pre_buffer=False)
        except (pa.ArrowException, OSError):
            raise DataError(f"{_shown(file)} must be a readable Parquet file") from None

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        for place, file in enumerate(self._files):
            schema, partitions = self._open(file, ()).schema_arrow, _partitions(file)
            stored = [name for name in names if name not in partitions]
            missing = [name for name in stored if name not in schema.names]
            if missing:
                raise _without(file, missing)
            _check_once(file, names, [*schema.names, *partitions])
            opened = self._open(file, [name for name in stored if is_text(schema.field(name).type)])
            rows, read = opened.metadata.num_rows, 0
            batches = opened.iter_batches(BATCH_ROWS, columns=stored, use_threads=True)
            try:
                for batch in _ahead(batches):
                    columns = {name: batch.column(name) for name in stored}
                    columns |= {
                        name: _constant(partitions[name], batch.num_rows) for name in names if name in partitions
                    }
                    read += batch.num_rows
                    yield Block(batch.num_rows, columns.__getitem__, _share(self._sizes, place, read / max(rows, 1)))
            except (pa.ArrowException, OSError):
                raise DataError(
                    f"{_shown(file)} must be readable Parquet in every row group, got a damaged one"
                ) from None


def _without(file: str, missing: Sequence[str]) -> DataError:
    return DataError(f"{_shown(file)} must have the columns of the other files, got none named {missing[:10]}")


def _check_once(file: str, names: Sequence[str], found: Sequence[str]) -> None:
    if twice := [name for name in names if found.count(name) > 1]:
        raise DataError(f"{_shown(file)} must have each column once, got {twice[:10]} several times")


def _share(sizes: Sequence[int], place: int, part: float) -> float:
    """How much of all files is read, at `part` of one of them."""
    return (sum(sizes[:place]) + min(part, 1.0) * sizes[place]) / max(sum(sizes), 1)


def _partitions(file: str) -> dict[str, str]:
    """Columns held in the names of folders, as Hive and Spark write them."""
    pairs = (folder.partition("=") for folder in Path(file).parent.parts)
    return {unquote(key): unquote(value) for key, equals, value in pairs if key and equals}


def _shown(file: str) -> str:
    """The file's path for a message, without the values that folders named key=value hold."""
    hidden = (part.partition("=")[0] + "=..." if "=" in part else part for part in Path(file).parent.parts)
    return repr(str(Path(*hidden, Path(file).name)))


def _constant(value: str, rows: int) -> Written:
    missing = value == "__HIVE_DEFAULT_PARTITION__"
    indices = pa.array(np.zeros(rows, dtype=np.int32), mask=np.full(rows, missing))
    return Written(pa.DictionaryArray.from_arrays(indices, pa.array([value])))


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, the next one being decoded while this one is counted."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


class CsvReader:
    """Comma-separated UTF-8 with a header line. Fields have no type: they match as they are written."""

    in_memory = False

    def __init__(self, files: Sequence[str]):
        self._files = list(files)
        self._sizes = [os.path.getsize(file) for file in files]
        self._headers: list[str] = []
        _header(self._files[0])  # refused if it is too wide
        with self._open(self._files[0], None) as stream:
            try:
                self._headers = stream.schema.names
            except UnicodeDecodeError as error:
                raise _refused(self._files[0], error, "must have a header line in UTF-8") from None
        self._by_name = headers_by_name(self._headers)
        if len(self._headers) == 1 and (mark := other_mark(self._headers)):
            raise _separated(self._files[0], mark)
        plain, present = map(unguarded, self._headers), set(self._headers)  # a guarded header can be found by two names
        self.columns = [*self._headers, *(name for name in plain if name not in present)]

    def _open(self, file: str, names: Sequence[str] | None, width: int = 0) -> Any:
        """A stream of batches of the columns `names`; with `width`, after a last line of that many fields."""
        convert = pa.csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names or (), _DICTIONARY),
            null_values=[""],
            strings_can_be_null=True,
        )
        # No invalid_row_handler: where a line is not UTF-8 pyarrow fails before calling it, tells standard error
        # of the byte, and goes on.
        parse = pa.csv.ParseOptions(
            newlines_in_values=True,
            ignore_empty_lines=len(self._headers) != 1,  # in a single column an empty line is a missing value
        )
        try:
            return pa.csv.open_csv(
                _Ended(_bytes(file), width),
                read_options=pa.csv.ReadOptions(block_size=CSV_BYTES),
                parse_options=parse,
                convert_options=convert,
            )
        except pa.ArrowKeyError:
            missing = sorted(set(names or ()) - set(_header(file)))
            raise _without(file, missing) from None
        except (pa.ArrowInvalid, OSError) as error:
            raise _refused(file, error, "must be a UTF-8 CSV file with a header line") from None

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        compressed = any(file.lower().endswith(".gz") for file in self._files)  # how much is inside is unknown
        headers = list(dict.fromkeys(self._by_name[name] for name in names))
        for place, file in enumerate(self._files):
            found = _header(file) if place else self._headers  # other files than the first may have more columns
            _check_once(file, headers, found)  # pyarrow would take the first
            with self._open(file, headers, len(found)) as stream:
                try:
                    for number, batch in enumerate(_whole(stream, file), 1):
                        read = number * CSV_BYTES / max(self._sizes[place], 1)
                        share = None if compressed else _share(self._sizes, place, read)
                        columns = {name: Written(batch.column(self._by_name[name])) for name in names}
                        yield Block(batch.num_rows, columns.__getitem__, share)
                except (pa.ArrowInvalid, OSError) as error:
                    raise _refused(file, error, "must be UTF-8 text throughout") from None


def _bytes(file: str) -> pa.NativeFile:
    return pa.input_stream(file, compression="gzip" if file.lower().endswith(".gz") else None)


def _header(file: str) -> list[str]:
    """The columns of a file, without the time that pyarrow takes for its first block."""
    try:
        found = csv_header(_bytes(file))
    except OSError:  # refused where it is opened to be read
        return []
    if len(found) > MOST_COLUMNS:
        raise DataError(
            f"{_shown(file)} must have at most {MOST_COLUMNS:,} columns, got {len(found):,}: Parquet may have more"
        )
    return found


def _separated(file: str, mark: str) -> DataError:
    return DataError(f"columns of {_shown(file)} must be separated by commas, got {mark!r} between them")


class _Ended:
    """A CSV file with a line of our own after its last, which no open quote may swallow."""

    closed = False

    def __init__(self, stream: pa.NativeFile, width: int):
        self._stream, self._ending, self._last = stream, ",".join([_END] * width).encode() or b"\n", b""

    def read(self, size: int) -> bytes:
        """As much as is asked for, short only at the end: pyarrow refuses a line that no block but the last ends."""
        data: bytes = self._stream.read(size)
        while len(data) < size and (more := self._stream.read(size - len(data))):
            data += more
        self._last = data[-1:] or self._last
        room = size - len(data)
        if room and self._last and self._ending:
            if self._last not in b"\r\n":
                self._ending = b"\n" + self._ending
            data, self._ending, self._last = data + self._ending[:room], self._ending[room:], b"\n"
        return data

    def close(self) -> None:
        self._stream.close()


def _whole(batches: Iterable[pa.RecordBatch], file: str) -> Iterator[pa.RecordBatch]:
    """The batches of a file without its last line, refused if that is not ours.

    pyarrow ends an open quote where the file ends: one record would swallow all records after it.
    """
    held = None
    for batch in batches:
        if batch.num_rows:
            if held is not None:
                yield held
            held = batch
    if held is None or any(column[-1].as_py() != _END for column in held.columns):
        raise DataError(f"{_shown(file)} must close every quote, got one that is open where the file ends")
    yield held.slice(0, held.num_rows - 1)


def _refused(file: str, error: Exception, requirement: str) -> DataError:
    """What is wrong with a CSV file, without pyarrow's message: it quotes the line."""
    if is_utf16(file):
        return DataError(f"{_shown(file)} must be UTF-8 text, got UTF-16: save it as CSV UTF-8")
    if isinstance(error, OSError) and file.lower().endswith(".gz"):
        return DataError(f"{_shown(file)} must be whole gzip data, got a damaged file or another format")
    if "Empty CSV file" in str(error):
        return DataError(f"{_shown(file)} must have a header line and rows, got an empty file")
    if re.match(r"CSV parse error: (Row #\d+: )?Expected", str(error)):  # it numbers rows where it has one thread
        if mark := other_mark(_header(file)):  # and decimal commas below it
            return _separated(file, mark)
        return DataError(f"lines of {_shown(file)} must have as many fields as its header, got one that has not")
    if "straddling" in str(error):  # two blocks, or is the rest of a large file
        return DataError(f"{_shown(file)} must close every quote and have shorter lines, got one without an end")
    return DataError(f"{_shown(file)} {requirement}: save it as CSV UTF-8")
