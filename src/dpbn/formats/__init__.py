"""Readers and writers for networks, one file per format; bundled networks."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from dpbn.domain import Schema
from dpbn.errors import FormatError, InputError, did_you_mean, received
from dpbn.files import check_replaceable, located
from dpbn.formats import bif, files, model_string, net, project_json, xmlbif
from dpbn.network import BayesianNetwork, Structure

if TYPE_CHECKING:
    from dpbn.release import Release

BUNDLED = ("alarm", "asia", "cancer", "child", "earthquake", "sachs", "survey")
BY_EXTENSION: dict[str, ModuleType] = {
    ".bif": bif,
    ".xmlbif": xmlbif,
    ".xml": xmlbif,
    ".bifxml": xmlbif,  # pyAgrum's
    ".net": net,
    ".json": project_json,
}
FOREIGN = {
    "networkx": "dpbn.formats.networkx_graph.structure_from_networkx",
    "pgmpy": "dpbn.formats.pgmpy_model.from_pgmpy",
    "pyagrum": "dpbn.formats.pyagrum_model.from_pyagrum",
}


NOT_PRIVATE = (
    "This file is NOT private. It was made without noise, or with noise from a seeded generator, "
    "for experiments only. Do not publish it."
)


def load_network(source: str | Path) -> BayesianNetwork:
    """A bundled network by name, or a file by its extension, which may be followed by .gz."""
    reader, text = _opened(source)
    with located(source):
        network: BayesianNetwork = reader.read(text)
    return network


def load_structure(
    source: str | Path | Structure | BayesianNetwork | Release, schema: Schema | None = None
) -> Structure:
    """The structure of a bundled network, a file (CPTs may be absent), or a model string `[a][b|a]` over `schema`."""
    if isinstance(source, Structure):
        return source
    if not isinstance(source, (str, Path)):  # a network, or a release
        held = getattr(source, "structure", None)
        if isinstance(held, Structure):
            return held
        known = FOREIGN.get(type(source).__module__.partition(".")[0].lower())
        hint = f": {known} reads it" if known else ""
        raise InputError(f"a structure must be a bundled name, a path or a network, got {type(source).__name__}{hint}")
    if isinstance(source, str) and source.lstrip().startswith("["):
        if schema is None:
            raise InputError("a model string has no states: it must come with a schema, got none")
        return model_string.read(source, schema)
    if schema is not None:
        raise InputError("a schema must be given with a model string only, got a file or name that has its own")
    reader, text = _opened(source)
    with located(source):
        structure: Structure = reader.read_structure(text)
    return structure


def write_network(network: BayesianNetwork | Structure | Release, path: str | Path) -> None:
    """Write a network, or that of a release, as the extension says: a whole file or none, and never over a release.

    The network of a release that is not private is written with a note that says so. A structure alone is written
    as .json only: other programs want the probabilities as well, and other formats have no cut points.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the place of a network must be a path, got {type(path).__name__}: the network comes first")
    target = Path(path)
    writer = _by_extension(target)
    note = NOT_PRIVATE if getattr(network, "private", True) is False else ""
    plain = {"doctype": False} if _extension(target) == ".bifxml" else {}  # pyAgrum cannot read one
    network = getattr(network, "network", network)  # of a release
    if isinstance(network, Structure) and writer is not project_json:
        raise FormatError(f"a structure without probabilities must be written as .json, got {target.name!r}")
    if not isinstance(network, (BayesianNetwork, Structure)):
        kind = type(network).__name__
        raise InputError(f"a network to write must be a BayesianNetwork, a Structure or a release, got {kind}")
    check_replaceable(target)
    with located(path):
        files.write_text(target, writer.write(network, note, **plain))


def _opened(source: str | Path) -> tuple[ModuleType, str]:
    if not isinstance(source, (str, Path)):
        raise InputError(f"a network must be a bundled name or a path, got {type(source).__name__}")
    if str(source) in BUNDLED:
        return project_json, (resources.files("dpbn.formats") / "networks" / f"{source}.json").read_text("utf-8")
    path = Path(source)
    if not path.suffix and not os.path.exists(path):  # like isdir no error for a name that no file can have
        hint = did_you_mean(str(source), BUNDLED)
        raise InputError(
            f"a network must be one of the bundled {', '.join(BUNDLED)} or a file, got {str(source)!r}{hint}"
        )
    if os.path.isdir(path):
        raise InputError(f"{str(source)!r} must be a file, got a folder")
    reader = _by_extension(path)
    return reader, files.read_text(path, xml=reader is xmlbif)


def is_network_name(name: str | Path) -> bool:
    """Whether a file of this name is read as a network, by its extension."""
    return _extension(Path(name)) in BY_EXTENSION


def _extension(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])


def _by_extension(path: Path) -> ModuleType:
    suffix = _extension(path)
    if suffix not in BY_EXTENSION:
        known = ", ".join(BY_EXTENSION)
        raise FormatError(
            f"a network file's extension must be one of {known}, or one of them and .gz, got {received(path.name)}"
        )
    return BY_EXTENSION[suffix]
