"""Predictions for many rows: prune, keep the columns that matter, de-duplicate, contract with rows as an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import ImpossibleEvidenceError
from dpbn.graph import requisite
from dpbn.inference.columns import MISSING
from dpbn.inference.contraction import BATCH, Array, Scope
from dpbn.inference.model import Model
from dpbn.inference.plan import check_size, plan_elimination
from dpbn.inference.program import Program

CHUNK_CELLS = 400_000  # cells of the largest factor over a chunk of rows: stays in cache
KERNELS_KEPT = 512
PATTERNS = 48  # missingness patterns answered apart; the rare rest is answered together
LOOKUP_CELLS = 1 << 22

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One missingness pattern compiled: columns that index CPTs, columns that enter as likelihoods."""

    indexed: tuple[int, ...]
    masked: tuple[int, ...]
    nodes: tuple[int, ...]
    scopes: tuple[Scope, ...]
    order: tuple[int, ...]
    chunk: int
    programs: dict[int, Program] = field(default_factory=dict)

    def program(self, rows: int, target: int, sizes: Sequence[int]) -> tuple[Program, int]:
        """The program for so many rows at once, widths in powers of two up to the chunk."""
        width = min(self.chunk, 1 << max(rows - 1, 0).bit_length())
        if width not in self.programs:
            self.programs[width] = Program(self.scopes, self.order, (target, BATCH), [*sizes, width])
        return self.programs[width], width


