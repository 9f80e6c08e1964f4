"""bnlearn's model string, `[asia][tub|asia][either|lung:tub]`: a graph alone, so the states come from a schema."""

from __future__ import annotations

import re

from dpbn.domain import Schema
from dpbn.errors import FormatError
from dpbn.formats.scanner import SPACE, Scanner
from dpbn.graph import Dag
from dpbn.network import Structure

_NAME = r"[^\[\]|:\n]++"
_NODE = re.compile(rf"{SPACE}\[({_NAME})(?:\|({_NAME}(?::{_NAME})*+))?+\]")
_OPEN = re.compile(rf"{SPACE}\[")
_HEAD = re.compile(rf"{_NAME}(?:\|{_NAME}(?::{_NAME})*+)?+")
_END = re.compile(rf"{SPACE}\Z")
_RESERVED = re.compile(r"[\[\]|:\n]")


def read(text: str, schema: Schema) -> Structure:
    """The structure with this graph over `schema`, which must declare exactly its nodes."""
    scanner = Scanner(text)
    parents: dict[str, tuple[str, ...]] = {}
    while not scanner.accept(_END):
        position = scanner.position
        node = scanner.accept(_NODE)
        if node is None:
            scanner.expect(_OPEN, "'['")
            scanner.expect(_HEAD, "a node's name")
            scanner.fail_here("'|', ':' or ']'")
        if node[1] in parents:
            scanner.fail(f"nodes must be distinct, got {node[1]!r} twice", position)
        parents[node[1]] = tuple(node[2].split(":")) if node[2] else ()
    if not parents:
        scanner.fail("a model string must name at least one node, got none")
    return Structure(schema, Dag(tuple(parents), parents))


def write(structure: Structure) -> str:
    """The model string of a structure, or a FormatError for a name it cannot hold."""
    for node in structure.nodes:
        wrong = _RESERVED.search(node)
        if wrong:
            raise FormatError(f"a name in a model string must not hold any of '[]|:', got {node!r}")
    parts = []
    for node in structure.nodes:
        parents = structure.parents(node)
        parts.append(f"[{node}|{':'.join(parents)}]" if parents else f"[{node}]")
    return "".join(parts)
