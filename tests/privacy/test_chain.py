"""Entries of the ledger: what does not follow from the entries before it is refused, whoever made its hash."""

import math
from dataclasses import replace

import pytest

from dpbn.errors import LedgerCorruptError
from dpbn.privacy.chain import GENESIS, Entry, check_chain, entry_hash, read_entry


def linked(*entries):
    """A chain with the right numbers and hashes, of (dataset, kind, cap, spent, what else is said)."""
    made, previous = [], GENESIS
    for number, (dataset, kind, cap, spent, said) in enumerate(entries, start=1):
        totals = dict(zip(("cap_epsilon", "cap_delta", "spent_epsilon", "spent_delta"), (*cap, *spent), strict=True))
        made.append(rehashed(Entry(number, dataset, kind, said | totals, previous, "")))
        previous = made[-1].hash
    return made


def rehashed(entry, **changes):
    entry = replace(entry, **changes)
    return replace(entry, hash=entry_hash(entry))


CAP, NONE, HALF = ("1", "1/9"), ("0", "0"), ("1/2", "1/90")
SPEND = {"epsilon": "1/2", "delta": "1/90"}
OPEN, CHARGE = ("a", "open", CAP, NONE, {}), ("a", "charge", CAP, HALF, SPEND)
FORGED = {
    "charged before it was opened": [("a", "charge", CAP, HALF, SPEND)],
    "opened as spent": [("a", "open", CAP, ("-1", "0"), {})],
    "opened twice": [OPEN, OPEN],
    "raised to less": [OPEN, ("a", "raise", ("1/2", "1/9"), NONE, {})],
    "raised to less delta": [OPEN, ("a", "raise", ("1", "1/10"), NONE, {})],
    "forgotten by a raise": [OPEN, CHARGE, ("a", "raise", ("2", "1/9"), NONE, {})],
    "forgotten by a charge": [OPEN, CHARGE, CHARGE],
    "raised by a charge": [OPEN, ("a", "charge", ("2", "1/9"), HALF, SPEND)],
    "given back": [OPEN, CHARGE, ("a", "charge", CAP, ("0", "1/90"), {"epsilon": "-1/2"})],
    "delta given back": [OPEN, CHARGE, ("a", "charge", CAP, ("1", "0"), {"epsilon": "1/2", "delta": "-1/90"})],
    "beyond the cap": [OPEN, ("a", "charge", CAP, ("2", "0"), {"epsilon": "2"})],
    "beyond the cap of delta": [OPEN, ("a", "charge", CAP, ("1", "1/8"), {"epsilon": "1", "delta": "1/8"})],
    "a release of nothing": [OPEN, CHARGE, ("a", "release", CAP, HALF, {"charge": 1})],
    "a release of another's charge": [OPEN, CHARGE, ("b", *OPEN[1:]), ("b", "release", CAP, NONE, {"charge": 2})],
    "forgotten by a release": [OPEN, CHARGE, ("a", "release", CAP, NONE, {"charge": 2})],
    "of no known kind": [OPEN, ("a", "gift", CAP, NONE, {})],
}


def test_a_chain_that_follows_is_accepted():
    release = ("a", "release", CAP, HALF, {"charge": 2})
    assert check_chain(linked(OPEN, CHARGE, release, ("a", "raise", ("2", "1/9"), HALF, {})))[0] == 4


@pytest.mark.parametrize("name", FORGED)
def test_entries_that_do_not_follow_are_refused_though_their_hashes_fit(name):
    with pytest.raises(LedgerCorruptError, match="totals"):
        check_chain(linked(*FORGED[name]))


@pytest.mark.parametrize("said", ["abc", "1/0", "nan", "", "1e999999", "0.5", 0.5, 1, True, None, [1]])
@pytest.mark.parametrize("field", ["epsilon", "delta", "cap_epsilon", "spent_delta"])
def test_amounts_that_the_ledger_does_not_write_are_refused_at_once(field, said):
    opened, charge = linked(OPEN, CHARGE)
    with pytest.raises(LedgerCorruptError, match=f"must state its {field}"):
        check_chain([opened, rehashed(charge, body=charge.body | {field: said})])


@pytest.mark.parametrize("charge", [[2], {}, None, "2", 2.0, True])
def test_a_release_names_its_charge_by_number(charge):
    with pytest.raises(LedgerCorruptError, match="totals of entry 3"):
        check_chain(linked(OPEN, CHARGE, ("a", "release", CAP, HALF, {"charge": charge})))


def test_rows_that_cannot_be_hashed_or_read_are_refused():
    (opened,) = linked(OPEN)
    for edited in (replace(opened, dataset=b"a"), replace(opened, body=opened.body | {"note": math.nan})):
        with pytest.raises(LedgerCorruptError, match="must be readable"):
            check_chain([edited])
    with pytest.raises(LedgerCorruptError, match="must be readable"):
        read_entry((1, "a", "open", '{"note":' + "[" * 100_000, GENESIS, opened.hash))


def test_every_field_is_in_the_chain():
    first, second = linked(OPEN, CHARGE)
    for edited in (
        [first, replace(second, body=second.body | {"protects": "nobody"})],
        [replace(first, dataset="b"), second],
        [rehashed(first, body=first.body | {"who": "me"}), second],
        [first, rehashed(second, id=3)],
    ):
        with pytest.raises(LedgerCorruptError, match="follow from the one before"):
            check_chain(edited)
