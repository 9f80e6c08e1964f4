"""Simulated releases: tables counted on rows drawn from a known network, and noise like that of a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.margins import Names
from dpbn.measurement import Measurement, with_noise
from dpbn.network import BayesianNetwork
from dpbn.privacy import blocks
from dpbn.privacy.noise import InsecureNoise
from dpbn.sampling import sample_codes

Counts = NDArray[np.int64]


class SimulatedSource:
    """Columns of state codes as a CountSource, so that the real learners run on them; no table is counted twice."""

    can_sample_rows = True

    def __init__(self, schema: Schema, codes: Mapping[str, NDArray[np.integer]]):
        self._schema, self._codes = schema, codes
        self._known: dict[Names, Counts] = {}

    def counts(self, sets: Sequence[Names]) -> dict[Names, Counts]:
        for names in sets:
            if names not in self._known:
                self._known[names] = self._count(names, slice(None))
        return {names: self._known[names] for names in sets}

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], NDArray[np.bool_]]) -> dict[Names, Counts]:
        mask = keep(len(next(iter(self._codes.values()))))
        return {names: self._count(names, mask) for names in sets}

    def _count(self, names: Names, rows: slice | NDArray[np.bool_]) -> Counts:
        shape = self._schema.shape(names)
        flat = np.zeros(len(next(iter(self._codes.values()))[rows]), dtype=np.int64)
        for name, size in zip(names, shape, strict=True):
            flat *= size
            flat += self._codes[name][rows]
        table = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        table.setflags(write=False)
        return table


def simulated(network: BayesianNetwork, rows: int, seed: int) -> SimulatedSource:
    """So many records drawn from `network`."""
    return SimulatedSource(network.structure.schema, sample_codes(network, rows, seed))


def simulated_noise(counts: Sequence[Counts], measurements: Sequence[Measurement], seed: int) -> list[Counts]:
    """The noise (and the thinning, if the table was measured on a sample) of `measurements`, drawn afresh."""
    noise = InsecureNoise(seed)
    noisy: list[Counts] = []
    groups: dict[str, list[int]] = {}
    for index, (table, m) in enumerate(zip(counts, measurements, strict=True)):
        if m.together is not None:
            groups.setdefault(m.together.group, []).append(index)
            noisy.append(table)
            continue
        kept = table if m.sampling is None else noise.thin(table, m.sampling.rate)
        noisy.append(with_noise(kept, m, noise))
    for its in groups.values():
        names, shapes = [measurements[index].names for index in its], [counts[index].shape for index in its]
        folded = _evened(blocks.fold([counts[index] for index in its], names))
        drawn = blocks.unfold(noise.joint(folded, measurements[its[0]].scale), shapes, names)
        for index, table in zip(its, drawn, strict=True):
            noisy[index] = table
    return noisy


def _evened(folded: Sequence[Counts]) -> list[Counts]:
    """Tables (blocks, cells) with the totals of the first: counts scaled up to many rows were rounded one by one."""
    totals, evened = folded[0].sum(axis=1), [table.copy() for table in folded]
    for table in evened:
        table[np.arange(len(table)), table.argmax(axis=1)] += totals - table.sum(axis=1)
    return evened
