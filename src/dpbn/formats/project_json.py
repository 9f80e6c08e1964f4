"""The project's own versioned JSON: a network, or a structure alone (no "cpts").

    {"format": "dpbn-network", "version": 1,
     "variables": [{"name": ..., "states": [...], "parents": [...],
                    optional "cut_points": [...], "column": ..., "catch_all": ...}, ...],
     "cpts": {name: nested lists, parents in order, child last}}

Other keys at the top are left alone, so that a document may carry more than a network (a "note", say).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Variable
from dpbn.errors import BareStructureError, FormatError
from dpbn.files import parse_json
from dpbn.formats.tables import assembled, checked_rows
from dpbn.network import BayesianNetwork, Structure, check_cells

FORMAT, VERSION = "dpbn-network", 1
_KEYS = frozenset({"name", "states", "parents", "cut_points", "column", "catch_all"})


def structure_to_dict(structure: Structure) -> dict[str, Any]:
    variables = []
    for variable in structure.schema:
        entry: dict[str, Any] = {"name": variable.name, "states": list(variable.states)}
        for key in ("cut_points", "column", "catch_all"):
            value = getattr(variable, key)
            if value is not None:
                entry[key] = list(value) if isinstance(value, tuple) else value
        entry["parents"] = list(structure.parents(variable.name))
        variables.append(entry)
    return {"format": FORMAT, "version": VERSION, "variables": variables}


def structure_from_dict(document: Any) -> Structure:
    """The structure in a decoded document; every way of being malformed is a typed error."""
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        hint = ": write its network with dpbn convert first" if found == "dpbn-release" else ""
        raise FormatError(f"a network file must say format {FORMAT!r}, version {VERSION}, got {found!r:.40}{hint}")
    entries = document.get("variables")
    if not isinstance(entries, list):
        raise FormatError(f"'variables' must be a list, got {_kind(entries)}")
    variables: dict[str, Variable] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for number, entry in enumerate(entries):
        variable, its_parents = _variable(entry, f"variables[{number}]")
        if variable.name in variables:
            raise FormatError(f"variables must be distinct, got {variable.name!r} twice")
        variables[variable.name], parents[variable.name] = variable, its_parents
    return assembled(variables, parents)


def _variable(entry: Any, subject: str) -> tuple[Variable, tuple[str, ...]]:
    if not isinstance(entry, dict):
        raise FormatError(f"{subject} must be an object, got {_kind(entry)}")
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise FormatError(f"{subject} must have no keys but {sorted(_KEYS)}, got {unknown}")
    name = entry.get("name")
    if not isinstance(name, str):
        raise FormatError(f"{subject}.name must be a string, got {_kind(name)}")
    cut_points = entry.get("cut_points")
    if cut_points is not None:
        if not isinstance(cut_points, list) or any(type(cut) not in (int, float) for cut in cut_points):
            raise FormatError(f"{subject}.cut_points must be a list of numbers, got {_kind(cut_points)}")
        try:
            cut_points = tuple(float(cut) for cut in cut_points)
        except OverflowError:
            raise FormatError(f"{subject}.cut_points must be finite, got a number too large") from None
    variable = Variable(
        name,
        _strings(entry.get("states"), f"{subject}.states"),
        cut_points=cut_points,
        column=_optional_string(entry.get("column"), f"{subject}.column"),
        catch_all=_optional_string(entry.get("catch_all"), f"{subject}.catch_all"),
    )
    return variable, _strings(entry.get("parents"), f"{subject}.parents")


def _strings(value: Any, subject: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FormatError(f"{subject} must be a list of strings, got {_kind(value)}")
    return tuple(value)


def _optional_string(value: Any, subject: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise FormatError(f"{subject} must be a string, got {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    """A JSON value's kind in words: the value itself may be huge."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number")


def network_to_dict(network: BayesianNetwork) -> dict[str, Any]:
    document = structure_to_dict(network.structure)
    document["cpts"] = {node: network.cpt(node).tolist() for node in network.nodes}
    return document


def network_from_dict(document: Any) -> BayesianNetwork:
    """The network in a decoded document; every way of being malformed is a typed error."""
    structure = structure_from_dict(document)
    cpts = document.get("cpts")
    if not isinstance(cpts, dict):
        wanted = "'cpts' must be an object with one CPT per variable"
        if cpts is None:
            raise BareStructureError(f"{wanted}, got nothing: a structure alone, to learn or plan with")
        raise FormatError(f"{wanted}, got {_kind(cpts)}")
    wrong = sorted(set(cpts) ^ set(structure.nodes))
    if wrong:
        raise FormatError(f"'cpts' must have exactly one CPT per variable, got a mismatch at {wrong[0]!r}")
    check_cells(structure)
    return BayesianNetwork(structure, {node: _cpt(structure, node, cpts[node]) for node in structure.nodes})


def leaves(nested: Any, shape: Sequence[int]) -> list[Any] | None:
    """What nested lists of this shape hold, None if they have another.

    NumPy would guess, and make every text as long as the longest.
    """
    level: list[Any] = [nested]
    for size in shape:
        if any(type(part) is not list or len(part) != size for part in level):
            return None
        level = list(itertools.chain.from_iterable(level))
    return level


def _cpt(structure: Structure, node: str, nested: Any) -> NDArray[np.float64]:
    shape = structure.shape(node)
    level = leaves(nested, shape)
    if level is None:
        raise FormatError(f"CPT of {node!r} must be nested lists of shape {shape}, got another shape")
    kinds = set(map(type, level))
    if not kinds <= {int, float}:
        raise FormatError(
            f"CPT of {node!r} must hold numbers, got {_kind(next(v for v in level if type(v) in kinds - {int, float}))}"
        )
    try:
        table = np.array(level, dtype=np.float64).reshape(shape)
    except OverflowError:
        raise FormatError(f"CPT of {node!r} must hold probabilities, got a number too large") from None
    return checked_rows(structure, node, table)


def _decoded(text: str) -> Any:
    return parse_json(text, "a network file must be JSON")


def read(text: str) -> BayesianNetwork:
    """The network in a JSON text."""
    return network_from_dict(_decoded(text))


def read_structure(text: str) -> Structure:
    """The structure in a JSON text, with or without CPTs."""
    return structure_from_dict(_decoded(text))


def write(network: BayesianNetwork | Structure, note: str = "") -> str:
    """JSON text that reads back to an equal network, or structure."""
    body = structure_to_dict(network) if isinstance(network, Structure) else network_to_dict(network)
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION} | ({"note": note} if note else {})
    return json.dumps(head | body, ensure_ascii=False) + "\n"
