"""The same question to many networks at once: one structure, a batch of CPT sets, the batch as an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import ImpossibleEvidenceError, StructureError
from dpbn.graph import ancestors
from dpbn.inference.contraction import BATCH, Array, Scope
from dpbn.inference.evidence import Evidence, Findings
from dpbn.inference.model import Model
from dpbn.inference.plan import CELL_LIMIT, Plan, plan_elimination
from dpbn.inference.program import Program
from dpbn.network import ROW_SUM_TOLERANCE, Structure

CHUNK_CELLS = 300_000  # cells of the largest factor over a chunk of networks: stays in cache


class BatchInference:
    """Hundreds of networks over one structure: answers have the batch as their first axis.

    `cpts[node]` has shape (batch, *CPT shape).
    """

    def __init__(self, structure: Structure, cpts: Mapping[str, Any]):
        wrong = sorted(set(cpts) ^ set(structure.nodes))
        if wrong:
            raise StructureError(
                f"CPTs must be given for exactly the nodes of the structure, got a mismatch at {wrong}"
            )
        self._model = Model(structure)
        self._words = self._model.vocabulary
        self._tables: list[Array] = []  # batch last: inner loops run over networks
        self.batch = 0
        for node in structure.nodes:
            table = np.asarray(cpts[node], dtype=np.float64)
            shape = structure.shape(node)
            if table.shape[1:] != shape or self.batch not in (0, len(table)):
                wanted = (self.batch or "batch", *shape)
                raise StructureError(f"CPTs of {node!r} must have shape {wanted}, got {table.shape}")
            self.batch = len(table)
            unfit = table[~(np.isfinite(table) & (table >= 0))]
            if unfit.size:
                raise StructureError(f"CPTs of {node!r} must hold finite probabilities >= 0, got {float(unfit[0])!r}")
            total = table.sum(axis=-1, keepdims=True)
            if np.any(np.abs(total - 1) > ROW_SUM_TOLERANCE):
                raise StructureError(f"rows of the CPTs of {node!r} must sum to 1, got {float(total.flat[0])!r}")
            self._tables.append(np.ascontiguousarray(np.moveaxis(table / total, 0, -1)))
        self._programs = lru_cache(256)(self._compile)

    def query(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> NDArray[np.float64]:
        """P(targets | evidence) of every network: axes (batch, *targets)."""
        variables, findings = self._words.question(targets, evidence)
        plan, program, chunk = self._programs(variables, *findings.pattern, "joint")
        table = np.zeros((*(self._model.sizes[v] for v in variables), self.batch))
        for start in range(0, self.batch, chunk):
            value, _ = program.run(self._inputs(plan, findings, self._networks(start, chunk)))
            keep = min(chunk, self.batch - start)
            table[..., start : start + keep] = value[..., :keep]
        total = table.sum(axis=tuple(range(table.ndim - 1)))
        self._check(total)
        return np.ascontiguousarray(np.moveaxis(table / total, -1, 0))

    def posteriors(self, evidence: Evidence | None = None) -> dict[str, NDArray[np.float64]]:
        """P(node | evidence) of every node in every network: {node: (batch, states)}."""
        findings = self._words.findings(evidence)
        plan, program, chunk = self._programs((), *findings.pattern, "all")
        sizes = self._model.sizes
        found = [np.zeros((sizes[v], self.batch)) for v in range(len(sizes))]
        for start in range(0, self.batch, chunk):
            trace = program.forward(self._inputs(plan, findings, self._networks(start, chunk)))
            keep = min(chunk, self.batch - start)
            self._check(program.value(trace)[0][:keep], start)
            families = program.marginals(trace)
            for v, family in enumerate(families[: len(sizes)]):
                if v in findings.hard:
                    continue
                marginal = family.sum(axis=tuple(range(family.ndim - 2)))
                found[v][:, start : start + keep] = (marginal / marginal.sum(axis=0))[:, :keep]
        for v, code in findings.hard.items():
            found[v][code] = 1.0
        return {name: np.ascontiguousarray(found[v].T) for v, name in enumerate(self._words.nodes)}

    def _compile(
        self, targets: Scope, hard: frozenset[int], soft: frozenset[int], kind: str
    ) -> tuple[Plan, Program, int]:
        model = self._model
        if kind == "all":
            relevant = list(range(len(model.sizes)))
        else:
            relevant = sorted(ancestors(model.parents, {*targets, *hard, *soft}))
        factors = model.factors(relevant, hard, soft)
        plan = plan_elimination(factors, model.sizes, targets, limit=CELL_LIMIT, relevant=relevant)
        scopes = [*((*scope, BATCH) for scope in factors[: len(relevant)]), *factors[len(relevant) :]]
        chunk = max(1, min(self.batch, CHUNK_CELLS // max(plan.largest, 1)))
        program = Program(scopes, plan.order, (*targets, BATCH), [*model.sizes, chunk])
        return plan, program, chunk

    def _networks(self, start: int, width: int) -> slice | NDArray[np.int64]:
        """A chunk of networks; the last one repeats its last network to keep its width."""
        if start + width <= self.batch:
            return slice(start, start + width)
        return np.minimum(np.arange(start, start + width), self.batch - 1)

    def _inputs(self, plan: Plan, findings: Findings, where: slice | NDArray[np.int64]) -> list[Array]:
        tables: list[Array] = []
        for node in plan.relevant:
            index = tuple(findings.hard.get(v, slice(None)) for v in self._model.scopes[node])
            tables.append(self._tables[node][(*index, slice(None))][..., where])
        return tables + [findings.soft[v] for v in sorted(findings.soft)]

    def _check(self, totals: Array, start: int = 0) -> None:
        wrong = np.flatnonzero(~(totals > 0))
        if wrong.size:
            raise ImpossibleEvidenceError(
                f"evidence must have positive probability in every network, got 0 in network {start + int(wrong[0])}"
            )
