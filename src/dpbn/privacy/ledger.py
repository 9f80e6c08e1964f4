"""The budget ledger: a cap per dataset, spent in exact arithmetic, committed before noise is drawn.

One SQLite file (WAL, synchronous=FULL) holding one append-only chain of entries: `open` and `raise` set the cap of a
dataset, `charge` spends, `release` names afterwards what a charge was spent on. Each entry carries the hash of the
one before it, so an edited, reordered or missing entry is evident. A whole file put back to an earlier state
is a valid chain; only memory outside the file can tell. That memory is the anchor: `budget.db.head`, a
sidecar rewritten after every commit, or the line `Ledger.head()` prints, kept elsewhere and given back as
`expected_head=`. Whoever can rewrite database and anchor together is not caught.

Amounts are fractions. A float is read as the decimal it prints as: ten charges of 0.1 fill a cap of 1 exactly.
"""

from __future__ import annotations

import getpass
import os
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpbn.errors import BudgetError, InputError, LedgerCorruptError, did_you_mean, received
from dpbn.files import write_atomically
from dpbn.privacy.chain import (
    GENESIS,
    Amount,
    Balance,
    Entry,
    balance_after,
    canonical,
    check_chain,
    checked_entry,
    entry_hash,
    exact_amount,
    parsed_head,
    read_entry,
)
from dpbn.privacy.ledger_file import LedgerFile

LARGEST_CAP = 10**9  # of epsilon; far beyond what protects anyone
_TABLE = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, kind TEXT NOT NULL,
    body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS entries_by_dataset ON entries (dataset, id)"


