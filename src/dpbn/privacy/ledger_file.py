"""The ledger's one file in SQLite: opened for each operation, and refused where SQLite's locks would not hold."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from dpbn.errors import BudgetError, LedgerCorruptError

try:
    import fcntl
except ImportError:  # Windows: SQLite's locks are of handles there, which no other handle takes away
    fcntl = None  # type: ignore[assignment]

_WAIT_SECONDS = 120.0
_MOUNTS = Path("/proc/self/mountinfo")
_inherited: list[object] = []
_one = [threading.RLock()]  # thread of a process has a ledger open at a time: then nothing stale is shared
_locked: dict[str, int] = {}  # folders in use by this process, with their handles
_torn: list[str] = []  # folders that were in use when this process was forked


class LedgerFile:
    """Connections to one SQLite file (WAL, synchronous=FULL). Safe across threads, processes and kills."""

    def __init__(self, path: Path):
        self.path = path
        self._local = threading.local()
        self._opened: tuple[int, int] | None = None  # which file it is

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Close the connection when the outermost use ends.

        Meanwhile no other process of dpbn has one. SQLite's own locks do not see to that: they are lost where this
        process closes any other handle of the file, as one that copies it does.
        """
        with _translated(self.path.name), _alone(self.path):
            self._local.uses = getattr(self._local, "uses", 0) + 1
            try:
                yield
            finally:
                self._local.uses -= 1
                if not self._local.uses:
                    with suppress(sqlite3.Error):  # what is committed stays
                        self._disconnect()

    def _connection(self) -> sqlite3.Connection:
        """One connection per thread and process: SQLite's must not cross a fork."""
        if getattr(self._local, "owner", None) != os.getpid():
            if (inherited := getattr(self._local, "connection", None)) is not None:
                _inherited.append(inherited)  # closing it here would hurt the parent's
            if _is_mounted(self.path):
                raise LedgerCorruptError(f"ledger {self.path.name} must be mounted with its folder, got the file alone")
            if self._opened is not None:
                self._check_file()  # SQLite would make a new one
            connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
            self._local.connection, self._local.owner = connection, os.getpid()
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            self._opened = self._opened or self._file()
        return self._local.connection

    def _rows(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        """All at once: a cursor that is not done, kept by an error's traceback say, would keep the file open."""
        with closing(self._connection().execute(query, values)) as cursor:
            return cursor.fetchall()

    def _file(self) -> tuple[int, int]:
        """Which file it is. SQLite locks by name: through a second hard link somebody would spend the same budget."""
        found = self.path.stat()
        if found.st_nlink > 1:
            raise LedgerCorruptError(f"ledger {self.path.name} must have one name, got {found.st_nlink} hard links")
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        if self._file() != self._opened:
            raise LedgerCorruptError(f"ledger {self.path.name} must be the file that was opened, got another")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check_file()
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _disconnect(self) -> None:
        held = self._local.connection if getattr(self._local, "owner", None) == os.getpid() else None
        self._local.owner = self._local.connection = None
        if held is not None:
            held.close()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One thread of this process and, by a lock of the file's folder, one process of this machine.

    It belongs to this very handle of the folder: closing others does not lose it, nor can a file of it be removed.
    """
    folder = os.path.dirname(os.path.realpath(path))
    with _one[0]:
        if _torn:
            raise BudgetError(f"ledger {path.name} must not be in use where a process forks, got one forked meanwhile")
        if fcntl is None or folder in _locked:
            yield
            return
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _lock(handle, path.name)
        except BaseException:
            os.close(handle)
            raise
        _locked[folder] = handle
        try:
            yield
        finally:
            if folder in _locked:  # else this is a forked process, and the lock its parent's
                del _locked[folder]
                fcntl.flock(handle, fcntl.LOCK_UN)  # forked processes may have the handle as well
                os.close(handle)


def _lock(handle: int, name: str) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise BudgetError(f"ledger {name} must be free, got a folder that stays locked (flock)") from None
        time.sleep(0.001)


def _renew() -> None:
    """In a forked process: what is held is its parent's."""
    _one[0] = threading.RLock()
    _torn.extend(_locked)
    while _locked:
        os.close(_locked.popitem()[1])


if hasattr(os, "register_at_fork"):  # no fork while a ledger is open: the child would take SQLite's locks for its own
    os.register_at_fork(
        before=lambda: _one[0].acquire(), after_in_parent=lambda: _one[0].release(), after_in_child=_renew
    )


def _is_mounted(path: Path) -> bool:
    """Whether the file is mounted by itself, as into a container: SQLite's locks lie beside each of its two names."""
    try:
        lines = _MOUNTS.read_bytes().split(b"\n")  # as bytes: a name may hold what is a space or a line end in text
    except OSError:  # no Linux
        return False
    place = os.fsencode(os.path.realpath(path)).replace(b"\\", b"\\134").replace(b" ", b"\\040")
    place = place.replace(b"\t", b"\\011").replace(b"\n", b"\\012")
    return any(line.split(b" ")[4:5] == [place] for line in lines)


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """SQLite's errors as ours: a broken file, or a write that did not happen (so no noise may be drawn)."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise BudgetError(f"ledger {name} must be readable and writable, got: {error}") from error
    except OSError as error:
        raise BudgetError(f"ledger {name:.80} must be readable and writable, got: {error.strerror}") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise LedgerCorruptError(f"ledger {name} must be an intact SQLite file, got: {error}") from error
