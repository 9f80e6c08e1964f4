"""The project's own versioned JSON: a network, or a structure alone (no "cpts")."""

from __future__ import annotations

import json
from typing import Any

from dpbn.domain import Schema, Variable
from dpbn.errors import FormatError
from dpbn.graph import Dag
from dpbn.network import BayesianNetwork, Structure

FORMAT, VERSION = "dpbn-network", 1


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
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise FormatError(f"a network file must say format {FORMAT!r}, version {VERSION}")
    variables, parents = [], {}
    for entry in document["variables"]:
        variables.append(
            Variable(
                entry["name"],
                tuple(entry["states"]),
                cut_points=entry.get("cut_points"),
                column=entry.get("column"),
                catch_all=entry.get("catch_all"),
            )
        )
        parents[entry["name"]] = tuple(entry["parents"])
    return Structure(Schema(tuple(variables)), Dag(tuple(v.name for v in variables), parents))


def network_to_dict(network: BayesianNetwork) -> dict[str, Any]:
    document = structure_to_dict(network.structure)
    document["cpts"] = {node: network.cpt(node).tolist() for node in network.nodes}
    return document


def network_from_dict(document: Any) -> BayesianNetwork:
    return BayesianNetwork(structure_from_dict(document), document["cpts"])


def read(text: str) -> BayesianNetwork:
    try:
        return network_from_dict(json.loads(text))
    except json.JSONDecodeError as error:
        raise FormatError(error.msg, line=error.lineno, column=error.colno) from None


def write(network: BayesianNetwork) -> str:
    return json.dumps(network_to_dict(network), ensure_ascii=False) + "\n"
