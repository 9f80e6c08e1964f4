"""∂P/∂Θ of a question by every parameter, in one backward pass (Eq. 6-7 of the paper, and interval widths).

Every CPT cell counts as its own variable of the polynomial P(t, e) = Σ Π θ: rows are not renormalised when one
cell moves, and no node is pruned. Moves that keep each row's sum are the ones with a meaning; for those the
derivatives of barren nodes cancel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import QueryError
from dpbn.inference.elimination import PLANS_KEPT, EliminationEngine, impossible
from dpbn.inference.evidence import Evidence, Findings
from dpbn.inference.model import Model, listed, model_of
from dpbn.inference.plan import CELL_LIMIT
from dpbn.inference.program import Program


@dataclass(frozen=True, eq=False)
class Derivatives:
    """`values` has one axis per target; `by[node]` has those axes first, then the axes of the node's CPT."""

    variables: tuple[str, ...]
    values: NDArray[np.float64]
    by: Mapping[str, NDArray[np.float64]]


def joint_derivatives(
    source: object, targets: str | Iterable[str], evidence: Evidence | None = None, *, limit: int = CELL_LIMIT
) -> Derivatives:
    """P(targets, evidence) and its derivatives by every CPT cell; no targets: of P(evidence)."""
    return Differentiator(source, limit=limit).joint(targets, evidence)


def query_derivatives(
    source: object, targets: str | Iterable[str], evidence: Evidence | None = None, *, limit: int = CELL_LIMIT
) -> Derivatives:
    """P(targets | evidence) and its derivatives by every CPT cell."""
    return Differentiator(source, limit=limit).query(targets, evidence)


class Differentiator:
    """Compiles a network once; plans are kept per (targets, observed variables)."""

    def __init__(self, source: object, *, limit: int = CELL_LIMIT):
        self._model: Model = model_of(source)
        self._engine = EliminationEngine(self._model, limit)
        self._programs: dict[object, Program] = {}

    def joint(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> Derivatives:
        """∂P(targets, evidence)/∂Θ."""
        with np.errstate(over="ignore", invalid="ignore"):
            values, gradients, names, log = self._backward(targets, evidence, divided=False)
            scale = np.exp(log)
            found = {node: table * scale for node, table in gradients.items()}
        return _finite(Derivatives(names, values * scale, found))

    def query(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> Derivatives:
        """∂P(targets | evidence)/∂Θ = (∂P(t, e) − P(t | e)·∂P(e)) / P(e), with P(e) = Σ_t P(t, e)."""
        with np.errstate(over="ignore"):
            values, gradients, names, _ = self._backward(targets, evidence, divided=True)
        total = values.sum()
        if not total > 0:
            raise impossible(self._model, self._model.vocabulary.findings(evidence))
        answer = values / total
        axes = tuple(range(values.ndim))
        found = {}
        with np.errstate(over="ignore", invalid="ignore"):
            for node, table in gradients.items():
                whole = table.sum(axis=axes)
                weight = answer.reshape(answer.shape + (1,) * whole.ndim)
                found[node] = (table - weight * whole) / total
        return _finite(Derivatives(names, answer, found))

    def _backward(
        self, targets: str | Iterable[str], evidence: Evidence | None, *, divided: bool
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]], tuple[str, ...], float]:
        """P(t, e), its derivatives, target names, and the log of the factor that likelihoods were divided by.

        The first two may be divided by a factor of their own, the same for both: small numbers then stay apart.
        """
        model, words = self._model, self._model.vocabulary
        findings = words.findings(evidence)
        asked = listed(targets)
        variables = words.targets(asked, findings.hard) if asked else ()
        if both := [words.nodes[v] for v in variables if v in findings.soft]:
            raise QueryError(f"targets must not carry soft evidence when derivatives are asked, got {both}")
        plan = self._engine.plan(variables, findings, "all")
        assert plan.program is not None
        tables = self._engine.tables(plan, findings)
        # one extra index runs over the cells of the answer: the seed is the identity
        sizes = [model.sizes[v] for v in variables]
        cells = int(np.prod(sizes, dtype=np.int64))
        extra = len(model.sizes)
        key = (variables, findings.pattern)
        program = self._programs.get(key)
        if program is None:
            program = Program(plan.program.inputs, plan.order, variables, [*model.sizes, cells])
            if len(self._programs) >= PLANS_KEPT:
                self._programs.clear()
            self._programs[key] = program
        trace = program.forward(tables)
        seed = np.eye(cells).reshape(cells, *sizes)
        gradients = program.gradient(trace, seed, (extra, *variables), divided=divided)
        found = {}
        for node, name in enumerate(words.nodes):
            found[name] = self._scatter(node, findings, gradients[node], cells).reshape(*sizes, *model.cpts[node].shape)
        names = tuple(words.nodes[v] for v in variables)
        value, scale = program.value(trace)
        return value if divided else value * np.exp(scale), found, names, findings.log_scale

    def _scatter(self, node: int, findings: Findings, gradient: NDArray[np.float64], cells: int) -> NDArray[np.float64]:
        """Derivatives of the whole CPT: zero outside the observed states."""
        cpt, scope = self._model.cpts[node], self._model.scopes[node]
        whole = np.zeros((cells, *cpt.shape))
        whole[(slice(None), *(findings.hard.get(v, slice(None)) for v in scope))] = gradient
        return whole


def _finite(found: Derivatives) -> Derivatives:
    for node, table in found.by.items():
        if not np.isfinite(table).all():
            raise QueryError(f"derivatives must be numbers that a float can hold, got larger ones by {node!r}")
    return found
