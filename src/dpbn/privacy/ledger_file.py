"""The ledger's one file in SQLite: opened for each operation, and refused where SQLite's locks would not hold."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpbn.errors import BudgetError, LedgerCorruptError

_WAIT_SECONDS = 120.0
_MOUNTS = Path("/proc/self/mountinfo")
_inherited: list[object] = []
_one = [threading.RLock()]  # thread of a process has a ledger open at a time: then nothing stale is shared


class LedgerFile:
    """Connections to one SQLite file (WAL, synchronous=FULL). Safe across threads, processes and kills."""

    def __init__(self, path: Path):
        self.path = path
        self._local = threading.local()
        self._opened: tuple[int, int] | None = None  # which file it is

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Close the connection when the outermost use ends.

        A process that closes any other handle of the file, as one that copies it does, loses SQLite's locks on it.
        Another then takes the write-ahead file away, and a connection that was kept would go on without it.
        """
        with _one[0]:
            self._local.uses = getattr(self._local, "uses", 0) + 1
            try:
                with _translated(self.path.name):
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

    def _file(self) -> tuple[int, int]:
        """Which file it is. SQLite locks by name: through a second hard link somebody would spend the same budget."""
        found = self.path.stat()
        if found.st_nlink > 1:
            raise LedgerCorruptError(f"ledger {self.path.name} must have one name, got {found.st_nlink} hard links")
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        if self._file() != self._opened:
            raise LedgerCorruptError(f"ledger {self.path.name} must be the file that was opened, got another")

    def _written_ahead(self) -> tuple[int, int] | None:
        """Which file SQLite writes ahead to, if there is one."""
        try:
            found = os.stat(os.path.realpath(self.path) + "-wal")
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _check_written_ahead(self, before: tuple[int, int] | None) -> None:
        """The file is there as long as anybody has the ledger open, unless SQLite's locks are lost meanwhile."""
        if self._written_ahead() != before:
            raise LedgerCorruptError(f"ledger {self.path.name} must keep its write-ahead file, got none or another")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check_file()
            ahead = self._written_ahead()
            yield connection
            self._check_written_ahead(ahead)
            connection.execute("COMMIT")
            self._check_written_ahead(ahead)  # else nothing may rest on what was committed
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _disconnect(self) -> None:
        held = self._local.connection if getattr(self._local, "owner", None) == os.getpid() else None
        self._local.owner = self._local.connection = None
        if held is not None:
            held.close()


def _renew() -> None:
    """A forked process has nobody who would let go of what another thread of its parent held."""
    _one[0] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


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
