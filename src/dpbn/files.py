"""Reading and writing whole files: a write is complete or did not happen."""

from __future__ import annotations

import codecs
import csv
import errno
import io
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from dpbn.errors import FormatError, InputError, StructureError

MOST_COLUMNS = 1 << 14  # of a CSV file, as of a spreadsheet: pyarrow takes some kilobytes for each
_LONGEST_LINE = 1 << 24


def write_atomically(
    path: str | Path, content: str | bytes, *, overwrite: bool = True, like: Path | None = None
) -> Path:
    """Write to a temporary name beside `path`, flush to disk, then rename over it; without `overwrite`, link to it.

    With the rights of the file `like`, or those that new files of this user have.
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    if not path.parent.is_dir():
        raise InputError(f"the folder of {str(path)!r} must exist, got none")
    temporary = path.parent / f".{path.name[:50]}.{secrets.token_hex(8)}"  # letters may have four bytes
    try:
        opened = temporary.open("xb")
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        with opened as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if like is not None:
            shutil.copymode(like, temporary)
        if overwrite or not _linked(temporary, path):
            os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from None
        raise
    try:  # the rename itself is on disk once the folder is
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def _linked(temporary: Path, path: Path) -> bool:
    """Whether the file has its name, which nobody had: a link cannot come second. Some disks have none."""
    try:
        os.link(temporary, path)
    except OSError:
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        return False
    temporary.unlink()
    return True


def check_replaceable(path: str | Path, *, by_release: bool = False) -> None:
    """Refuse to write over a ledger, or over a release unless it is by another: neither can be made again."""
    path = Path(path)
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            start = file.read(1000)
    except OSError as error:
        raise _unwritable(path, error) from None
    if start.startswith(b"SQLite format 3"):
        raise InputError(f"{str(path)!r} must not be a ledger, got one: choose another name")
    if not by_release and b'"dpbn-release"' in start:
        raise InputError(f"{str(path)!r} must not be a release (none can be made again), got one: choose another name")


def check_writable(path: str | Path, size: int = 0) -> None:
    """Refuse a place where `size` bytes cannot be written, by writing them beside it and taking them away again."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"the folder of {str(path)!r} must exist, got none: make it first")
    if path.exists() and not path.is_file():
        raise InputError(f"{str(path)!r} must be a file, got a folder or a device")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:50]}.") as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: Exception) -> InputError:
    return InputError(f"{str(path)!r} must be a file that can be written: {getattr(error, 'strerror', '') or error}")


_JSON_FAULTS = {
    "Expecting value": "expected a value",
    "Expecting property name enclosed in double quotes": "expected a name in double quotes",
    "Expecting ',' delimiter": "expected ',' or the end of the list or object",
    "Expecting ':' delimiter": "expected ':' after a name",
    "Illegal trailing comma before end of object": "expected no comma before '}'",
    "Illegal trailing comma before end of array": "expected no comma before ']'",
    "Extra data": "expected the end of the file",
    "Unterminated string starting at": "expected a quote at the end of this text",
    "Invalid control character at": "expected no line end or control character inside quotes",
}


def parse_json(text: str, requirement: str, *, source: str = "") -> Any:
    """JSON text as plain values, strictly: no key twice, no NaN. Other text is refused in words after `requirement`."""

    def refusal(reason: str, line: int = 0, column: int = 0) -> FormatError:
        return FormatError(f"{requirement}{reason}", source=source, line=line, column=column)

    def constant(name: str) -> NoReturn:
        raise refusal(f", with finite numbers, got {name}")

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise refusal(", with each key of an object once, got one twice")
        return made

    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=constant, object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        raise refusal(f": {_JSON_FAULTS.get(error.msg, error.msg)}", error.lineno, error.colno) from None
    except RecursionError:
        raise refusal(", got lists or objects nested too deeply") from None
    except FormatError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise refusal(f", with ordinary numbers, got: {error}") from None


@contextmanager
def located(source: str | Path) -> Iterator[None]:
    """Complaints about what a file holds, with the name of the file; a cycle, say, has no line or column."""
    try:
        yield
    except FormatError as error:
        raise type(error)(error.reason, source=str(source), line=error.line, column=error.column) from None
    except StructureError as error:
        raise FormatError(str(error), source=str(source)) from None


def read_text(path: str | Path) -> str:
    """The UTF-8 text of a file, or a typed error."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the place of a file must be a path, got {type(path).__name__}")
    path = Path(path)
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"a text file must be UTF-8, got byte {error.start} that is not", source=str(path)) from None
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise InputError(f"{str(path)!r} must be a readable file: {getattr(error, 'strerror', '') or error}") from None


def csv_header(opened: Any) -> list[str]:
    """The first row of a CSV file (of bytes) that is not empty; none if it cannot be read."""
    try:
        with io.TextIOWrapper(opened, "utf-8-sig", errors="replace", newline="") as text:
            return next(filter(None, csv.reader(iter(lambda: text.readline(_LONGEST_LINE), ""))), [])
    except csv.Error:
        return []


def other_mark(header: Iterable[str]) -> str | None:
    """What a CSV header holds more of than commas, and may be separated by."""
    line = ",".join(header)
    return next((mark for mark in ";\t|" if line.count(mark) > line.count(",")), None)


def is_utf16(path: str | Path) -> bool:
    """Whether a text file begins as UTF-16 does where a spreadsheet wrote it."""
    with open(path, "rb") as opened:
        return opened.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
