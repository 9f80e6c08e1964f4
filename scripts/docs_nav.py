"""mkdocs hook: the menu lists only pages that exist, and links to source files, which the site has not, become text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_TO_SOURCE = re.compile(r"\[([^\]]+)\]\(\.\./src/[^)]+\)")


def on_config(config: Any) -> Any:
    config["nav"] = _existing(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _TO_SOURCE.sub(r"\1", markdown)


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
