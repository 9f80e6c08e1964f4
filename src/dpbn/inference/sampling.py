"""Rows from P(all nodes | evidence): exact, by elimination forward and sampling backward.

Only ancestors of what was found are eliminated. The others are drawn after them, from their CPTs, parents first.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpbn.elimination import cheapest_elimination
from dpbn.graph import ancestors
from dpbn.inference.buckets import Buckets
from dpbn.inference.contraction import Scope
from dpbn.inference.elimination import impossible
from dpbn.inference.evidence import Findings
from dpbn.inference.model import Model
from dpbn.inference.plan import check_size
from dpbn.sampling import check_draw


class Sampler:
    """Draws rows of codes; the elimination is planned once per set of observed variables."""

    def __init__(self, model: Model, limit: int):
        self.model = model
        self.limit = limit
        self._order = [model.vocabulary.positions[name] for name in model.structure.dag.order]
        self._plan = lru_cache(64)(self._make_plan)

    def _make_plan(
        self, hard: frozenset[int], soft: frozenset[int]
    ) -> tuple[list[int], list[Scope], list[int], Buckets]:
        sizes = self.model.sizes
        above = ancestors(self.model.parents, {*hard, *soft})
        relevant, barren = sorted(above), [v for v in self._order if v not in above]
        factors = self.model.factors(relevant, hard, soft)
        elimination = cheapest_elimination(factors, sizes, limit=self.limit)
        check_size(elimination.largest, self.limit, "the largest factor of this sampler")
        return relevant, factors, barren, Buckets(factors, elimination.order, sizes)

    def codes(self, rows: int, findings: Findings, seed: int | None) -> list[NDArray[np.int64]]:
        """One array of codes per node, in node order."""
        model = self.model
        check_draw(rows, len(model.sizes), seed)
        relevant, factors, barren, buckets = self._plan(*findings.pattern)
        tables = model.tables(relevant, factors, findings)
        products, log = buckets.sweep(tables, lambda product: np.add.reduce(product, axis=-1))
        if log == -np.inf:
            raise impossible(model, findings)
        order = zip(reversed(buckets.buckets), reversed(products), strict=True)
        draws = [(bucket.variable, bucket.rest, product) for bucket, product in order]
        draws += [(v, model.parents[v], model.cpts[v]) for v in barren]
        generator = np.random.default_rng(seed)
        drawn = {v: np.full(rows, code, dtype=np.int64) for v, code in findings.hard.items()}
        for variable, rest, product in draws:
            states = product.shape[-1]
            cumulative = np.cumsum(product.reshape(-1, states), axis=1)
            row = np.zeros(rows, dtype=np.int64)
            for v, size in zip(rest, product.shape[:-1], strict=True):
                row *= size
                row += drawn[v]
            threshold = generator.random(rows) * cumulative[row, -1]
            code = np.zeros(rows, dtype=np.int64)
            for column in range(states - 1):
                code += threshold >= cumulative[row, column]
            drawn[variable] = code
        return [drawn[v] for v in range(len(model.sizes))]
