"""Hugin NET, for discrete chance nodes.

    net { field* }
    [discrete] node id { states = ( label ... ) ; field* }
    potential ( id | id ... ) { data = nested ( number ... ) ; field* }
    field = name = anything but a semicolon ;      % begins a comment

`data` runs over the parents in order, the child's states fastest; its parentheses follow those axes, or are
one pair around all numbers. An id is a C identifier: a node whose name is not one is written under an id of its
own, with its name in the field `dpbn_name`, which programs that do not know it pass over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpbn.domain import Variable
from dpbn.errors import FormatError, did_you_mean
from dpbn.formats.scanner import LABEL, SPACE, STRING, Scanner, labels, quoted, unquoted
from dpbn.formats.tables import assembled, from_table, numbers_of
from dpbn.network import BayesianNetwork, Structure, check_cells

NAME_FIELD = "dpbn_name"

_COMMENT = re.compile(r'"[^"\\]*+(?:\\(?s:.)[^"\\]*+)*+(?:"|\\?\Z)|%[^\r\n]*+')
_ID_TEXT = r'[^\s"{}()\[\],;|=%]++'
_NET = re.compile(rf"{SPACE}net\b{SPACE}\{{")
_NODE = re.compile(rf"{SPACE}(?:discrete\b{SPACE})?+node\b{SPACE}")
_POTENTIAL = re.compile(rf"{SPACE}potential\b{SPACE}\({SPACE}")
_ID = re.compile(_ID_TEXT)
_IDS = re.compile(rf"{SPACE}\|?+{SPACE}((?:{_ID_TEXT}{SPACE})*+)\)")
_FIELD = re.compile(rf'{SPACE}({_ID_TEXT}){SPACE}={SPACE}((?:[^;"]++|{STRING})*+);')
_OPEN, _CLOSE = re.compile(rf"{SPACE}\{{"), re.compile(rf"{SPACE}\}}")
_END = re.compile(rf"{SPACE}\Z")
_STATES = re.compile(rf"\({SPACE}((?:{LABEL}{SPACE})*+)\){SPACE}")
_ONE_STRING = re.compile(rf"({STRING}){SPACE}")
_DATA = re.compile(r"[-+0-9.eE()\s]*+")
_NOT_PARENTHESIS = re.compile(r"[^()]+")
_ROW = re.compile(r"\(([^()]*+)\)")
_PARENTHESES_TO_SPACES = str.maketrans("()", "  ")
_SAFE_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KEYWORDS = frozenset(
    {"net", "node", "class", "discrete", "continuous", "decision", "utility", "function", "potential"}
)


@dataclass(slots=True)
class _Block:
    child: str
    parents: tuple[str, ...]
    position: int
    data: str | None = None
    data_position: int = 0


def read(text: str) -> BayesianNetwork:
    """The network a NET text describes."""
    scanner, structure, blocks = _parse(text)
    check_cells(structure)
    cpts = {}
    for node in structure.nodes:
        block = blocks.get(node)
        if block is None or block.data is None:
            raise FormatError(f"every node must have a potential with 'data', got none for {node!r}")
        values = _numbers(scanner, block)
        with scanner.at(block.position):
            cpts[node] = from_table(structure, node, values)
        _check_parentheses(scanner, structure, block)
    return BayesianNetwork(structure, cpts)


def read_structure(text: str) -> Structure:
    """The structure a NET text describes; potentials may have no data."""
    return _parse(text)[1]


def _parse(text: str) -> tuple[Scanner, Structure, dict[str, _Block]]:
    if "%" in text:  # blanked, not removed, so that places in errors stay true
        text = _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else " " * len(found[0]), text)
    scanner = Scanner(text)
    names: dict[str, str] = {}
    variables: dict[str, Variable] = {}
    found: list[_Block] = []
    scanner.expect(_NET, "'net {' (classes of object-oriented networks are not supported)")
    while not scanner.accept(_CLOSE):
        scanner.expect(_FIELD, "'name = value;' or '}'")
    while not scanner.accept(_END):
        if scanner.accept(_POTENTIAL):
            found.append(_potential(scanner))
        elif scanner.accept(_NODE):
            position = scanner.position
            identifier, variable = _node(scanner)
            if identifier in names or variable.name in variables:
                scanner.fail(f"nodes must be distinct, got {identifier!r} twice", position)
            names[identifier] = variable.name
            variables[variable.name] = variable
        else:
            scanner.fail_here("'node' or 'potential (' (only discrete chance nodes are supported)")
    blocks: dict[str, _Block] = {}
    for block in found:
        unknown = next((name for name in (block.child, *block.parents) if name not in names), None)
        if unknown is not None:
            hint = did_you_mean(unknown, names)
            scanner.fail(f"a potential must name declared nodes, got {unknown!r}{hint}", block.position)
        block.child, block.parents = names[block.child], tuple(names[parent] for parent in block.parents)
        if block.child in blocks:
            scanner.fail(f"{block.child!r} must have one potential, got a second", block.position)
        if len({block.child, *block.parents}) != len(block.parents) + 1:
            scanner.fail(f"{block.child!r} and its parents must be distinct, got {block.parents}", block.position)
        blocks[block.child] = block
    parents = {block.child: block.parents for block in found}
    return scanner, assembled(variables, parents), blocks


def _node(scanner: Scanner) -> tuple[str, Variable]:
    identifier = name = scanner.expect(_ID, "a node's identifier").group()
    scanner.expect(_OPEN, "'{'")
    states: tuple[str, ...] | None = None
    position = scanner.position
    while not scanner.accept(_CLOSE):
        field = scanner.expect(_FIELD, "'name = value;' or '}'")
        if field[1] == "states":
            position = field.start(2)
            listed = _STATES.fullmatch(field[2])
            if listed is None or states is not None:
                scanner.fail(f"node {identifier!r} must have one 'states = ( labels );'", position)
            states = labels(listed[1])
        elif field[1] == NAME_FIELD:
            given = _ONE_STRING.fullmatch(field[2])
            if given is None:
                scanner.fail(f"{NAME_FIELD} of {identifier!r} must be a string", field.start(2))
            name = unquoted(given[1])
    if states is None:
        scanner.fail(f"node {identifier!r} must have 'states', got none", position)
    with scanner.at(position):
        return identifier, Variable(name, states)


def _potential(scanner: Scanner) -> _Block:
    position = scanner.position
    child = scanner.expect(_ID, "a node's identifier").group()
    parents = tuple(scanner.expect(_IDS, "'|', a node's identifier or ')'")[1].split())
    block = _Block(child, parents, position)
    scanner.expect(_OPEN, "'{'")
    while not scanner.accept(_CLOSE):
        field = scanner.expect(_FIELD, "'name = value;' or '}'")
        if field[1] == "data":
            if block.data is not None:
                scanner.fail(f"potential of {child!r} must have one 'data', got a second", field.start(1))
            block.data, block.data_position = field[2], field.start(2)
        elif field[1] in ("model_nodes", "model_data"):
            scanner.fail(f"potential of {child!r} must give its numbers in 'data', got a model", field.start(1))
    return block


def _numbers(scanner: Scanner, block: _Block) -> list[float]:
    data = block.data or ""
    good = _DATA.match(data)
    if good and good.end() < len(data):
        scanner.position = block.data_position + good.end()
        scanner.fail_here("a number, '(', ')' or ';'")
    words = data.translate(_PARENTHESES_TO_SPACES).split()
    with scanner.at(block.data_position):
        return numbers_of(words, f"data of {block.child!r}")


def _check_parentheses(scanner: Scanner, structure: Structure, block: _Block) -> None:
    """The parentheses must follow the axes: otherwise the numbers may not mean what their order says."""
    data, shape = block.data or "", structure.shape(block.child)
    found = _NOT_PARENTHESIS.sub("", data)
    expected = "()"
    for size in reversed(shape[:-1]):
        expected = f"({expected * size})"
    innermost = {len(row.split()) for row in _ROW.findall(data)}
    outside = _ROW.sub("", data).translate(_PARENTHESES_TO_SPACES).strip()
    follows = found == expected and innermost == {shape[-1]}
    if outside or not (follows or found == "()"):
        scanner.fail(
            f"parentheses of {block.child!r} must follow the shape {shape}, or be one pair", block.data_position
        )


def write(network: BayesianNetwork, note: str = "") -> str:
    """NET text that reads back to an equal network, after a comment of one line."""
    identifiers = _identifiers(network.nodes)
    parts = [f"% {note}\n" if note else "", "net\n{\n}\n"]
    for node in network.nodes:
        states = " ".join(quoted(state) for state in network.states(node))
        name = f"  {NAME_FIELD} = {quoted(node)};\n" if identifiers[node] != node else ""
        parts.append(f"node {identifiers[node]}\n{{\n{name}  states = ( {states} );\n}}\n")
    for node in network.nodes:
        parents, cpt = network.parents(node), network.cpt(node)
        given = f" | {' '.join(identifiers[parent] for parent in parents)}" if parents else ""
        lines = [f"({' '.join(map(repr, row))})" for row in cpt.reshape(-1, cpt.shape[-1]).tolist()]
        for size in reversed(cpt.shape[:-1]):
            lines = ["(" + "\n".join(lines[i : i + size]) + ")" for i in range(0, len(lines), size)]
        parts.append(f"potential ( {identifiers[node]}{given} )\n{{\n  data = {lines[0]};\n}}\n")
    return "".join(parts)


def _identifiers(nodes: tuple[str, ...]) -> dict[str, str]:
    """An identifier for each node: its name where that is one, otherwise the first free node_1, node_2, ..."""
    identifiers = {node: node for node in nodes if _SAFE_ID.fullmatch(node) and node not in _KEYWORDS}
    free = (f"node_{number}" for number in range(1, 2 * len(nodes) + 2))
    for node in nodes:
        if node not in identifiers:
            identifiers[node] = next(name for name in free if name not in identifiers)
    return identifiers
