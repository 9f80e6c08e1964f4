"""Figures the long checks have seen, kept in docs/figures/reliability.json; docs/reliability.md is made of them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "reliability.json"


def record(name: str, figures: dict[str, Any]) -> None:
    """Replace the figures of one check, say when they were seen, and write the page again."""
    from benchmarks.reliability import write_page

    known = json.loads(FILE.read_text("utf-8"))
    known[name] = {"seen": datetime.now(UTC).strftime("%Y-%m-%d"), "cores": os.cpu_count(), **figures}
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")
    write_page(known)
    print(json.dumps({name: known[name]}))
