"""The schema file: TOML that says how the columns of a private table become the variables of a structure.

    unit = "patient_id"             # optional: the column that tells whose row it is
    max_contributions = 3           # optional, with a unit: rows kept per person

    [variables.age]
    column = "AGE_YEARS"            # where the column has another name
    cut_points = [40.0, 65.0]       # numeric columns: state k holds values from cut k-1 up to, not including, cut k
    states = ["young", "middle", "old", "unknown"]
    catch_all = "unknown"           # the state that takes unknown and missing values

Everything in it is public and written by hand, never derived from the data. A variable that is not mentioned
stays as the structure declares it.
"""

from __future__ import annotations

import re
import tomllib
from datetime import date
from typing import Any

from dpbn.domain import Schema, Variable
from dpbn.errors import FormatError, StructureError, did_you_mean, received
from dpbn.matching import FOR_DATES
from dpbn.network import Structure

_MAY_ADD = (
    "#",
    "# In the section of a variable may also stand:",
    '# column = "AGE"            # where the table calls it so',
    "# cut_points = [40, 65]     # a number's intervals: one state more than cuts, from the smallest to the largest",
    '# catch_all = "unknown"     # the state of missing and undeclared values; with cut points it stands last',
)
_TOP = frozenset({"unit", "max_contributions", "variables"})
_KEYS = frozenset({"column", "cut_points", "states", "catch_all"})
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TO_ESCAPE = re.compile(r'[\\"\x00-\x1f\x7f]')


def write_schema(structure: Structure, unit: str | None = None, max_contributions: int = 1) -> str:
    """A schema file that declares every variable of `structure` as it is, ready to be edited."""
    _check_contributions(unit, max_contributions)
    _check_unit(unit, structure.schema)
    lines = ["# The public schema: how columns of the private table become variables. Write it by hand, not from data."]
    if unit is None:
        lines += ['# unit = "person_id"        # the column that tells whose row it is', "# max_contributions = 1"]
    else:
        lines += [f"unit = {_text(unit)}", f"max_contributions = {max_contributions}"]
    lines += _MAY_ADD
    for variable in structure.schema:
        key = variable.name if _BARE_KEY.fullmatch(variable.name) else _text(variable.name)
        lines += ["", f"[variables.{key}]", f"states = [{', '.join(map(_text, variable.states))}]"]
        if variable.column is not None:
            lines.append(f"column = {_text(variable.column)}")
        if variable.cut_points is not None:
            lines.append(f"cut_points = [{', '.join(map(repr, variable.cut_points))}]")
        if variable.catch_all is not None:
            lines.append(f"catch_all = {_text(variable.catch_all)}")
    return "\n".join(lines) + "\n"


def read_schema(text: str, structure: Structure) -> tuple[Structure, str | None, int]:
    """`structure` with the declarations of a schema file, the unit column and the rows kept per unit."""
    document = _decode(text)
    if misplaced := next((key for key in document if key not in _TOP and key in structure.schema.names), None):
        raise FormatError(f"the section of a variable must be [variables.{misplaced}], got [{misplaced}]")
    _check_keys(document, _TOP, "a schema file")
    unit, max_contributions = document.get("unit"), document.get("max_contributions", 1)
    if unit is not None and (not isinstance(unit, str) or not unit):
        raise FormatError(f"unit must be the name of a column, got {received(unit)}")
    _check_contributions(unit, max_contributions)
    tables = document.get("variables", {})
    if not isinstance(tables, dict):
        raise FormatError("variables must be tables [variables.name], got another kind of value")
    variables = {variable.name: variable for variable in structure.schema}
    for name, table in tables.items():
        if name not in variables:
            raise FormatError(
                f"[variables] must name variables of the structure, got {name!r}{did_you_mean(name, variables)}"
            )
        variables[name] = _declared(variables[name], table)
    schema = Schema(tuple(variables.values()))
    _check_unit(unit, schema)
    return Structure(schema, structure.dag), unit, max_contributions


def _declared(variable: Variable, table: Any) -> Variable:
    subject = f"[variables.{variable.name}]"
    if not isinstance(table, dict):
        raise FormatError(f"{subject} must be a table, got another kind of value")
    _check_keys(table, _KEYS, subject)
    for key in ("column", "catch_all"):
        if key in table and not isinstance(table[key], str):
            raise FormatError(f"{key} of {subject} must be a string, got {table[key]!r}")
    states = table.get("states", list(variable.states))
    if not isinstance(states, list) or not all(isinstance(state, str) for state in states):
        raise FormatError(f"states of {subject} must be a list of strings, got {states!r}")
    cuts = table.get("cut_points", variable.cut_points)
    if "cut_points" in table and (
        not isinstance(cuts, list) or any(type(cut) not in (int, float) or abs(cut) > 1e300 for cut in cuts)
    ):
        hint = f": {FOR_DATES}" if isinstance(cuts, list) and any(map(_is_date, cuts)) else ""
        raise FormatError(f"cut_points of {subject} must be a list of numbers, got {cuts!r}{hint}")
    try:
        return Variable(
            variable.name,
            tuple(states),
            cut_points=None if cuts is None else tuple(cuts),
            column=table.get("column", variable.column),
            catch_all=table.get("catch_all", variable.catch_all),
        )
    except StructureError as error:
        raise FormatError(f"{subject}: {error}") from None


def _is_date(value: Any) -> bool:
    return isinstance(value, date) or (isinstance(value, str) and bool(_DATE.match(value)))


def _check_contributions(unit: str | None, max_contributions: Any) -> None:
    if type(max_contributions) is not int or max_contributions < 1:
        raise FormatError(f"max_contributions must be a whole number >= 1, got {received(max_contributions)}")
    if unit is None and max_contributions != 1:
        raise FormatError(f"max_contributions must be 1 without a unit, got {max_contributions}")


def _check_unit(unit: str | None, schema: Schema) -> None:
    if unit in [variable.source_column for variable in schema]:
        raise FormatError(f"unit must be a column that tells whose row it is, got {unit!r}, which holds a variable")


def _check_keys(table: dict[str, Any], known: frozenset[str], subject: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise FormatError(f"{subject} must have no keys but {sorted(known)}, got {unknown[0]!r}{hint}")


def _decode(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise FormatError(f"a schema must be the text of its file, as from read_text(), got {type(text).__name__}")
    if text.endswith(".toml") and "\n" not in text:
        raise FormatError(f"a schema must be the text of its file, as from read_text(), got the name {text!r}")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        if place and place[1]:
            line, column = int(place[1]), int(place[2])
        else:
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        reason = _PLACE.sub("", message)
        hint = ': text needs straight quotes, as in "yes"' if reason == "Invalid value" else ""
        raise FormatError(f"a schema file must be TOML: {reason}{hint}", line=line, column=column) from None
    except RecursionError:
        raise FormatError("a schema file must be TOML, got values nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits, a date that does not exist
        raise FormatError(f"a schema file must be TOML: {error}") from None


def _text(value: str) -> str:
    return '"' + _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", value) + '"'
