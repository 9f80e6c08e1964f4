"""XMLBIF 0.3, read by expat directly: nothing is fetched, and a document that declares entities is refused.

    BIF > NETWORK > NAME, PROPERTY*, VARIABLE*, DEFINITION*
    VARIABLE TYPE="nature" > NAME, OUTCOME+, PROPERTY*
    DEFINITION > FOR, GIVEN*, TABLE, PROPERTY*

TABLE lists numbers with the parents in order and the child's states fastest. Spaces around a name or label are
not part of it, unless its element says xml:space="preserve".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from dpbn.domain import Variable
from dpbn.errors import FormatError, StructureError, did_you_mean
from dpbn.formats.tables import assembled, from_table, numbers_of
from dpbn.network import BayesianNetwork, Structure, check_cells

_XML_SPACE = " \t\r\n"
_CHILDREN: dict[str, frozenset[str]] = {
    "": frozenset({"BIF"}),
    "BIF": frozenset({"NETWORK"}),
    "NETWORK": frozenset({"NAME", "PROPERTY", "VARIABLE", "DEFINITION"}),
    "VARIABLE": frozenset({"NAME", "OUTCOME", "PROPERTY"}),
    "DEFINITION": frozenset({"FOR", "GIVEN", "TABLE", "PROPERTY"}),
}
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_DOCTYPE = """<!DOCTYPE BIF [
  <!ELEMENT BIF (NETWORK)*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK (NAME, (PROPERTY | VARIABLE | DEFINITION)*)>
  <!ELEMENT NAME (#PCDATA)>
  <!ELEMENT VARIABLE (NAME, (OUTCOME | PROPERTY)*)>
  <!ATTLIST VARIABLE TYPE (nature | decision | utility) "nature">
  <!ELEMENT OUTCOME (#PCDATA)>
  <!ELEMENT DEFINITION (FOR | GIVEN | TABLE | PROPERTY)*>
  <!ELEMENT FOR (#PCDATA)>
  <!ELEMENT GIVEN (#PCDATA)>
  <!ELEMENT TABLE (#PCDATA)>
  <!ELEMENT PROPERTY (#PCDATA)>
]>
"""


@dataclass(slots=True)
class _Entry:
    """The texts of one VARIABLE or DEFINITION, by element, and where it begins."""

    line: int
    column: int
    texts: dict[str, list[str]] = field(default_factory=dict)

    def fail(self, message: str) -> NoReturn:
        raise FormatError(message, line=self.line, column=self.column)

    def one(self, element: str, parent: str) -> str:
        found = self.texts.get(element, [])
        if len(found) != 1:
            self.fail(f"a {parent} must have one {element}, got {len(found)}")
        return found[0]


class _Reader:
    """Collects the entries of a document while expat walks it."""

    def __init__(self) -> None:
        self.variables: list[_Entry] = []
        self.definitions: list[_Entry] = []
        self._open: list[str] = [""]
        self._text: list[str] = []
        self._preserve = False
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 2**18
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_skipped

    def parse(self, text: str) -> None:
        try:
            self._parser.Parse(text.removeprefix("\ufeff"), True)
        except expat.ExpatError as error:
            reason = f"an XMLBIF file must be well-formed XML: {expat.ErrorString(error.code)}"
            raise FormatError(reason, line=error.lineno, column=error.offset + 1) from None

    def _fail(self, message: str) -> NoReturn:
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        raise FormatError(message, line=line, column=column)

    def _refuse_entity(self, name: str, *_: object) -> None:
        self._fail(f"an XMLBIF document must not declare entities, got {name[:40]!r}")

    def _refuse_skipped(self, name: str, _: object) -> None:
        self._fail(f"an XMLBIF document must not refer to entities, got {name[:40]!r}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1]
        if name not in _CHILDREN.get(parent, ()):
            wanted = " or ".join(sorted(_CHILDREN.get(parent, ()))) or "text only"
            self._fail(f"expected {wanted} inside {parent or 'the document'}, got <{name[:40]}>")
        self._check_blank()
        self._open.append(name)
        if name in ("VARIABLE", "DEFINITION"):
            kind = attributes.get("TYPE", "nature")
            if name == "VARIABLE" and kind not in ("nature", "discrete"):
                self._fail(f"a VARIABLE must be of TYPE 'nature', got {kind[:40]!r}")
            entry = _Entry(self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)
            (self.variables if name == "VARIABLE" else self.definitions).append(entry)
        self._preserve = attributes.get("xml:space") == "preserve"

    def _end(self, name: str) -> None:
        self._open.pop()
        if name in _CHILDREN:
            self._check_blank()
            return
        text = "".join(self._text)
        self._text.clear()
        parent = self._open[-1]
        if parent != "NETWORK" and name != "PROPERTY":
            entry = (self.variables if parent == "VARIABLE" else self.definitions)[-1]
            entry.texts.setdefault(name, []).append(text if self._preserve else text.strip(_XML_SPACE))

    def _check_blank(self) -> None:
        stray = "".join(self._text).strip(_XML_SPACE)
        self._text.clear()
        if stray:
            self._fail(f"{self._open[-1]} must hold elements only, got the text {stray[:24]!r}")


def read(text: str) -> BayesianNetwork:
    """The network an XMLBIF text describes."""
    structure, definitions = _parse(text)
    check_cells(structure)
    cpts = {}
    for node in structure.nodes:
        if node not in definitions:
            raise FormatError(f"every variable must have a DEFINITION, got none for {node!r}")
        entry = definitions[node]
        words = entry.one("TABLE", "DEFINITION").split()
        try:
            cpts[node] = from_table(structure, node, numbers_of(words, f"a TABLE of {node!r}"))
        except FormatError as error:
            entry.fail(error.reason)
    return BayesianNetwork(structure, cpts)


def read_structure(text: str) -> Structure:
    """The structure an XMLBIF text describes; TABLEs may be absent."""
    return _parse(text)[0]


def _parse(text: str) -> tuple[Structure, dict[str, _Entry]]:
    reader = _Reader()
    reader.parse(text)
    variables: dict[str, Variable] = {}
    for entry in reader.variables:
        name = entry.one("NAME", "VARIABLE")
        if name in variables:
            entry.fail(f"variables must be distinct, got {name!r} twice")
        try:
            variables[name] = Variable(name, tuple(entry.texts.get("OUTCOME", ())))
        except StructureError as error:
            entry.fail(str(error))
    definitions: dict[str, _Entry] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for entry in reader.definitions:
        child, given = entry.one("FOR", "DEFINITION"), tuple(entry.texts.get("GIVEN", ()))
        unknown = next((name for name in (child, *given) if name not in variables), None)
        if unknown is not None:
            hint = did_you_mean(unknown, variables)
            entry.fail(f"a DEFINITION must name declared variables, got {unknown!r}{hint}")
        if child in definitions:
            entry.fail(f"{child!r} must have one DEFINITION, got a second")
        definitions[child], parents[child] = entry, given
    return assembled(variables, parents), definitions


def write(network: BayesianNetwork, note: str = "", doctype: bool = True) -> str:
    """XMLBIF text that reads back to an equal network, or a FormatError for a label that XML cannot hold."""
    parts = [_DECLARATION, _DOCTYPE if doctype else "", f"<!-- {note} -->\n" if note else ""]
    parts.append('<BIF VERSION="0.3">\n<NETWORK>\n<NAME>unknown</NAME>\n')
    for node in network.nodes:
        outcomes = "".join(f"  {_element('OUTCOME', state)}\n" for state in network.states(node))
        parts.append(f'<VARIABLE TYPE="nature">\n  {_element("NAME", node)}\n{outcomes}</VARIABLE>\n')
    for node in network.nodes:
        cpt = network.cpt(node)
        given = "".join(f"  {_element('GIVEN', parent)}\n" for parent in network.parents(node))
        rows = "\n".join(" ".join(map(repr, row)) for row in cpt.reshape(-1, cpt.shape[-1]).tolist())
        parts.append(f"<DEFINITION>\n  {_element('FOR', node)}\n{given}  <TABLE>\n{rows}\n  </TABLE>\n</DEFINITION>\n")
    parts.append("</NETWORK>\n</BIF>\n")
    return "".join(parts)


def _element(name: str, text: str) -> str:
    wrong = _NOT_XML.search(text)
    if wrong:
        raise FormatError(f"a label must hold only characters that XML allows, got {wrong.group()!r} in {text!r}")
    space = ' xml:space="preserve"' if text != text.strip(_XML_SPACE) else ""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    return f"<{name}{space}>{escaped}</{name}>"
