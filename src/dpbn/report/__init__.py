"""A release explained: one HTML page, privacy.json and MODEL_CARD.md. Reads the release, nothing else."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from dpbn.errors import InputError
from dpbn.files import write_atomically
from dpbn.report.card import model_card
from dpbn.report.facts import facts_of, privacy_document
from dpbn.report.page import page

if TYPE_CHECKING:
    from dpbn.release import Release


COMPANIONS = ("privacy.json", "MODEL_CARD.md")  # beside the page


def write_report(
    release: Release, path: str | Path, *, title: str | None = None, file: str = "release.json", intervals: bool = True
) -> tuple[Path, Path, Path]:
    """Write the page at `path` (.html), and privacy.json and MODEL_CARD.md beside it; returns the three paths.

    `file` is what the release is called in the lines that show how to open it; `intervals=False` leaves the error
    bars out, which take most of the time on a large network.
    """
    from dpbn.release import Release

    if not isinstance(release, Release):
        raise InputError(f"a report must be given a release, got {type(release).__name__}")
    path = Path(path)
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"a report must end in .html, got {path.name!r}")
    facts = facts_of(release, title or path.stem, file, intervals=intervals)
    privacy = json.dumps(privacy_document(facts), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    document, card = (path.with_name(name) for name in COMPANIONS)
    if others := [place.name for place in (document, card) if _of_another(place, release)]:
        told = f"{' and '.join(others)} of another release replaced: give each release a folder of its own"
        warnings.warn(told, stacklevel=2)
    return (
        write_atomically(path, page(facts)),
        write_atomically(document, privacy),
        write_atomically(card, model_card(facts)),
    )


def _of_another(companion: Path, release: Release) -> bool:
    try:
        return release.id.encode() not in companion.read_bytes()
    except OSError:  # there is none, or it is not for us to read
        return False
