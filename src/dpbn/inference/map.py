"""Most probable explanations: max-product elimination with traceback (MPE), after summing the rest (MAP)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpbn.elimination import cheapest_elimination
from dpbn.graph import ancestors
from dpbn.inference.buckets import Buckets
from dpbn.inference.contraction import Array, Scope
from dpbn.inference.elimination import impossible
from dpbn.inference.evidence import Findings
from dpbn.inference.model import Model
from dpbn.inference.plan import check_size
from dpbn.inference.program import TINY, Program

LOG_TINY = math.log(TINY)
SUBJECT = "the largest factor of this maximisation"


def maximise(buckets: Buckets, tables: Sequence[Array], *, logs: bool) -> tuple[dict[int, int], float]:
    """The best code of every variable, and the log of the maximum (-inf if it is zero); of tables or their logs."""
    sweep = buckets.log_sweep if logs else buckets.sweep
    products, log = sweep(tables, lambda product: np.max(product, axis=-1))
    found: dict[int, int] = {}
    if log == -np.inf:
        return found, log
    for bucket, product in zip(reversed(buckets.buckets), reversed(products), strict=True):
        found[bucket.variable] = int(np.argmax(product[tuple(found[v] for v in bucket.rest)]))
    return found, log


class MaximumEngine:
    """MPE and marginal MAP; plans are kept per (targets, observed variables)."""

    def __init__(self, model: Model, limit: int):
        self.model = model
        self.limit = limit
        self._plan = lru_cache(256)(self._make_plan)

    def map(self, targets: Scope, findings: Findings) -> tuple[dict[int, int], float]:
        """The most probable codes of `targets` (all else summed) and ln P(those codes, evidence)."""
        relevant, factors, parts, buckets = self._plan(targets, *findings.pattern)
        tables = self.model.tables(relevant, factors, findings)
        if parts is None:
            found, best = maximise(buckets, tables, logs=False)
        else:
            chosen = [[tables[slot] for slot in slots] for _, slots in parts]
            summed = [part.plain(some) for (part, _), some in zip(parts, chosen, strict=True)]
            found, best = maximise(buckets, summed, logs=False)
            if best < LOG_TINY:  # a better one may have underflowed
                summed = [part.logs(some) for (part, _), some in zip(parts, chosen, strict=True)]
                found, best = maximise(buckets, summed, logs=True)
        if best == -np.inf:
            raise impossible(self.model, findings)
        return found, best

    def _make_plan(
        self, targets: Scope, hard: frozenset[int], soft: frozenset[int]
    ) -> tuple[list[int], list[Scope], list[tuple[Program, list[int]]] | None, Buckets]:
        model = self.model
        relevant = sorted(ancestors(model.parents, {*targets, *hard, *soft}))
        scopes = factors = model.factors(relevant, hard, soft)
        parts = None
        if {v for scope in scopes for v in scope} - set(targets):
            parts, scopes = self._sum_parts(scopes, set(targets))
        return relevant, factors, parts, Buckets(scopes, self._order(scopes, ()), model.sizes)

    def _order(self, scopes: Sequence[Scope], keep: Scope) -> tuple[int, ...]:
        """In which order the variables of `scopes` but `keep` go."""
        elimination = cheapest_elimination(scopes, self.model.sizes, keep=keep, limit=self.limit)
        check_size(elimination.largest, self.limit, SUBJECT)
        return elimination.order

    def _sum_parts(self, scopes: list[Scope], targets: set[int]) -> tuple[list[tuple[Program, list[int]]], list[Scope]]:
        """Sum out all but the targets, one program per part that its summed variables hold together."""
        group: dict[int, int] = {}

        def root(v: int) -> int:
            while group.setdefault(v, v) != v:
                v = group[v]
            return v

        for scope in scopes:
            hidden = [v for v in scope if v not in targets]
            for v in hidden[1:]:
                group[root(v)] = root(hidden[0])
        slots: dict[int, list[int]] = {}
        for slot, scope in enumerate(scopes):
            hidden = [v for v in scope if v not in targets]
            slots.setdefault(root(hidden[0]) if hidden else -1 - slot, []).append(slot)
        parts: list[tuple[Program, list[int]]] = []
        made: list[Scope] = []
        for its in slots.values():
            mine = [scopes[slot] for slot in its]
            output = tuple(sorted({v for scope in mine for v in scope} & targets))
            order = self._order(mine, output)
            check_size(math.prod(self.model.sizes[v] for v in output), self.limit, SUBJECT)
            parts.append((Program(mine, order, output, self.model.sizes), its))
            made.append(output)
        return parts, made
