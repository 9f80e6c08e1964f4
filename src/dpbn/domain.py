"""Public declarations of attributes: Variable and Schema. Never built from private data."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpbn.errors import StructureError, did_you_mean, received


def _check_text(subject: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise StructureError(f"{subject} must be a non-empty string, got {received(value)}")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:  # half a surrogate pair: no file could hold it
            raise StructureError(f"{subject} must be valid Unicode, got {received(value)}") from None


def repeated(names: Iterable[str]) -> list[str]:
    """The names that stand more than once."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def ordered(values: Any) -> bool:
    """Whether `values` holds several things in an order of its own: no text, and no set, whose order is by chance."""
    return isinstance(values, Iterable) and not isinstance(values, (str, bytes, set, frozenset))


@dataclass(frozen=True, slots=True)
class Variable:
    """A discrete attribute: its name, its states, and how raw values map to them.

    `cut_points` (ascending) turn a numeric column into len(cut_points) + 1 intervals: state k holds
    values in [cut_points[k-1], cut_points[k]). `column` is the name in the private table where it
    differs. `catch_all` is the state that takes unknown and missing values under on_unknown=catch_all.
    """

    name: str
    states: tuple[str, ...]
    cut_points: tuple[float, ...] | None = field(default=None, kw_only=True)
    column: str | None = field(default=None, kw_only=True)
    catch_all: str | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # any sequences will do; they are kept as tuples

        def __init__(
            self,
            name: str,
            states: Sequence[str],
            *,
            cut_points: Sequence[float] | None = None,
            column: str | None = None,
            catch_all: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        _check_text("a variable's name", self.name)
        if not ordered(self.states):
            kind = type(self.states).__name__
            raise StructureError(f"states of {self.name!r} must be a sequence of labels, got {kind}")
        object.__setattr__(self, "states", tuple(self.states))
        if not self.states:
            raise StructureError(f"variable {self.name!r} must have at least one state, got none")
        for state in self.states:
            _check_text(f"a state of {self.name!r}", state)
        if twice := repeated(self.states):
            raise StructureError(f"states of {self.name!r} must be distinct, got {twice} twice")
        if self.column is not None:
            _check_text(f"the column of {self.name!r}", self.column)
        if self.catch_all is not None and self.catch_all not in self.states:
            raise StructureError(
                f"catch_all of {self.name!r} must be one of its states, got {received(self.catch_all)}"
            )
        if self.cut_points is not None:
            self._check_cut_points()

    def _check_cut_points(self) -> None:
        try:
            if isinstance(self.cut_points, str):  # "15" is not 1 and 5
                raise TypeError
            cuts = () if self.cut_points is None else tuple(float(cut) for cut in self.cut_points)
        except (TypeError, ValueError, OverflowError):
            raise StructureError(
                f"cut points of {self.name!r} must be a sequence of numbers, got {received(self.cut_points)}"
            ) from None
        object.__setattr__(self, "cut_points", cuts)
        regular = len(self.states) - (self.catch_all is not None and len(self.states) == len(cuts) + 2)
        if any(not math.isfinite(c) for c in cuts) or any(a >= b for a, b in itertools.pairwise(cuts)):
            raise StructureError(f"cut points of {self.name!r} must be finite and ascending, got {cuts}")
        if regular != len(cuts) + 1:
            raise StructureError(
                f"variable {self.name!r} must have one state more than its {len(cuts)} cut points "
                f"(plus a catch_all state, last), got {len(self.states)}"
            )
        if regular < len(self.states) and self.states[-1] != self.catch_all:
            raise StructureError(
                f"catch_all of {self.name!r} must be its last state when it has cut points, got {self.catch_all!r}"
            )

    @property
    def size(self) -> int:
        return len(self.states)

    @property
    def source_column(self) -> str:
        """The column of the private table that holds this variable."""
        return self.column or self.name

    @property
    def ranges(self) -> dict[str, str]:
        """What each state stands for in numbers, in words; empty without cut points."""
        if self.cut_points is None:
            return {}
        cuts = [f"{cut:.15g}" for cut in self.cut_points]
        between = [f"{low} to below {high}" for low, high in itertools.pairwise(cuts)]
        words = [f"below {cuts[0]}", *between, f"{cuts[-1]} or more"] if cuts else ["any number"]
        return dict(zip(self.states, words, strict=False))  # a catch-all state may come last

    @property
    def meanings(self) -> dict[str, str]:
        """What states stand for beside their labels, in words: ranges of numbers, the catch-all."""
        words = self.ranges
        if self.catch_all is not None:
            words[self.catch_all] = ", ".join(filter(None, (words.get(self.catch_all), "catch-all")))
        return words

    @property
    def declared(self) -> str:
        """The values that are no unknown ones, in words, for messages."""
        more = f" and {self.size - 8} more" if self.size > 8 else ""
        return f"{'' if self.cut_points is None else 'a number or '}one of {list(self.states[:8])}{more}"

    def index(self, state: str) -> int:
        try:
            return self.states.index(state)
        except ValueError:
            hint = did_you_mean(state, self.states)
            raise StructureError(f"state of {self.name!r} must be one of {self.states}, got {state!r}{hint}") from None


def likely_variable(name: object, variables: Iterable[Variable]) -> str:
    """For a message: the variables whose column `name` is, else one whose name is like it, else nothing."""
    variables = tuple(variables)
    reading = [variable.name for variable in variables if variable.column is not None and variable.column == name]
    if reading:
        return f", the column of {' and '.join(map(repr, reading))}"
    return did_you_mean(name, [variable.name for variable in variables])


@dataclass(frozen=True, slots=True)
class Schema:
    """An ordered set of variables with distinct names; `schema["HR"]` is the variable HR."""

    variables: tuple[Variable, ...]
    _positions: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)
    _sizes: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        if not ordered(self.variables):
            raise StructureError(f"a schema must be given a sequence of Variables, got {type(self.variables).__name__}")
        variables = tuple(self.variables)
        for variable in variables:
            if not isinstance(variable, Variable):
                raise StructureError(f"a schema must hold Variables, got {type(variable).__name__}")
        positions = {variable.name: i for i, variable in enumerate(variables)}
        if twice := repeated(variable.name for variable in variables):
            raise StructureError(f"variable names must be distinct, got {twice} twice")
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "_positions", positions)
        object.__setattr__(self, "_sizes", {variable.name: variable.size for variable in variables})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._positions)

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.position(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def position(self, name: str) -> int:
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            hint = likely_variable(name, self.variables)
            raise StructureError(
                f"a variable must be one of the schema's {len(self)}, got {received(name)}{hint}"
            ) from None

    def shape(self, names: Iterable[str]) -> tuple[int, ...]:
        """Domain sizes of `names`, in that order."""
        names = tuple(names)
        try:
            return tuple([self._sizes[name] for name in names])
        except (KeyError, TypeError):
            return tuple(self[name].size for name in names)  # tells which is unknown

    def cells(self, names: Iterable[str]) -> int:
        """Number of cells of the table over `names` (exact Python integer, never overflows)."""
        return math.prod(self.shape(names))
