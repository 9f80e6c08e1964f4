"""Simulated releases: the same tables, counted on rows drawn from a known network, with the same noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.measure import Measurement, finest, with_noise
from dpbn.network import BayesianNetwork
from dpbn.privacy import blocks
from dpbn.privacy.noise import InsecureNoise
from dpbn.sampling import sample_codes

Counts = NDArray[np.int64]


def estimated_rows(measurements: Sequence[Measurement]) -> float:
    """The number of rows, from the noisy totals of all tables, weighted by inverse variance; at least 1."""
    shown = finest(measurements)
    whole = [m for m in shown if m.sampling is None] or shown
    # tables with joint noise have one total
    used = list({m.together.group if m.together else index: m for index, m in enumerate(whole)}.values())
    weights = np.array([1.0 / max(m.summed_variance(()), 1e-12) for m in used])
    totals = np.array([float(m.values.sum()) / float(m.sampling.rate if m.sampling else 1) for m in used])
    return max(1.0, float(np.sum(weights * totals) / np.sum(weights)))


def count_codes(network: BayesianNetwork, codes: dict[str, NDArray[np.integer]], names: tuple[str, ...]) -> Counts:
    """Contingency table of synthetic codes over `names`."""
    shape = network.structure.schema.shape(names)
    flat = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
    for name, size in zip(names, shape, strict=True):
        flat = flat * size + codes[name]
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def simulated_counts(network: BayesianNetwork, rows: int, tables: Sequence[tuple[str, ...]], seed: int) -> list[Counts]:
    """Counts over each of `tables` of `rows` synthetic records."""
    codes = sample_codes(network, rows, seed)
    counted: dict[tuple[str, ...], Counts] = {}
    for names in tables:
        if names not in counted:
            counted[names] = count_codes(network, codes, names)
    return [counted[names] for names in tables]


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


class SyntheticSource:
    """Synthetic records as a CountSource, so that forecasts run the real learners on them."""

    can_sample_rows = True

    def __init__(self, network: BayesianNetwork, rows: int, seed: int):
        self._network, self._rows = network, rows
        self._codes = sample_codes(network, rows, seed)

    def counts(self, sets: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Counts]:
        return {names: count_codes(self._network, self._codes, names) for names in sets}

    def sampled_counts(
        self, sets: Sequence[tuple[str, ...]], keep: Callable[[int], NDArray[np.bool_]]
    ) -> dict[tuple[str, ...], Counts]:
        mask = keep(self._rows)
        kept = {name: codes[mask] for name, codes in self._codes.items()}
        return {names: count_codes(self._network, kept, names) for names in sets}
