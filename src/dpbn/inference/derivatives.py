"""∂P(targets | evidence)/∂Θ by every CPT cell in one backward pass (Eq. 6-7 of the paper).

Every cell is a variable of its own in the polynomial P(t, e) = Σ Π θ: the rest of its row stays as it is. The program
has one index more than the network has variables, which runs over the cells of the answer, and
    ∂P(t | e) = (∂P(t, e) - P(t | e) Σ_t ∂P(t, e)) / P(e).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpbn.elimination import cheapest_elimination
from dpbn.errors import QueryError
from dpbn.inference.contraction import Array, Scope
from dpbn.inference.elimination import impossible
from dpbn.inference.evidence import Findings
from dpbn.inference.model import Model
from dpbn.inference.plan import check_size
from dpbn.inference.program import Program


class Differentiator:
    """Derivatives of answers; programs are kept per (targets, observed variables)."""

    def __init__(self, model: Model, limit: int):
        self.model = model
        self.limit = limit
        self._program = lru_cache(64)(self._compile)

    def _compile(self, targets: Scope, hard: frozenset[int], soft: frozenset[int]) -> Program:
        sizes = self.model.sizes
        cells, index = math.prod(sizes[v] for v in targets), len(sizes)
        scopes = self.model.factors(range(index), hard, soft)
        scopes.insert(index, targets)
        elimination = cheapest_elimination(scopes, sizes, limit=self.limit)
        largest = max(elimination.largest, *(cpt.size for cpt in self.model.cpts))
        check_size(largest * cells, self.limit, "the largest factor of these derivatives")
        return Program([(*scope, index) for scope in scopes], elimination.order, (index,), [*sizes, cells])

    def by_cells(self, targets: Scope, findings: Findings) -> list[Array]:
        """For each node, the derivative of every cell of the answer by every cell of its CPT: axes of targets first."""
        model, program = self.model, self._program(targets, *findings.pattern)
        nodes, shape = range(len(model.sizes)), tuple(model.sizes[v] for v in targets)
        answer = np.eye(math.prod(shape)).reshape(*shape, -1)  # one cell of the answer at each place of the index
        plain = model.tables(nodes, model.factors(nodes, *findings.pattern), findings)
        tables = [np.broadcast_to(table[..., None], (*table.shape, answer.shape[-1])) for table in plain]
        tables.insert(len(nodes), answer)
        trace = program.forward(tables)
        joint, _ = program.value(trace)  # and its derivatives below, all divided by one factor
        total = joint.sum()
        if not total > 0:
            raise impossible(model, findings)
        found = []
        with np.errstate(over="ignore", invalid="ignore"):
            for node, gradient in zip(nodes, program.gradient(trace), strict=False):
                whole = np.zeros((len(joint), *model.cpts[node].shape))  # only cells of the observed states matter
                seen = tuple(findings.hard.get(v, slice(None)) for v in model.scopes[node])
                whole[(slice(None), *seen)] = np.moveaxis(gradient, -1, 0)
                whole = (whole - np.multiply.outer(joint / total, whole.sum(axis=0))) / total
                if not np.isfinite(whole).all():
                    name = model.vocabulary.nodes[node]
                    raise QueryError(f"derivatives must be numbers that a float can hold, got larger ones by {name!r}")
                found.append(whole.reshape(*shape, *model.cpts[node].shape))
        return found
