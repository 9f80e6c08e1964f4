"""Counting integer codes held in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema
from dpbn.measure import Names, Table


class CodeSource:
    """Columns of state codes, one array per variable, all of one length."""

    can_sample_rows = True

    def __init__(self, schema: Schema, codes: Mapping[str, NDArray[np.integer]]):
        self._schema, self._codes = schema, codes

    def counts(self, sets: Sequence[Names]) -> dict[Names, Table]:
        return {names: self._count(names, slice(None)) for names in sets}

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], NDArray[np.bool_]]) -> dict[Names, Table]:
        mask = keep(len(next(iter(self._codes.values()))))
        return {names: self._count(names, mask) for names in sets}

    def _count(self, names: Names, rows: slice | NDArray[np.bool_]) -> Table:
        shape = self._schema.shape(names)
        flat = np.ravel_multi_index([self._codes[name][rows].astype(np.int64) for name in names], shape)
        return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)
