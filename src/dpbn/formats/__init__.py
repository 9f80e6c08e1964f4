"""Readers and writers for networks, one file per format; bundled networks."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from dpbn.errors import FormatError, InputError
from dpbn.formats import project_json
from dpbn.network import BayesianNetwork

BUNDLED = ("alarm", "asia", "cancer", "child", "earthquake", "sachs", "survey")


def load_network(source: str | Path) -> BayesianNetwork:
    """A bundled network by name, or a file by its extension."""
    if str(source) in BUNDLED:
        return project_json.read((resources.files("dpbn.formats") / "networks" / f"{source}.json").read_text("utf-8"))
    path = Path(source)
    if path.suffix != ".json":
        raise FormatError(f"extension must be .json, got {path.suffix!r}", source=str(source))
    if not path.exists():
        raise InputError(f"a network must be a bundled name {BUNDLED} or an existing file, got {str(source)!r}")
    return project_json.read(path.read_text("utf-8"))
