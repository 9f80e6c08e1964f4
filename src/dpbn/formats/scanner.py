"""Walks a text with compiled patterns and says where it stopped: the base of the BIF, NET and model-string grammars.

Patterns use possessive quantifiers only, so no input makes them backtrack: reading is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from dpbn.errors import FormatError, StructureError

SPACE = r"\s*+"
STRING = r'"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+"'
WORD = r'[^\s"{}()\[\],;|]++'
LABEL = rf"(?:{WORD}|{STRING})"
NUMBERS = r"[-+0-9.eE,\s]*+"

_SPACE = re.compile(SPACE)
_LABEL = re.compile(LABEL)
_ESCAPED = re.compile(r'\\(["\\])')
_BARE = re.compile(r"[A-Za-z0-9_]+")
_ITEM = re.compile(r"[^\s,]+")
EXCERPT = 24


class Scanner:
    """A text with a reading position; every failure is a FormatError with line and column."""

    __slots__ = ("position", "text")

    def __init__(self, text: str):
        self.text = text
        self.position = 1 if text.startswith("\ufeff") else 0

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of `pattern` here, moving past it; None and no move otherwise."""
        match = pattern.match(self.text, self.position)
        if match:
            self.position = match.end()
        return match

    def expect(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        return self.accept(pattern) or self.fail_here(wanted)

    def fail_here(self, wanted: str) -> NoReturn:
        """Stop at the next character that is not a space, saying what was wanted and what stands there."""
        self.accept(_SPACE)
        rest = self.text[self.position : self.position + EXCERPT].partition("\n")[0].partition("\r")[0].rstrip()
        self.fail(f"expected {wanted}, got {rest!r}" if rest else f"expected {wanted}, got the end of the file")

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        """Stop at `position` (by default here), with its line and column."""
        place = self.position if position is None else position
        end = "\n" if "\n" in self.text else "\r"
        line = self.text.count(end, 0, place) + 1
        raise FormatError(message, line=line, column=place - self.text.rfind(end, 0, place)) from None

    @contextmanager
    def at(self, position: int) -> Iterator[None]:
        """Complaints that have no place of their own are about what stands at `position`."""
        try:
            yield
        except FormatError as error:
            self.fail(error.reason, position)
        except StructureError as error:
            self.fail(str(error), position)


def labels(text: str) -> tuple[str, ...]:
    """The labels in a piece of text that the LABEL pattern has already accepted, unquoted."""
    return tuple(unquoted(token) for token in _LABEL.findall(text))


def unquoted(token: str) -> str:
    """The label a token stands for; in quotes, backslash protects a quote or a backslash."""
    if token[0] != '"':
        return token
    inner = token[1:-1]
    return _ESCAPED.sub(r"\1", inner) if "\\" in inner else inner


def quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def bare_or_quoted(label: str) -> str:
    """The label as it is where every program reads it back the same, otherwise in quotes."""
    return label if _BARE.fullmatch(label) else quoted(label)


def numbers(scanner: Scanner, text: str, start: int) -> list[float]:
    """The numbers in `text`, separated by commas or else by spaces; `start` is its place, for errors."""
    try:
        return list(map(float, text.split(",") if "," in text else text.split()))
    except ValueError:
        pass
    for item in _ITEM.finditer(text):
        try:
            float(item.group())
        except ValueError:
            scanner.fail(f"expected a number, got {item.group()[:EXCERPT]!r}", start + item.start())
    scanner.fail("numbers must be separated by single commas, or by spaces only", start)
