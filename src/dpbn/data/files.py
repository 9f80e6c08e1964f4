"""Parquet and CSV files, folders and globs, read in batches: memory does not grow with the rows."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

from dpbn.data.encode import Written
from dpbn.data.rows import Block
from dpbn.errors import DataError, InputError

BATCH_ROWS = 1 << 17
_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".csv.gz")
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def file_reader(path: str) -> ParquetReader | CsvReader:
    """The reader for a file, a folder of files or a glob, by extension."""
    files = _files(path)
    for suffixes, reader in ((_PARQUET, ParquetReader), (_CSV, CsvReader)):
        if all(name.lower().endswith(suffixes) for name in files):
            return reader(files)
    raise InputError(f"files must all end in {_PARQUET} or all in {_CSV}, got {path!r}")


def _files(path: str) -> list[str]:
    if glob.has_magic(path) and not Path(path).exists():
        files = sorted(glob.glob(path, recursive=True))
    elif Path(path).is_dir():
        found = (file for file in Path(path).rglob("*") if file.name.lower().endswith((*_PARQUET, *_CSV)))
        files = sorted(str(file) for file in found if not file.name.startswith(("_", ".")))
    else:
        files = [path] if Path(path).is_file() else []
    if not files:
        raise InputError(f"data must be an existing file, folder or glob of Parquet or CSV files, got {path!r}")
    return files


class ParquetReader:
    """Text columns come as dictionaries, as most of them are stored."""

    in_memory = False

    def __init__(self, files: Sequence[str]):
        self._files = list(files)
        self._schema = self._dataset(()).schema

    def _dataset(self, texts: Sequence[str]) -> Any:
        options = pa.dataset.ParquetReadOptions(dictionary_columns=list(texts))
        try:
            return pa.dataset.dataset(self._files, format=pa.dataset.ParquetFileFormat(read_options=options))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError):
            raise DataError(f"{self._files[0]!r} must be a readable Parquet file with the others' columns") from None

    @property
    def columns(self) -> Sequence[str]:
        return self._schema.names

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        texts = [name for name in names if _is_text(self._schema.field(name).type)]
        scanner = self._dataset(texts).scanner(
            columns=list(names), batch_size=BATCH_ROWS, batch_readahead=4, fragment_readahead=1, use_threads=True
        )
        try:
            for batch in scanner.to_batches():
                yield Block(batch.num_rows, {name: batch.column(name) for name in names})
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OSError):
            raise DataError(
                f"{self._files[0]!r} must be readable Parquet in every row group, got a damaged one"
            ) from None


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


class CsvReader:
    """Comma-separated UTF-8 with a header line. Fields have no type: they match as they are written."""

    in_memory = False

    def __init__(self, files: Sequence[str]):
        self._files = list(files)
        self._columns: list[str] = []
        with self._open(self._files[0], None) as stream:
            self._columns = stream.schema.names
        if len(self._columns) == 1 and any(mark in self._columns[0] for mark in ";\t|"):
            raise DataError(f"columns of {self._files[0]!r} must be separated by commas, got one column in all")

    @property
    def columns(self) -> Sequence[str]:
        return self._columns

    def _open(self, file: str, names: Sequence[str] | None, broken: list[int] | None = None) -> Any:
        def skip(row: Any) -> str:
            if broken is not None:
                broken.append(row.actual_columns)
            return "skip"

        convert = pa.csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names or (), _DICTIONARY),
            null_values=[""],
            strings_can_be_null=True,
        )
        try:
            return pa.csv.open_csv(
                file,
                read_options=pa.csv.ReadOptions(block_size=1 << 24),
                parse_options=pa.csv.ParseOptions(
                    invalid_row_handler=skip,
                    newlines_in_values=True,
                    ignore_empty_lines=len(self._columns) != 1,  # in a single column an empty line is a missing value
                ),
                convert_options=convert,
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError, OSError):
            raise DataError(f"{file!r} must be a UTF-8 CSV file with a header line and the named columns") from None

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        for file in self._files:
            broken: list[int] = []
            with self._open(file, names, broken) as stream:
                try:
                    for batch in stream:
                        yield Block(batch.num_rows, {name: Written(batch.column(name)) for name in names})
                except (pa.ArrowInvalid, OSError):  # its message may quote a line
                    raise DataError(f"{file!r} must be UTF-8 text throughout") from None
            if broken:
                raise DataError(
                    f"lines of {file!r} must have as many fields as its header, got {len(broken)} that have not"
                )
