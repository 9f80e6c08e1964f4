"""Error bars for the page: the one place where the explorer meets intervals, stability and support.

A release without noisy measurements carries nothing to compute them from; the page is told so once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbn.inference import Inference
from dpbn.release import Release
from dpbn.support import supports
from dpbn.uncertainty.error_bars import PARTS
from dpbn.uncertainty.leaning import WeakRow, leanings


def has_intervals(release: Release) -> bool:
    """Whether intervals can be had for this release."""
    return bool(release.measurements)


def weak_rows(release: Release) -> Mapping[str, int]:
    """For every learned node, how many CPT rows rest on too few records to be told from noise."""
    return {node: int(its.below_floor.sum()) for node, its in supports(release.structure, release.measurements).items()}


def weak_answers(engine: Inference, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The rows below the noise floor that posteriors lean on, each once, and which of them lie behind which node."""
    found = leanings(engine, evidence)
    rows = list(dict.fromkeys(key for its in found.values() for key in map(_key, its.rows)))
    places = {key: place for place, key in enumerate(rows)}
    behind = {
        node: {"share": its.share, "rows": [places[_key(row)] for row in its.rows]} for node, its in found.items()
    }
    return {"rows": [{"node": n, "parents": dict(p), "weight": min(w, 1.0)} for n, p, w in rows], "behind": behind}


def _key(row: WeakRow) -> tuple[str, tuple[tuple[str, str], ...], float]:
    return row.node, tuple(row.parents.items()), row.weight


def posterior_intervals(engine: Inference, evidence: Mapping[str, Any], level: float) -> dict[str, Any]:
    """[low, high] of every state of every node: in total, from privacy noise alone, from sampling alone."""
    return {
        node: {part: np.stack(bars.interval(level, part), axis=-1).tolist() for part in PARTS}
        for node, bars in engine.intervals(evidence).items()
    }
