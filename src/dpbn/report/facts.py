"""Everything the page, the model card and privacy.json say, computed once from a release."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.measurement import Measurement
from dpbn.release import Release, structure_hash
from dpbn.statement import points, summary
from dpbn.support import Support, supports
from dpbn.uncertainty.error_bars import ErrorBars

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]
LEVEL = 0.9
CONTENT_ID = "SHA-256 of the file without its final newline"
LOSS_KINDS = {"gaussian": "rho", "summed": "epsilon of the table by itself"}
MOST_CELLS = 50_000  # of all tables together; beyond it a page does without intervals


@dataclass(frozen=True, slots=True)
class RowBelowFloor:
    """A CPT row below the noise floor: the parents' states and the noisy number of records behind it."""

    node: str
    parents: tuple[tuple[str, str], ...]
    count: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Facts:
    """A release and what is worth saying about it."""

    release: Release
    title: str
    file: str  # the release's name, for the lines that open it
    support: Mapping[str, Support]
    weak_rows: tuple[RowBelowFloor, ...]
    intervals: Mapping[str, Interval]  # of CPT cells, by node; empty without noise, beyond MOST_CELLS, or unwanted

    def reliability(self, node: str) -> str:
        """good, fair, poor; public for a node whose CPT was given; exact where no noise was drawn."""
        if node in self.support:
            return self.support[node].reliability
        return "public" if node in self.release.public_nodes else "exact"

    @property
    def rows(self) -> int:
        """CPT rows in all."""
        return sum(cpt.size // cpt.shape[-1] for cpt in self.release.network.cpts.values())


def facts_of(release: Release, title: str, file: str, *, intervals: bool = True) -> Facts:
    support = supports(release.structure, release.measurements, release.public_nodes)
    bars = _intervals(release) if intervals else {}
    return Facts(release, title, file, support, tuple(_weak_rows(release, support)), bars)


def _intervals(release: Release) -> dict[str, Interval]:
    cells = sum(cpt.size for cpt in release.network.cpts.values())
    if not release.measurements or cells > MOST_CELLS:
        return {}
    bars = ErrorBars(release).tables(release.network)
    return {node: its.interval(LEVEL) for node, its in bars.items()}


def parent_rows(release: Release, node: str) -> Iterator[tuple[tuple[int, ...], tuple[tuple[str, str], ...]]]:
    """Every parent configuration of `node`: its index into the CPT and its (parent, state) pairs."""
    parents = release.network.parents(node)
    states = [release.network.states(parent) for parent in parents]
    for index in itertools.product(*(range(len(labels)) for labels in states)):
        yield index, tuple((p, labels[i]) for p, labels, i in zip(parents, states, index, strict=True))


def _weak_rows(release: Release, support: Mapping[str, Support]) -> Iterator[RowBelowFloor]:
    for node, its in support.items():
        weak = its.below_floor
        if weak.any():
            for index, parents in parent_rows(release, node):
                if weak[index]:
                    yield RowBelowFloor(node, parents, float(its.counts[index]), its.row_deviation)


def privacy_document(facts: Facts) -> dict[str, Any]:
    """privacy.json: the guarantee and the mechanism for programs, with the same answers in words."""
    release = facts.release
    return {
        "format": "dpbn-privacy",
        "version": 1,
        "private": release.private,
        "summary": summary(release),
        **release.guarantee.to_dict(),
        "trust_model": "central",
        "method": release.method,
        "on_unknown": release.on_unknown,
        "public_nodes": list(release.public_nodes),
        "answers": {point.key: point.answer for point in points(release)},
        "tables": [
            {
                "names": list(m.names),
                "mechanism": _mechanism(m),
                "scale": m.scale,
                "loss": m.loss,
                "loss_kind": LOSS_KINDS.get(m.mechanism, "epsilon"),
                "stage": m.stage,
                "sampling_rate": str(m.sampling.rate) if m.sampling else None,
                "noise_group": m.together.group if m.together else None,
            }
            for m in release.measurements
        ],
        "looks": [
            {
                "tables": [list(names) for names in look.look.tables],
                "caps": list(look.look.caps),
                "scale": look.look.scale,
                "loss": look.loss,
            }
            for look in release.looks
        ],
        "allocation": dict(release.allocation),
        "rows_below_noise_floor": len(facts.weak_rows),
        "release_sha256": release.id,
        "release_sha256_is": CONTENT_ID,
        "structure_sha256": structure_hash(release.structure),
        "library": release.library,
    }


def _mechanism(measurement: Measurement) -> str:
    if measurement.mechanism == "summed":
        return f"sum of {measurement.draws} draws of discrete laplace"
    if measurement.together is None:
        return f"discrete {measurement.mechanism}"
    return f"noise drawn together for {len(measurement.together.tables)} tables, which cost this loss once"
