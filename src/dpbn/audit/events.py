"""Outcomes of a release as numbers, and the events an auditor may bet on.

An outcome may be a number, an array, a mapping of names to arrays, or anything else that can be printed. What is
not a number (shape, labels, an error) becomes the outcome's signature and counts as output like the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
Numbers = NDArray[np.float64]
_THRESHOLDS = 24
_FRACTION_BITS = (0, 30, 50, 52, 53, 54, 60)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Many outcomes: a signature each, and numbers in rows for those that share the most common shape."""

    signatures: tuple[str, ...]  # one text per distinct signature
    kinds: NDArray[np.int64]  # index into signatures, per outcome
    numbers: NDArray[np.float64]  # outcomes x coordinates; NaN where the signature has fewer


@dataclass(frozen=True)
class Event:
    """A set of outcomes, by name and membership test."""

    name: str
    holds: Callable[[Outcomes], Bits]


def collect(outcomes: Sequence[Any] | NDArray[Any]) -> Outcomes:
    """Turn raw outcomes into numbers and signatures."""
    if isinstance(outcomes, np.ndarray) and outcomes.dtype.kind in "iuf":
        numbers = outcomes.reshape(len(outcomes), -1).astype(np.float64)
        return Outcomes((f"{outcomes.dtype.kind}{outcomes.shape[1:]}",), np.zeros(len(outcomes), np.int64), numbers)
    flat = [_flatten(outcome) for outcome in outcomes]
    texts: dict[str, int] = {}
    kinds = np.array([texts.setdefault(signature, len(texts)) for signature, _ in flat], dtype=np.int64)
    width = max((len(values) for _, values in flat), default=0)
    numbers = np.full((len(flat), width), np.nan)
    for row, (_, values) in zip(numbers, flat, strict=True):
        row[: len(values)] = values
    return Outcomes(tuple(texts), kinds, numbers)


def _flatten(outcome: Any) -> tuple[str, list[float]]:
    if isinstance(outcome, Mapping):
        parts = [(str(key), *_flatten(value)) for key, value in outcome.items()]
        return "{" + ", ".join(f"{key}: {kind}" for key, kind, _ in parts) + "}", [x for part in parts for x in part[2]]
    if isinstance(outcome, (bool, str, bytes)) or outcome is None:
        return repr(outcome), []
    if isinstance(outcome, (list, tuple)):
        pieces = [_flatten(value) for value in outcome]
        return "[" + ", ".join(kind for kind, _ in pieces) + "]", [x for _, values in pieces for x in values]
    array = np.asarray(outcome)
    if array.dtype.kind in "iufb":
        return f"{array.dtype.kind}{array.shape}", [float(x) for x in array.ravel()]
    return repr(outcome), []


