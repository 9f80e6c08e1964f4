"""Counts of simulated records, for experiments: every method asks the same object, and no table is counted twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.measure import Names, Table


class SimulatedSource:
    """Columns of state codes, one array per variable, all of one length."""

    can_sample_rows = True

    def __init__(self, schema: Schema, codes: Mapping[str, NDArray[np.integer]]):
        self._schema, self._codes = schema, codes
        self._known: dict[Names, Table] = {}

    def counts(self, sets: Sequence[Names]) -> dict[Names, Table]:
        for names in sets:
            if names not in self._known:
                self._known[names] = self._count(names, slice(None))
        return {names: self._known[names] for names in sets}

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], NDArray[np.bool_]]) -> dict[Names, Table]:
        mask = keep(len(next(iter(self._codes.values()))))
        return {names: self._count(names, mask) for names in sets}

    def _count(self, names: Names, rows: slice | NDArray[np.bool_]) -> Table:
        shape = self._schema.shape(names)
        first = next(iter(self._codes.values()))[rows]
        flat = np.zeros(len(first), dtype=np.int64)
        for name, size in zip(names, shape, strict=True):
            flat *= size
            flat += self._codes[name][rows]
        table = np.bincount(flat, minlength=int(np.prod(shape, dtype=np.int64))).reshape(shape).astype(np.int64)
        table.setflags(write=False)
        return table
