"""Everything the dev extra installs is pinned at the version that is installed, and its licence is listed."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {plain(name): version for name, version in pairs}


def needed(extra):
    """Every distribution that `pip install .[extra]` brings, with its own extras followed."""
    found, waiting = set(), [("dpbn", frozenset({extra}))]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if name == "dpbn":
            lines = [*PROJECT["dependencies"], *(line for e in extras for line in PROJECT["optional-dependencies"][e])]
        else:
            found.add(name)
            lines = metadata.distribution(name).requires or []
        for line in lines:
            requirement = Requirement(line)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in (*extras, "")):
                waiting.append((plain(requirement.name), frozenset(requirement.extras)))
    return sorted(found)


def test_everything_installed_for_development_is_pinned_as_installed():
    known = pins()
    for name in needed("dev"):
        assert name in known, f"{name} must be pinned in constraints.txt"
        assert metadata.version(name) == known[name], name


def test_pins_name_versions_and_nothing_else():
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+", line), line


@pytest.mark.parametrize("extra", ["dev", "web", "engines"])
def test_licences_of_what_is_installed_are_listed(extra):
    page = (ROOT / "docs" / "licences.md").read_text("utf-8")
    for name in needed(extra):
        assert f"| {name} |" in page, f"{name} must be in docs/licences.md: run python benchmarks/licences.py"
