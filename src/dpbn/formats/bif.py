"""BIF, the interchange format of the bnlearn repository.

Grammar (spaces and comments // and /* */ anywhere; a label is a bare word or a quoted string; `,` between
items may be left out):

    network [label] { property* }
    variable label { (type discrete [ n ] { label, ... } ; | property)* }
    probability ( child | parent, ... ) { (row | table | default | property)* }
    row = (label, ...) number, ... ;      table number, ... ;      default number, ... ;
    property = property anything but a semicolon ;

`table` lists the child's states slowest and the last parent fastest. Rows stand in any order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Variable
from dpbn.errors import BareStructureError, FormatError, did_you_mean
from dpbn.formats.scanner import LABEL, NUMBERS, SPACE, STRING, Scanner, bare_or_quoted, labels, numbers, unquoted
from dpbn.formats.tables import assembled, checked_rows, from_rows
from dpbn.network import BayesianNetwork, Structure, check_cells

# What is never closed runs to the end of the text: failing at each opening in turn would take quadratic time.
_COMMENT = re.compile(r'"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+(?:"|\\?\Z)|(?<!:)//[^\r\n]*+|/\*(?s:.*?)(?:\*/|\Z)')
_NOT_NEWLINE = re.compile(r"[^\r\n]")

_NETWORK = re.compile(rf"{SPACE}network\b{SPACE}(?:{LABEL})?+{SPACE}\{{")
_PROPERTY = re.compile(rf'{SPACE}property\b(?:[^;"]++|{STRING})*+;')
_VARIABLE = re.compile(rf"{SPACE}variable\b{SPACE}")
_TYPE = re.compile(rf"{SPACE}type\b{SPACE}discrete\b{SPACE}\[{SPACE}([0-9]{{1,9}}+){SPACE}\]{SPACE}\{{{SPACE}")
_PROBABILITY = re.compile(rf"{SPACE}probability\b{SPACE}\({SPACE}")
_LABEL = re.compile(LABEL)
_LABELS = re.compile(rf"(?:{LABEL}(?:{SPACE},?+{SPACE}{LABEL})*+)?+")
_BAR_OR_COMMA = re.compile(rf"{SPACE}[|,]?+{SPACE}")
_ROW = re.compile(
    rf"{SPACE}(?:\({SPACE}({_LABELS.pattern}){SPACE}\)|(table|default)\b)({NUMBERS});"  # 1 labels, 2 keyword, 3 numbers
)
_OPEN, _CLOSE = re.compile(rf"{SPACE}\{{"), re.compile(rf"{SPACE}\}}")
_CLOSE_PARENTHESIS = re.compile(rf"{SPACE}\)")
_CLOSE_STATES = re.compile(rf"{SPACE}\}}{SPACE};?+")
_END = re.compile(rf"{SPACE}\Z")


@dataclass(slots=True)
class _Block:
    """One probability block as it stands in the file, before the variables are all known."""

    child: str
    parents: tuple[str, ...]
    position: int
    rows: list[tuple[str, list[float], int]] = field(default_factory=list)  # labels, numbers, position
    table: tuple[list[float], int] | None = None
    default: tuple[list[float], int] | None = None


def read(text: str) -> BayesianNetwork:
    """The network a BIF text describes."""
    scanner, structure, blocks = _parse(text)
    check_cells(structure)
    if not any(block.rows or block.table or block.default for block in blocks.values()):
        raise BareStructureError(
            "a network must have probabilities, got none: a structure alone, to learn or plan with"
        )
    cpts = {}
    for node in structure.nodes:
        if node not in blocks:
            raise FormatError(f"every variable must have a probability block, got none for {node!r}")
        cpts[node] = _cpt(scanner, structure, blocks[node])
    return BayesianNetwork(structure, cpts)


def read_structure(text: str) -> Structure:
    """The structure a BIF text describes; probability blocks may be empty, and absent for nodes without parents."""
    return _parse(text)[1]


def _parse(text: str) -> tuple[Scanner, Structure, dict[str, _Block]]:
    if "//" in text or "/*" in text:  # blanked, not removed, so that places in errors stay true
        text = _COMMENT.sub(_blank, text)
    scanner = Scanner(text)
    variables: dict[str, Variable] = {}
    blocks: dict[str, _Block] = {}
    scanner.expect(_NETWORK, "'network name {'")
    while scanner.accept(_PROPERTY):
        pass
    scanner.expect(_CLOSE, "'property' or '}'")
    while not scanner.accept(_END):
        if scanner.accept(_PROBABILITY):
            block = _probability(scanner)
            if block.child in blocks:
                scanner.fail(f"{block.child!r} must have one probability block, got a second", block.position)
            blocks[block.child] = block
        elif scanner.accept(_VARIABLE):
            position = scanner.position
            variable = _variable(scanner)
            if variable.name in variables:
                scanner.fail(f"variables must be distinct, got {variable.name!r} twice", position)
            variables[variable.name] = variable
        else:
            scanner.fail_here("'variable name {' or 'probability ('")
    for block in blocks.values():
        unknown = next((name for name in (block.child, *block.parents) if name not in variables), None)
        if unknown is not None:
            hint = did_you_mean(unknown, variables)
            scanner.fail(f"a probability block must name declared variables, got {unknown!r}{hint}", block.position)
    parents = {block.child: block.parents for block in blocks.values()}
    return scanner, assembled(variables, parents), blocks


def _blank(found: re.Match[str]) -> str:
    piece = found[0]
    if piece[0] == '"':
        return piece
    if piece[1] == "*" and (len(piece) < 4 or not piece.endswith("*/")):
        Scanner(found.string).fail("a comment must be closed by '*/', got the end of the file", found.start())
    return _NOT_NEWLINE.sub(" ", piece)


def _variable(scanner: Scanner) -> Variable:
    name = unquoted(scanner.expect(_LABEL, "a variable's name").group())
    scanner.expect(_OPEN, "'{' (a name with spaces stands in double quotes)")
    states: tuple[str, ...] | None = None
    position = scanner.position
    while not scanner.accept(_CLOSE):
        if scanner.accept(_PROPERTY):
            continue
        if states is not None:
            scanner.fail_here("'property' or '}'")
        position = scanner.position
        size = int(scanner.expect(_TYPE, "'type discrete [ n ] {', 'property' or '}'")[1])
        position = scanner.position
        states = labels(scanner.expect(_LABELS, "state labels").group())
        scanner.expect(_CLOSE_STATES, "a state label or '}'")
        if len(states) != size:
            told = f"{len(states)}{': a state with spaces stands in double quotes' * (len(states) > size)}"
            scanner.fail(f"variable {name!r} must have the {size} states it declares, got {told}", position)
    if states is None:
        scanner.fail(f"variable {name!r} must have a 'type', got none", position)
    with scanner.at(position):
        return Variable(name, states)


def _probability(scanner: Scanner) -> _Block:
    position = scanner.position
    child = unquoted(scanner.expect(_LABEL, "a variable's name").group())
    scanner.accept(_BAR_OR_COMMA)
    parents = labels(scanner.expect(_LABELS, "parents").group())
    scanner.expect(_CLOSE_PARENTHESIS, "a parent's name or ')'")
    if len({child, *parents}) != len(parents) + 1:
        scanner.fail(f"{child!r} and its parents must be distinct, got {parents}", position)
    scanner.expect(_OPEN, "'{'")
    block = _Block(child, parents, position)
    while True:  # rows first: they are nearly all there is
        row = scanner.accept(_ROW)
        if row is None:
            if scanner.accept(_CLOSE):
                break
            if not scanner.accept(_PROPERTY):
                _explain_row(scanner)
            continue
        values = numbers(scanner, row[3], row.start(3))
        if row[2] is None:
            block.rows.append((row[1], values, row.start(1)))
        elif row[2] == "table" and block.table is None:
            block.table = values, row.start(2)
        elif row[2] == "default" and block.default is None:
            block.default = values, row.start(2)
        else:
            scanner.fail(f"a probability block must have at most one {row[2]!r}, got a second", row.start(2))
    if block.table and (block.rows or block.default):
        scanner.fail(f"the block of {child!r} must have a table or rows, got both", block.table[1])
    return block


_ROW_START = re.compile(rf"{SPACE}\({SPACE}{_LABELS.pattern}")
_ROW_KEYWORD = re.compile(rf"{SPACE}(?:table|default)\b")
_NUMBERS = re.compile(NUMBERS)


def _explain_row(scanner: Scanner) -> None:
    """A row that does not match: walk it step by step to say where and why."""
    if scanner.accept(_ROW_START):
        scanner.expect(_CLOSE_PARENTHESIS, "a parent's state or ')'")
    elif not scanner.accept(_ROW_KEYWORD):
        scanner.fail_here("'(', 'table', 'default', 'property' or '}'")
    scanner.accept(_NUMBERS)
    scanner.fail_here("a number or ';'")


def _cpt(scanner: Scanner, structure: Structure, block: _Block) -> NDArray[np.float64]:
    node, shape = block.child, structure.shape(block.child)
    if block.table is not None:
        values, position = block.table
        if len(values) != structure.cells(node):
            scanner.fail(f"table of {node!r} must have {structure.cells(node)} numbers, got {len(values)}", position)
        table = np.moveaxis(np.array(values).reshape(shape[-1:] + shape[:-1]), 0, -1)
    else:
        table = _table_from_rows(scanner, structure, block)
    with scanner.at(block.position):
        return checked_rows(structure, node, table)


def _table_from_rows(scanner: Scanner, structure: Structure, block: _Block) -> NDArray[np.float64]:
    node, size = block.child, structure.shape(block.child)[-1]
    codes = [{state: code for code, state in enumerate(structure.states(parent))} for parent in block.parents]
    rows: list[int] = []
    flat: list[float] = []
    for text, values, position in block.rows:
        names = labels(text) if '"' in text else tuple(map(str.strip, text.split(",")))
        if len(names) != len(codes):
            names = labels(text)
            if len(names) != len(codes):
                scanner.fail(f"a row of {node!r} must name {len(codes)} states, got {len(names)}", position)
        row = 0
        try:
            for name, lookup in zip(names, codes, strict=True):
                row = row * len(lookup) + lookup[name]
        except KeyError:
            _explain_label(scanner, structure, block, names, position)
        if len(values) != size:
            scanner.fail(f"a row of {node!r} must have {size} numbers, got {len(values)}", position)
        rows.append(row)
        flat += values
    if block.default and len(block.default[0]) != size:
        scanner.fail(f"default of {node!r} must have {size} numbers, got {len(block.default[0])}", block.default[1])
    with scanner.at(block.position):
        return from_rows(structure, node, rows, flat, block.default[0] if block.default else None)


def _explain_label(
    scanner: Scanner, structure: Structure, block: _Block, names: tuple[str, ...], position: int
) -> None:
    for name, parent in zip(names, block.parents, strict=True):
        if name not in structure.states(parent):
            states = structure.states(parent)
            scanner.fail(f"a row of {block.child!r} must name a state of {parent!r} {states}, got {name!r}", position)


def write(network: BayesianNetwork, note: str = "") -> str:
    """BIF text that reads back to an equal network, after a comment of one line."""
    parts = [f"// {note}\n" if note else "", "network unknown {\n}\n"]
    written = {node: bare_or_quoted(node) for node in network.nodes}
    states = {node: [bare_or_quoted(state) for state in network.states(node)] for node in network.nodes}
    for node in network.nodes:
        declared = f"type discrete [ {len(states[node])} ] {{ {', '.join(states[node])} }};"
        parts.append(f"variable {written[node]} {{\n  {declared}\n}}\n")
    for node in network.nodes:
        parents, cpt = network.parents(node), network.cpt(node)
        given = f" | {', '.join(written[p] for p in parents)}" if parents else ""
        parts.append(f"probability ( {written[node]}{given} ) {{\n")
        if not parents:
            parts.append(f"  table {', '.join(map(repr, cpt.tolist()))};\n")
        else:
            rows = cpt.reshape(-1, cpt.shape[-1]).tolist()
            for index, row in zip(np.ndindex(cpt.shape[:-1]), rows, strict=True):
                names = ", ".join(states[p][code] for p, code in zip(parents, index, strict=True))
                parts.append(f"  ({names}) {', '.join(map(repr, row))};\n")
        parts.append("}\n")
    return "".join(parts)
