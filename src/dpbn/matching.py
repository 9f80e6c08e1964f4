"""How raw values become states: one public rule per variable, the same in every engine.

A variable with labels only:
- text matches the label it equals;
- a number matches the label written as an equal decimal number (1 and 1.0 match "1", "1.0" or "01");
- a boolean matches the label "true" or "false" in any case.
A variable with cut points: a number falls into its interval; text and booleans match labels as above.
Anything else is unknown: NaN, missing values, a single number that two labels equal (a column of numbers with such
labels is refused). What happens then is the policy's business.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema, Variable
from dpbn.errors import InputError, StructureError, did_you_mean, received

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+")

_LONGEST_NUMBER = 1000  # Python refuses to read integers of several thousand digits; longer text is text

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run it: in CSV files after an apostrophe
PLAIN = frozenset({str, int, float, bool, np.str_, np.int64, np.float64, np.bool_})  # equal values mean the same
FOR_DATES = "of dates make numbers or states first"
POLICIES = ("error", "drop", "catch_all")


@dataclass(frozen=True)
class Matching:
    """The rule for one variable, and the state that takes its unknown values (None: they stay unknown)."""

    variable: Variable
    catch_all: int | None

    @property
    def column(self) -> str:
        return self.variable.source_column

    @cached_property
    def cuts(self) -> NDArray[np.float64] | None:
        return None if self.variable.cut_points is None else np.array(self.variable.cut_points, dtype=np.float64)

    @cached_property
    def texts(self) -> Mapping[str, int]:
        return {state: code for code, state in enumerate(self.variable.states)}

    @cached_property
    def _by_number(self) -> Mapping[int | float, list[int]]:
        """Labels that are decimal numbers; whole ones are kept as exact integers."""
        found: dict[int | float, list[int]] = {}
        for code, state in enumerate(self.variable.states):
            if len(state) >= _LONGEST_NUMBER or not _DECIMAL.fullmatch(state):
                continue
            number = int(state) if _WHOLE.fullmatch(state) else float(state)
            if isinstance(number, float) and number.is_integer():
                number = int(number)
            found.setdefault(number, []).append(code)
        return found

    @cached_property
    def numbers(self) -> Mapping[int | float, int]:
        """The label of every number, for a column of numbers."""
        for same in self._by_number.values():
            if len(same) > 1:
                first, second, *_ = (self.variable.states[code] for code in same)
                raise StructureError(
                    f"labels of {self.variable.name!r} must be different numbers to match a column of numbers, "
                    f"got {first!r} and {second!r}"
                )
        return {number: code for number, (code,) in self._by_number.items()}

    @cached_property
    def floats(self) -> Mapping[float, int]:
        """The labels that a floating-point number can equal: no float is 9007199254740993."""
        near = ((number, _as_float(number), code) for number, code in self.numbers.items())
        return {rounded: code for number, rounded, code in near if rounded == number}

    @cached_property
    def booleans(self) -> Mapping[bool, int]:
        found: dict[bool, int] = {}
        for code, state in enumerate(self.variable.states):
            if state.lower() in ("true", "false"):
                found.setdefault(state.lower() == "true", code)
        return found

    def code(self, value: Any) -> int | None:
        """The code of one Python value, None if unknown. The array forms elsewhere agree with this one."""
        if isinstance(value, (bool, np.bool_)):
            return self.booleans.get(bool(value))
        if isinstance(value, str):
            return self.texts.get(value)
        if isinstance(value, (np.timedelta64, np.datetime64, np.complexfloating, np.ndarray)):  # to NumPy, floats
            return None
        try:
            number = int(value) if isinstance(value, (int, np.integer)) else _as_float(value)
        except (TypeError, ValueError):
            return None
        if isinstance(number, float) and math.isnan(number):
            return None
        if self.cuts is not None:
            return int(np.searchsorted(self.cuts, _as_float(number), side="right"))
        same = self._by_number.get(number, ())
        return same[0] if len(same) == 1 else None  # of two labels that are one number it is neither

    def meant(self, value: Any) -> int | None:
        """The code of a value that somebody asks about: text that is no label is taken for what it spells."""
        code = self.code(value)
        return self.written(value) if code is None and isinstance(value, str) else code

    def written(self, field: str) -> int | None:
        """The code of a field of a text file, which has no types: as text first, then as what it is written like."""
        plain = field.strip()
        numeric = len(plain) < _LONGEST_NUMBER and (_DECIMAL.fullmatch(plain) or _INFINITE.fullmatch(plain))
        number = float(plain) if numeric else None
        if number is not None and self.cuts is not None:
            return self.code(number)
        for label in (field, unguarded(field)):
            if label in self.texts:
                return self.texts[label]
        if number is not None:
            return self.code(int(plain) if _WHOLE.fullmatch(plain) else number)
        if field.lower() in ("true", "false"):
            return self.code(field.lower() == "true")
        return None


def is_number(text: str) -> bool:
    """Whether Python reads `text` as a number (which takes in "1_000", "inf" and "nan": `Matching` is stricter)."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def unguarded(text: str) -> str:
    """A label or column name of a CSV file, without the apostrophe that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text


def headers_by_name(headers: Iterable[str]) -> dict[str, str]:
    """Names that columns of a CSV file are found by -> their headers: as they stand, or else without apostrophe."""
    present = {name: name for name in headers}
    return present | {plain: name for name in present if (plain := unguarded(name)) not in present}


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number or fraction beyond every float
        return math.inf if value > 0 else -math.inf


def matchings(schema: Schema, on_unknown: str) -> tuple[Matching, ...]:
    """One rule per variable of `schema`, in its order."""
    if not isinstance(on_unknown, str) or not on_unknown:
        raise InputError(
            f"on_unknown must be 'error', 'drop', 'catch_all' or a declared catch-all state, got {received(on_unknown)}"
        )
    declared = sorted({variable.catch_all for variable in schema if variable.catch_all is not None})
    if on_unknown == "catch_all" and not declared:
        raise InputError("on_unknown='catch_all' must have a variable that declares a catch_all state, got none")
    if on_unknown not in POLICIES and on_unknown not in declared:
        states = f"one of {declared}" if declared else "none is declared"
        hint = did_you_mean(on_unknown, ("error", "drop", "catch_all", *declared))
        raise InputError(
            f"on_unknown must be 'error', 'drop', 'catch_all' or a declared catch-all state ({states}), "
            f"got {received(on_unknown)}{hint}"
        )
    return tuple(Matching(variable, _catch_all(variable, on_unknown)) for variable in schema)


def _catch_all(variable: Variable, on_unknown: str) -> int | None:
    if variable.catch_all is None or on_unknown in ("error", "drop"):
        return None
    return variable.index(variable.catch_all) if on_unknown in ("catch_all", variable.catch_all) else None
