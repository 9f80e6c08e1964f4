"""docs/licences.md from the metadata of what is installed: `python benchmarks/licences.py`."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]


def licence(name: str) -> str:
    """What a distribution says of its own licence: expression, classifiers, or the first line of the field."""
    about = metadata.metadata(name)
    if about.get("License-Expression"):
        return about["License-Expression"]
    classified = [line.split("::")[-1].strip() for line in about.get_all("Classifier") or () if "License ::" in line]
    if classified:
        return ", ".join(classified)
    return (about.get("License") or "not stated in its metadata").strip().splitlines()[0][:80]


def main() -> None:
    from tests.trust.test_supply_chain import needed

    extras = ("numba", "engines", "spark", "networkx", "plots", "web", "sklearn", "pgmpy", "pyagrum")
    light = {name for extra in extras for name in needed(extra)}
    rows = [
        f"| {name} | {metadata.version(name)} | {licence(name).replace('|', '/')} | "
        f"{'use' if name in light else 'tests'} |"
        for name in needed("dev")
    ]
    head = (
        "# Licences of dependencies\n\nMade by `python benchmarks/licences.py` from the metadata of the installed "
        "packages. `use`: comes with dpbn or with one of its extras; `tests`: only for development and comparisons.\n"
        "dpbn itself is under Apache-2.0.\n\n| package | version | licence | needed for |\n|---|---|---|---|\n"
    )
    (ROOT / "docs").mkdir(exist_ok=True)
    (ROOT / "docs" / "licences.md").write_text(head + "\n".join(rows) + "\n", "utf-8")
    print(f"{len(rows)} packages")


if __name__ == "__main__":
    main()
