"""mkdocs hook: the menu lists only pages that exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    config["nav"] = _existing(config["nav"], Path(config["docs_dir"]))
    return config


def _existing(entries: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    kept = []
    for entry in entries:
        for title, target in entry.items():
            if isinstance(target, list):
                inside = _existing(target, folder)
                kept += [{title: inside}] if inside else []
            elif (folder / target).exists():
                kept.append({title: target})
    return kept