class Ledger(LedgerFile):
    """Budgets of datasets in one SQLite file. Safe across threads, processes and kills."""

    def __init__(self, path: str | Path, *, anchor: bool = True, expected_head: str | None = None):
        if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
            raise InputError(f"the place of a ledger must be a path, got {received(path)}")
        super().__init__(Path(path).absolute())
        self._seen: tuple[int, str] = (0, GENESIS)  # newest entry this object knows of: it must stay in the chain
        self._kept: set[tuple[int, str]] = set()  # heads kept elsewhere, which must be in it too
        heads = [] if expected_head is None else [parsed_head(expected_head)]
        with self._using():
            self._anchors = _anchors(self.path) if anchor else []
            kept = [path for path in self._anchors if path.exists()]
            if kept and not self.path.exists():
                raise LedgerCorruptError(f"ledger {self.path.name} must exist beside its anchor, got a missing file")
            heads += [parsed_head(path.read_text(encoding="ascii", errors="replace")) for path in kept]
            with self._transaction() as connection:
                connection.execute(_TABLE)
                connection.execute(_INDEX)
        self._verify(heads)

    # -- what the custodian does ------------------------------------------------------------------------------

    def open_dataset(self, name: str, epsilon: Amount, delta: Amount = 0) -> Entry:
        """Give a dataset its cap. The same cap again changes nothing; another one is refused: see `raise_cap`."""
        cap = _cap(epsilon, delta)
        _text("dataset", name)

        def append(connection: sqlite3.Connection) -> Entry:
            last = self._last(connection, name)
            if last is None:
                return self._append(connection, name, "open", {"who": _who(), **cap.texts()})
            now = balance_after(last)
            if (now.cap_epsilon, now.cap_delta) != (cap.cap_epsilon, cap.cap_delta):
                raise BudgetError(
                    f"dataset {name!r} must keep its cap of {_shown(now.cap_epsilon, now.cap_delta)} unless raised, "
                    f"got {_shown(cap.cap_epsilon, cap.cap_delta)}"
                )
            return last

        return self._write(append)

    def raise_cap(self, name: str, epsilon: Amount, delta: Amount = 0) -> Entry:
        """Set a higher cap, on purpose and on record. A cap never falls."""
        new = _cap(epsilon, delta)
        new_epsilon, new_delta = new.cap_epsilon, new.cap_delta

        def append(connection: sqlite3.Connection) -> Entry:
            now = self._balance(connection, name)
            if new_epsilon < now.cap_epsilon or new_delta < now.cap_delta:
                raise BudgetError(
                    f"a cap must not fall below {_shown(now.cap_epsilon, now.cap_delta)}, "
                    f"got {_shown(new_epsilon, new_delta)}"
                )
            after = Balance(new_epsilon, new_delta, now.spent_epsilon, now.spent_delta)
            return self._append(connection, name, "raise", {"who": _who(), **after.texts()})

        return self._write(append)

    def charge(
        self,
        dataset: str,
        epsilon: Amount,
        delta: Amount = 0,
        *,
        structure: str = "",
        method: str = "",
        note: str = "",
        protects: str = "",
        private: bool = True,
    ) -> int:
        """Spend, durably, before any noise is drawn; returns the entry's number. Never given back.

        `protects` says who is protected against which change. Losses add up only where that is the same, so
        all charges to one dataset must say the same (or nothing).
        """
        if private is not True:
            raise BudgetError("a ledger must be charged for private releases only, got insecure or no noise")
        spend_epsilon, spend_delta = exact_amount("epsilon", epsilon), exact_amount("delta", delta, zero=True)
        about = {"structure": structure, "method": method, "note": note, "protects": protects}
        for subject, value in about.items():
            if not isinstance(value, str):  # others may be read back as something else, and no hash would fit
                raise BudgetError(f"{subject} of a charge must be a text, got {received(value)}")

        def append(connection: sqlite3.Connection) -> Entry:
            now = self._balance(connection, dataset)
            if spend_epsilon > now.epsilon or spend_delta > now.delta:
                raise BudgetError(
                    f"a charge to {dataset!r} must be at most what is left, {_shown(now.epsilon, now.delta)}, "
                    f"got {_shown(spend_epsilon, spend_delta)}"
                )
            before = self._protected(connection, dataset)
            if protects and before and protects != before:
                raise BudgetError(
                    f"charges to {dataset!r} must protect against {before!r} like those before, since other losses "
                    f"do not add up with them, got {protects!r}: open another dataset"
                )
            spent = now.spent_epsilon + spend_epsilon, now.spent_delta + spend_delta
            after = Balance(now.cap_epsilon, now.cap_delta, *spent)
            amounts = {"epsilon": str(spend_epsilon), "delta": str(spend_delta)}
            return self._append(connection, dataset, "charge", {"who": _who(), **about, **amounts, **after.texts()})

        return self._write(append).id

    def record_release(self, entry: int, release_id: str) -> Entry:
        """Note which release a charge was spent on."""
        _text("release_id", release_id)
        if not isinstance(entry, int) or not 0 < entry < 2**63:
            raise BudgetError(f"an entry to name must be a charge in this ledger, got {received(entry)}")

        def append(connection: sqlite3.Connection) -> Entry:
            charge = self._at(connection, entry)
            if charge is None or charge.kind != "charge":
                raise BudgetError(f"an entry to name must be a charge in this ledger, got {entry!r}")
            balance = self._balance(connection, charge.dataset)
            body = {"who": _who(), "charge": charge.id, "release": release_id, **balance.texts()}
            return self._append(connection, charge.dataset, "release", body)

        return self._write(append)

    def close(self) -> None:
        """Forget which file was opened: the next call takes the one that it finds."""
        self._disconnect()
        self._opened = None

    def __repr__(self) -> str:
        return f"Ledger({self.path.name!r}, {self._seen[0]} entries)"

    # -- what anyone may read ---------------------------------------------------------------------------------

    def remaining(self, dataset: str) -> Balance:
        """What is left: `.epsilon` and `.delta`, as exact fractions."""
        with self._using():
            return self._balance(self._connection(), dataset)

    def datasets(self) -> tuple[str, ...]:
        with self._using():
            rows = self._rows("SELECT dataset FROM entries GROUP BY dataset ORDER BY min(id)")
        return tuple(row[0] for row in rows)

    def history(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """All entries, or one dataset's, oldest first."""
        if dataset is not None:
            _text("dataset", dataset)
        where, values = ("WHERE dataset = ?", (dataset,)) if dataset is not None else ("", ())
        with self._using():
            rows = self._rows(f"SELECT * FROM entries {where} ORDER BY id", values)
        return tuple(read_entry(row) for row in rows)

    def head(self) -> str:
        """'number:hash' of the newest entry. Keep it elsewhere: it proves a later roll-back."""
        with self._using():
            last = self._last(self._connection())
        return f"{last.id}:{last.hash}" if last else f"0:{GENESIS}"

    def verify(self, expected_head: str | None = None) -> int:
        """Replay the whole chain and return its length; LedgerCorruptError at the first entry that does not fit.

        With a head kept from an earlier look, the ledger must still contain that entry.
        """
        return self._verify([] if expected_head is None else [parsed_head(expected_head)])

    # -- chain and storage ------------------------------------------------------------------------------------

    def _verify(self, heads: Sequence[tuple[int, str]]) -> int:
        """Each of `heads` must be in the chain: a newer one, of an anchor rewritten too, says nothing of a kept one."""
        self._kept.update(heads)
        found = check_chain(self.history())
        with self._using():
            self._check_heads(self._connection())
        self._remember(found)
        return found[0]

    def _write(self, append: Callable[[sqlite3.Connection], Entry]) -> Entry:
        """Run `append` in one transaction that holds the write lock from its first read to its commit."""
        with self._using():
            with self._transaction() as connection:
                self._check_heads(connection)
                entry = append(connection)
            # committed: from here on nothing may undo it, and a failing anchor must not hide the charge
            self._remember((entry.id, entry.hash))
            self._write_anchors()
            self._move_into_file()
            self._disconnect()  # what others would find must hold it, else no noise may be drawn
            self._check_heads(self._connection())
        return entry

    def _append(self, connection: sqlite3.Connection, dataset: str, kind: str, body: dict[str, Any]) -> Entry:
        last = self._last(connection)
        # without something of its own, the same charge to two copies of a ledger in one second would be one entry
        body = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "nonce": secrets.token_hex(8), **body}
        blank = Entry(last.id + 1 if last else 1, dataset, kind, body, last.hash if last else GENESIS, "")
        entry = Entry(blank.id, dataset, kind, body, blank.previous, entry_hash(blank))
        row = (entry.id, dataset, kind, canonical(body), entry.previous, entry.hash)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
        return entry

    def _last(self, connection: sqlite3.Connection, dataset: str | None = None) -> Entry | None:
        where, values = ("WHERE dataset = ?", (dataset,)) if dataset is not None else ("", ())
        row = connection.execute(f"SELECT * FROM entries {where} ORDER BY id DESC LIMIT 1", values).fetchone()
        return checked_entry(row) if row else None

    def _at(self, connection: sqlite3.Connection, number: int) -> Entry | None:
        row = connection.execute("SELECT * FROM entries WHERE id = ?", (number,)).fetchone()
        return checked_entry(row) if row else None

    def _protected(self, connection: sqlite3.Connection, dataset: str) -> str:
        """What the first charge to `dataset` that says so protects against."""
        query = "SELECT * FROM entries WHERE dataset = ? AND kind = 'charge' ORDER BY id"
        with closing(connection.execute(query, (dataset,))) as rows:
            said = (checked_entry(row).body.get("protects") for row in rows)
            return next((text for text in said if text), "")

    def _balance(self, connection: sqlite3.Connection, dataset: str) -> Balance:
        """From the dataset's last entry alone, which carries the totals; `verify` replays them."""
        _text("dataset", dataset)  # SQLite would take 1 for "1"
        last = self._last(connection, dataset)
        if last is None:
            hint = did_you_mean(dataset, self.datasets())
            raise BudgetError(f"dataset {dataset!r} must be opened with a cap first, got none of that name{hint}")
        return balance_after(last)

    def _check_heads(self, connection: sqlite3.Connection) -> None:
        for number, digest in sorted({self._seen, *self._kept}):
            if number and ((entry := self._at(connection, number)) is None or entry.hash != digest):
                raise LedgerCorruptError(
                    f"entry {number} must still be in the ledger, got a file rolled back or replaced"
                )

    def _remember(self, head: tuple[int, str]) -> None:
        if head[0] > self._seen[0]:
            self._seen = head

    def _write_anchors(self) -> None:
        for path in self._anchors:
            with suppress(OSError, InputError):  # an older anchor is still true, only weaker
                write_atomically(path, f"{self._seen[0]}:{self._seen[1]}\n", like=self.path)

    def _move_into_file(self) -> None:
        """Out of the write-ahead file, as far as no reader is in the way: a copy of the file alone must know it all."""
        with suppress(sqlite3.Error):
            self._connection().execute("PRAGMA wal_checkpoint(PASSIVE)")


def _anchors(path: Path) -> list[Path]:
    """Beside the name given and, if that is a link, beside the file: by either name all charges must be known."""
    names = [path, Path(os.path.realpath(path))] if path.is_symlink() else [path]
    return [name.with_name(name.name + ".head") for name in names]


def _cap(epsilon: Amount, delta: Amount) -> Balance:
    cap = Balance(exact_amount("epsilon", epsilon), exact_amount("delta", delta, zero=True))
    if cap.cap_epsilon > LARGEST_CAP:
        raise BudgetError(f"the epsilon of a cap must be at most {LARGEST_CAP:g}, got more")
    if cap.cap_delta >= 1:
        raise BudgetError(f"the delta of a cap must be below 1, got {float(cap.cap_delta):g}")
    return cap


def _text(subject: str, value: str) -> None:
    fits = isinstance(value, str) and 1 <= len(value) <= 1000
    if not fits or any("\ud800" <= letter <= "\udfff" for letter in value):  # halves of pairs: no file holds them
        raise BudgetError(f"{subject} must be a text of 1 to 1000 characters, got {received(value)}")


def _shown(epsilon: Fraction, delta: Fraction) -> str:
    return f"epsilon={float(epsilon):.12g} and delta={float(delta):.12g}"


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
