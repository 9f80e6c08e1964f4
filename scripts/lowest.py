"""Print the oldest versions that pyproject.toml allows, as constraints for pip: `make test-lowest` tests with them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_APART = {"bench", "dev", "docs", "fuzz", "ibis", "pgmpy", "pyagrum"}  # our tools, and what has its own environment
_LEAST = re.compile(r"([A-Za-z][\w.-]*)>=([\d.]+)")


def lowest(project: dict) -> list[str]:
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [line for name, lines in extras.items() if name not in _APART for line in lines]
    return sorted({"{}=={}".format(*_LEAST.match(line).groups()) for line in wanted})


if __name__ == "__main__":
    print("\n".join(lowest(tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"])))