def halves(outcomes: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Two sets of outcomes: one to think of events, one to choose among them."""
    middle = outcomes.kinds.size // 2
    return tuple(  # type: ignore[return-value]
        Outcomes(outcomes.signatures, outcomes.kinds[part], outcomes.numbers[part])
        for part in (slice(None, middle), slice(middle, None))
    )


def candidates(first: Outcomes, second: Outcomes) -> list[Event]:
    """Events suggested by a pilot: signatures, thresholds, single values, repeats, low-order bits."""
    events = [_has_signature(text) for text in dict.fromkeys((*first.signatures[:20], *second.signatures[:20]))]
    width = min(first.numbers.shape[1], second.numbers.shape[1])
    for column in range(width):
        values = np.concatenate([first.numbers[:, column], second.numbers[:, column]])
        values = values[np.isfinite(values)]
        if values.size:
            events += _on_values(f"x{column}", lambda o, c=column: o.numbers[:, c], values)  # type: ignore[misc]
    if width > 1:
        total = np.concatenate([np.nansum(first.numbers, axis=1), np.nansum(second.numbers, axis=1)])
        events += _on_values("sum", lambda o: np.nansum(o.numbers, axis=1), total)
    for name, score in _scores(first.numbers[:, :width], second.numbers[:, :width]):
        pilot = np.concatenate([score(first.numbers), score(second.numbers)])
        events += _on_values(name, lambda o, s=score: s(o.numbers), pilot)  # type: ignore[misc]
    for rows in (first.numbers, second.numbers):
        if width:
            events += [_equals_row(row) for row in _most_common(map(tuple, rows[:2000]), 2)]
    return events


def _scores(first: Numbers, second: Numbers) -> Iterable[tuple[str, Callable[[Numbers], Numbers]]]:
    """Sums over the coordinates that differ: what composition leaks in all.

    Of their log odds as the pilot has them, over all or over whole numbers only (the noisy counts, from which the
    rest follows), and of their values weighted by shift over variance, which sees small shifts of many.
    """
    odds: dict[int, tuple[Numbers, Numbers]] = {}
    tilt: dict[int, float] = {}
    whole = set()
    for column in range(first.shape[1]):
        one, two = (side[np.isfinite(side)] for side in (first[:, column], second[:, column]))
        if one.size < 20 or two.size < 20:
            continue
        values = np.concatenate([one, two])
        edges = np.unique(
            np.quantile(values, np.linspace(0, 1, min(_THRESHOLDS, 3 + one.size // 200)), method="nearest")
        )
        p, q = (np.bincount(np.digitize(side, edges), minlength=edges.size + 1) + 1.0 for side in (one, two))
        if float(np.square(np.sqrt(p) - np.sqrt(q)).sum()) > edges.size + 1:  # half of that is expected of equal laws
            odds[column] = edges, np.log(p / p.sum()) - np.log(q / q.sum())
        shift, variance = float(one.mean() - two.mean()), float(one.var() + two.var())
        if abs(shift) > 3 * math.sqrt(variance / min(one.size, two.size)):
            tilt[column] = shift / variance if variance else math.copysign(1e9, shift)
        if (values == np.rint(values)).all():
            whole.add(column)
    counts = {column: entry for column, entry in odds.items() if column in whole}
    if len(odds) > 1:
        yield "odds", lambda numbers: _summed(numbers, odds)
    if len(counts) > 1 and len(counts) < len(odds):
        yield "odds-of-counts", lambda numbers: _summed(numbers, counts)
    if columns := [column for column in tilt if column in whole]:
        yield "shift", lambda numbers: numbers[:, columns] @ np.array([tilt[column] for column in columns])


def _summed(numbers: Numbers, odds: Mapping[int, tuple[Numbers, Numbers]]) -> Numbers:
    return np.sum([table[np.digitize(numbers[:, c], edges)] for c, (edges, table) in odds.items()], axis=0)


def conjunctions(events: Sequence[Event]) -> list[Event]:
    """The first event together with the next, and with the next two, and so on."""
    result = []
    for length in range(2, len(events) + 1):
        parts = tuple(events[:length])
        name = " and ".join(event.name for event in parts)
        result.append(Event(name, lambda o, p=parts: np.logical_and.reduce([e.holds(o) for e in p])))  # type: ignore[misc]
    return result


def _has_signature(text: str) -> Event:
    def holds(outcomes: Outcomes) -> Bits:
        if text not in outcomes.signatures:
            return np.zeros(outcomes.kinds.size, dtype=np.bool_)
        return outcomes.kinds == outcomes.signatures.index(text)

    return Event(f"output is {text[:60]}", holds)


def _on_values(
    name: str, value: Callable[[Outcomes], NDArray[np.float64]], pilot: NDArray[np.float64]
) -> Iterable[Event]:
    for cut in np.unique(np.quantile(pilot, np.linspace(0.002, 0.998, _THRESHOLDS), method="nearest")):
        yield Event(f"{name} >= {cut:.6g}", lambda o, t=cut: value(o) >= t)  # type: ignore[misc]
        yield Event(f"{name} <= {cut:.6g}", lambda o, t=cut: value(o) <= t)  # type: ignore[misc]
    for single in _most_common(pilot.tolist(), 4):
        yield Event(f"{name} == {single:.6g}", lambda o, t=single: value(o) == t)  # type: ignore[misc]
        yield Event(f"{name} != {single:.6g}", lambda o, t=single: value(o) != t)  # type: ignore[misc]
    if (pilot != np.rint(pilot)).any():
        for bits in _FRACTION_BITS:
            yield Event(f"{name} needs over {bits} binary places", lambda o, b=bits: _finer(value(o), b))  # type: ignore[misc]
            yield Event(f"{name} fits {bits} binary places", lambda o, b=bits: ~_finer(value(o), b))  # type: ignore[misc]


def _finer(values: NDArray[np.float64], bits: int) -> Bits:
    """Whether a float is not a multiple of 2^-bits: what rounding of `count + float noise` gives away."""
    scaled = np.ldexp(values, bits)
    return np.isfinite(scaled) & (scaled != np.rint(scaled))


def _equals_row(row: tuple[float, ...]) -> Event:
    return Event(
        f"whole output equals one seen {tuple(round(float(x), 3) for x in row[:4])}...",
        lambda o: (
            (o.numbers == np.array(row)).all(axis=1)
            if o.numbers.shape[1] == len(row)
            else np.zeros(o.kinds.size, dtype=np.bool_)
        ),
    )


def _most_common(values: Iterable[Any], count: int) -> list[Any]:
    return [value for value, _ in Counter(values).most_common(count)]
