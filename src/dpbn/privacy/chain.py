"""Entries of the ledger: what one states, how it is chained to the one before, how totals are replayed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

from dpbn.errors import BudgetError, LedgerCorruptError, received

Amount = int | float | str | Decimal | Fraction
GENESIS = "0" * 64
_TOTALS = ("cap_epsilon", "cap_delta", "spent_epsilon", "spent_delta")
_WRITTEN = re.compile(r"-?[0-9]+(/[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. `body` holds amounts as text, and the cap and total after this entry."""

    id: int
    dataset: str
    kind: str  # "open", "raise", "charge" or "release"
    body: dict[str, Any]
    previous: str
    hash: str

    @property
    def epsilon(self) -> Fraction:
        return _amount(self, "epsilon", "0")

    @property
    def delta(self) -> Fraction:
        return _amount(self, "delta", "0")


def _amount(entry: Entry, name: str, absent: str | None = None) -> Fraction:
    """An amount of an entry, spelled as the ledger writes it: others (1e999999999) could take forever to read."""
    text = entry.body.get(name, absent)
    try:
        if not isinstance(text, str) or not _WRITTEN.fullmatch(text):
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise LedgerCorruptError(f"entry {entry.id} of the ledger must state its {name}, got none") from None


@dataclass(frozen=True, slots=True)
class Balance:
    """Cap, spent and what is left of one dataset's (epsilon, delta), exactly."""

    cap_epsilon: Fraction
    cap_delta: Fraction
    spent_epsilon: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)

    @property
    def epsilon(self) -> Fraction:
        """Left to spend."""
        return self.cap_epsilon - self.spent_epsilon

    @property
    def delta(self) -> Fraction:
        """Left to spend."""
        return self.cap_delta - self.spent_delta

    def texts(self) -> dict[str, str]:
        try:
            return {name: str(getattr(self, name)) for name in _TOTALS}
        except ValueError:  # Python writes no longer ones
            raise BudgetError("totals of a ledger must be fractions of at most 4300 digits, got longer ones") from None


def check_chain(entries: Iterable[Entry]) -> tuple[int, str]:
    """Number and hash of the last entry, if every entry follows from those before it."""
    previous, balances, charges, number = GENESIS, dict[str, Balance](), dict[int, str](), 0
    for number, entry in enumerate(entries, start=1):
        if entry.id != number or entry.previous != previous or entry.hash != entry_hash(entry):
            raise LedgerCorruptError(f"entry {number} of the ledger must follow from the one before it, got another")
        _replay(entry, balances, charges)
        previous = entry.hash
    return number, previous


def _replay(entry: Entry, balances: dict[str, Balance], charges: dict[int, str]) -> None:
    """Check that an entry's totals follow from those before it."""
    stated, before = balance_after(entry), balances.get(entry.dataset)
    caps = (stated.cap_epsilon, stated.cap_delta)
    if before is None:
        fits = entry.kind == "open" and (stated.spent_epsilon, stated.spent_delta) == (0, 0)
    elif entry.kind == "raise":
        spent_same = (stated.spent_epsilon, stated.spent_delta) == (before.spent_epsilon, before.spent_delta)
        fits = spent_same and caps[0] >= before.cap_epsilon and caps[1] >= before.cap_delta
    elif entry.kind == "charge":
        spent = before.spent_epsilon + entry.epsilon, before.spent_delta + entry.delta
        fits = stated == Balance(before.cap_epsilon, before.cap_delta, *spent)
        fits = fits and entry.epsilon > 0 and entry.delta >= 0 and stated.epsilon >= 0 and stated.delta >= 0
        charges[entry.id] = entry.dataset
    else:
        charge = entry.body.get("charge")
        known = isinstance(charge, int) and charges.get(charge) == entry.dataset
        fits = entry.kind == "release" and stated == before and known
    if not fits:
        raise LedgerCorruptError(f"totals of entry {entry.id} must follow from the entries before it, got others")
    balances[entry.dataset] = stated


def read_entry(row: tuple[Any, ...]) -> Entry:
    try:
        body = json.loads(row[3])
        if not isinstance(body, dict):
            raise ValueError
        return Entry(row[0], row[1], row[2], body, row[4], row[5])
    except (TypeError, ValueError, RecursionError):
        raise LedgerCorruptError(f"entry {row[0]} of the ledger must be readable, got other bytes") from None


def checked_entry(row: tuple[Any, ...]) -> Entry:
    entry = read_entry(row)
    if entry.hash != entry_hash(entry):
        raise LedgerCorruptError(f"entry {entry.id} of the ledger must match its hash, got an edited entry")
    return entry


def balance_after(entry: Entry) -> Balance:
    return Balance(*(_amount(entry, name) for name in _TOTALS))


def canonical(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def entry_hash(entry: Entry) -> str:
    try:
        fields = [entry.id, entry.dataset, entry.kind, canonical(entry.body), entry.previous]
        return sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest()
    except (TypeError, ValueError):  # bytes in a column, NaN in a body
        raise LedgerCorruptError(f"entry {entry.id} of the ledger must be readable, got other bytes") from None


def parsed_head(text: str) -> tuple[int, str]:
    number, _, digest = text.strip().partition(":") if isinstance(text, str) else ("", "", "")
    if not number.isascii() or not number.isdigit() or len(digest) != 64 or len(number) > 18:
        raise LedgerCorruptError(f"a ledger head must read 'number:hash', got {received(text)}")
    return int(number), digest


def _readable(value: int | str | Decimal | Fraction) -> int | str | Decimal | Fraction:
    """`value`, unless it is spelled so that reading it exactly would take forever (1e999999999)."""
    if isinstance(value, str) and (len(value) > 400 or not value.isascii() or abs(_exponent(value)) > 400):
        raise ValueError
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > 400:
        raise ValueError
    return value


def _exponent(text: str) -> int:
    digits = re.search(r"[eE]([-+]?[0-9_]+)", text)
    return int(digits[1]) if digits else 0


def exact_amount(subject: str, value: Amount, *, zero: bool = False) -> Fraction:
    """An exact fraction, refused unless finite and above 0 (or 0 where that is allowed)."""
    requirement = "finite and at least 0" if zero else "finite and above 0"
    try:
        if isinstance(value, bool):
            raise ValueError
        exact = Fraction(repr(float(value)) if isinstance(value, float) else _readable(value))
        exact = Fraction(int(exact.numerator), int(exact.denominator))  # NumPy's whole numbers wrap around at 64 bits
        _ = float(exact), str(exact)  # one that can be shown and kept
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise BudgetError(f"{subject} must be a number, {requirement}, got {received(value)}") from None
    if exact < 0 or (exact == 0 and not zero):
        raise BudgetError(f"{subject} must be {requirement}, got {value!r}")
    return exact