class Predictor:
    """P(target | the other columns of each row); kernels are kept per pattern of observed columns."""

    def __init__(self, model: Model, limit: int):
        self.model = model
        self.limit = limit
        self._kernels: dict[tuple[int, frozenset[int], frozenset[int]], Kernel] = {}

    def predict(self, columns: dict[int, Codes], rows: int, target: int) -> tuple[Array, NDArray[np.bool_]]:
        """Rows × states, and which rows were possible (impossible rows are zero)."""
        answer = np.zeros((rows, self.model.sizes[target]))
        for chosen, everywhere, somewhere in self._groups(columns, rows, target):
            kernel = self._kernel(target, everywhere, somewhere)
            matter = [*kernel.indexed, *kernel.masked]
            codes = [columns[v] if chosen is None else columns[v][chosen] for v in matter]
            radix = [self.model.sizes[v] + (v in somewhere) for v in matter]
            shifted = [c + 1 if v in somewhere else c for v, c in zip(matter, codes, strict=True)]
            first, inverse = distinct_rows(shifted, radix, rows if chosen is None else len(chosen))
            unique = self._contract(kernel, [c[first] for c in codes], len(first), target)
            if chosen is None:
                answer = unique[inverse]
            else:
                answer[chosen] = unique[inverse]
        return answer, np.asarray(answer.any(axis=1))

    def _groups(
        self, columns: dict[int, Codes], rows: int, target: int
    ) -> list[tuple[NDArray[np.int64] | None, frozenset[int], frozenset[int]]]:
        """(rows, columns every one of them observes, columns only some observe), a group per pattern."""
        present = {v: c != MISSING for v, c in columns.items()}
        full = frozenset(v for v, p in present.items() if p.all())
        partial = [v for v, p in present.items() if v not in full and p.any()]
        if not partial:
            return [(None, full, frozenset())] if rows else []
        patterns = np.packbits(np.stack([present[v] for v in partial]), axis=0)
        first, inverse = distinct_rows(list(patterns.astype(np.int64)), [256] * len(patterns), rows)
        merged: dict[frozenset[int], int] = {}  # patterns that observe the same columns that matter are one
        ids = np.zeros(len(first), dtype=np.int64)
        for i, row in enumerate(first):
            if len(merged) > 50 * PATTERNS:  # too many to look at each: the likelihood kernel takes all
                return [(None, full, frozenset(partial))]
            observed = full | {v for v in partial if present[v][row]}
            ids[i] = merged.setdefault(self._matter(target, observed), len(merged))
        group = ids[inverse]
        counts = np.bincount(group, minlength=len(merged))
        found: list[tuple[NDArray[np.int64] | None, frozenset[int], frozenset[int]]] = []
        rare = set(np.argsort(-counts, kind="stable")[PATTERNS:].tolist())
        for observed, index in merged.items():
            if index not in rare:
                found.append((np.flatnonzero(group == index), observed, frozenset()))
        if rare:
            left = np.flatnonzero(np.isin(group, list(rare)))
            sets = [observed for observed, index in merged.items() if index in rare]
            common = frozenset.intersection(*sets)
            found.append((left, common, frozenset.union(*sets) - common))
        return found

    def _matter(self, target: int, observed: frozenset[int]) -> frozenset[int]:
        """The observed columns that the answer depends on."""
        nodes = requisite(self.model.parents, self.model.children, (target,), observed, frozenset())
        return frozenset(v for node in nodes for v in self.model.scopes[node]) & observed

    def _kernel(self, target: int, everywhere: frozenset[int], somewhere: frozenset[int]) -> Kernel:
        key = (target, everywhere, somewhere)
        if (known := self._kernels.get(key)) is not None:  # read once: another thread may clear it
            return known
        model = self.model
        nodes = sorted(requisite(model.parents, model.children, (target,), everywhere, somewhere))
        mentioned = {v for node in nodes for v in model.scopes[node]}
        indexed, masked = sorted(mentioned & everywhere), sorted(mentioned & somewhere)
        scopes: list[Scope] = []
        for node in nodes:
            scope = model.scopes[node]
            left = tuple(v for v in scope if v not in everywhere)
            scopes.append(left if len(left) == len(scope) else (*left, BATCH))
        scopes += [(v, BATCH) for v in masked]
        plain = [tuple(v for v in scope if v != BATCH) for scope in scopes]
        plan = plan_elimination(plain, model.sizes, (target,), limit=self.limit, relevant=nodes)
        trial = Program(scopes, plan.order, (target, BATCH), [*model.sizes, 256])
        check_size(trial.largest // 256, self.limit, "the largest factor of one row")
        chunk = max(1, min(8192, CHUNK_CELLS * 256 // max(trial.largest, 1)))
        kernel = Kernel(tuple(indexed), tuple(masked), tuple(nodes), tuple(scopes), plan.order, chunk)
        if len(self._kernels) >= KERNELS_KEPT:
            self._kernels.clear()
        self._kernels[key] = kernel
        return kernel

    def _contract(self, kernel: Kernel, codes: list[Codes], count: int, target: int) -> Array:
        """P(target | row) of `count` distinct rows; zero rows are impossible."""
        model = self.model
        at = dict(zip((*kernel.indexed, *kernel.masked), codes, strict=True))
        found = np.zeros((count, model.sizes[target]))
        program, width = kernel.program(count, target, model.sizes)
        for start in range(0, count, width):
            rows = np.minimum(np.arange(start, start + width), count - 1)  # the last chunk repeats its last row
            tables: list[Array] = []
            for node, scope in zip(kernel.nodes, kernel.scopes, strict=False):
                cpt = model.cpts[node]
                if BATCH in scope:
                    cpt = _gather(cpt, model.scopes[node], scope[:-1], {v: c[rows] for v, c in at.items()})
                tables.append(cpt)
            for v in kernel.masked:
                observed = at[v][rows]
                likelihood = np.arange(model.sizes[v])[:, None] == observed
                tables.append(np.where(observed == MISSING, 1.0, likelihood))
            value, _ = program.run(tables)
            stop = min(start + width, count)
            found[start:stop] = value.T[: stop - start]
        total = found.sum(axis=1, keepdims=True)
        return np.divide(found, total, out=np.zeros_like(found), where=total > 0)


def _gather(cpt: Array, scope: Scope, left: Scope, codes: dict[int, Codes]) -> Array:
    """The CPT at each row's observed states: axes `left`, then rows."""
    observed = [v for v in scope if v not in left]
    axes = tuple(scope.index(v) for v in (*left, *observed))
    moved = cpt.transpose(axes)
    shape = moved.shape[: len(left)]
    index = codes[observed[0]]
    for v in observed[1:]:
        index = index * cpt.shape[scope.index(v)] + codes[v]
    return np.take(moved.reshape(*shape, -1), index, axis=-1)


def distinct_rows(columns: Sequence[Codes], radix: Sequence[int], rows: int) -> tuple[Codes, Codes]:
    """The first row of each distinct combination, and for every row which combination it has."""
    key = np.zeros(rows, dtype=np.int64)
    size = 1
    for column, base in zip(columns, radix, strict=True):
        if size * base > 1 << 62:
            _, key = np.unique(key, return_inverse=True)
            size = rows
        key = key * base + column
        size *= base
    if size <= max(LOOKUP_CELLS // 16, rows) and size <= LOOKUP_CELLS:  # a table of all combinations beats sorting
        first_of = np.full(size, -1, dtype=np.int64)
        first_of[key[::-1]] = np.arange(rows - 1, -1, -1)
        seen = np.flatnonzero(first_of >= 0)
        rank = np.empty(size, dtype=np.int64)
        rank[seen] = np.arange(len(seen))
        return first_of[seen], rank[key]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse


def impossible_rows(possible: NDArray[np.bool_]) -> ImpossibleEvidenceError:
    """The error that names the first impossible row and how many there are."""
    wrong = np.flatnonzero(~possible)
    return ImpossibleEvidenceError(
        f"every row must have positive probability, got {len(wrong)} impossible, the first is row {int(wrong[0])}, "
        "counted from 0"
    )
