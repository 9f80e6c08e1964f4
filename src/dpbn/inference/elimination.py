"""Variable elimination, the paper's strategy: prune, order, multiply and sum; plans are kept per question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpbn.errors import ImpossibleEvidenceError
from dpbn.graph import ancestors, requisite
from dpbn.inference.contraction import Array, Scope
from dpbn.inference.evidence import Findings
from dpbn.inference.model import Model
from dpbn.inference.plan import Plan, plan_elimination
from dpbn.inference.program import Program

PLANS_KEPT = 512


class EliminationEngine:
    """Answers by a program compiled per (targets, observed variables)."""

    def __init__(self, model: Model, limit: int):
        self.model = model
        self.limit = limit
        self._plan = lru_cache(PLANS_KEPT)(self._make_plan)
        self._possible: dict[object, bool] = {}

    def plan(self, targets: Scope, findings: Findings, kind: str = "conditional") -> Plan:
        """kind: 'conditional' prunes what is d-separated, 'joint' only barren nodes, 'all' nothing."""
        return self._plan(targets, *findings.pattern, kind)

    def _make_plan(self, targets: Scope, hard: frozenset[int], soft: frozenset[int], kind: str) -> Plan:
        model = self.model
        if kind == "conditional":
            relevant = sorted(requisite(model.parents, model.children, targets, hard, soft))
        elif kind == "joint":
            relevant = sorted(ancestors(model.parents, {*targets, *hard, *soft}))
        else:
            relevant = list(range(len(model.scopes)))
        scopes = model.factors(relevant, hard, soft)
        return plan_elimination(scopes, model.sizes, targets, limit=self.limit, relevant=relevant)

    def _program(self, targets: Scope, findings: Findings, kind: str) -> tuple[Program, list[Array]]:
        """The program of a plan and its inputs."""
        plan = self.plan(targets, findings, kind)
        assert plan.program is not None
        return plan.program, self.model.tables(plan.relevant, plan.program.inputs, findings)

    def query(self, targets: Scope, findings: Findings) -> Array:
        """P(targets | evidence)."""
        key = self._key(findings)
        possible = True if key is None else self._possible.get(key)  # read once: another thread may clear it
        if possible is False:
            raise impossible(self.model, findings)
        # pruning would hide an impossible finding: ask jointly once
        program, tables = self._program(targets, findings, "joint" if possible is None else "conditional")
        value, _ = program.run(tables)
        total = np.add.reduce(value, axis=None)
        if possible is None:
            if len(self._possible) >= PLANS_KEPT:
                self._possible.clear()
            self._possible[key] = bool(total > 0)
        if not total > 0:  # a number that is positive in the file and zero in memory
            raise impossible(self.model, findings)
        return value / total

    def log_probability(self, findings: Findings) -> float:
        """ln P(evidence); -inf if it is impossible."""
        program, tables = self._program((), findings, "joint")
        value, scale = program.run(tables)
        return float(np.log(value)) + float(scale) if value > 0 else -np.inf

    def _key(self, findings: Findings) -> object:
        """What to remember the possibility of these findings by; None if they are certainly possible."""
        model = self.model
        if all(likelihood.all() for likelihood in findings.soft.values()):
            observed = {*findings.hard, *findings.soft} if findings.hard and model.zeros else set()
            above = ancestors(model.parents, observed)
            if model.zeros.isdisjoint(above):
                return None
        return tuple(sorted(findings.hard.items())), tuple((v, s.tobytes()) for v, s in sorted(findings.soft.items()))

    def posteriors(self, findings: Findings) -> list[Array]:
        """P(node | evidence) of every node by one backward pass: θ·∂P(e)/∂θ is the family's joint with e."""
        program, tables = self._program((), findings, "all")
        trace = program.forward(tables)
        if not program.value(trace)[0] > 0:
            raise impossible(self.model, findings)
        families = program.marginals(trace)
        posteriors = []
        for node, scope in enumerate(program.inputs[: len(self.model.scopes)]):
            if node in findings.hard:
                posterior = np.zeros(self.model.sizes[node])
                posterior[findings.hard[node]] = 1.0
            else:
                marginal = families[node].sum(axis=tuple(range(len(scope) - 1)))
                posterior = marginal / np.add.reduce(marginal)
            posteriors.append(posterior)
        return posteriors


def impossible(model: Model, findings: Findings) -> ImpossibleEvidenceError:
    """The error that names the findings."""
    names: Sequence[str] = model.vocabulary.nodes
    told = {names[v]: model.vocabulary.states[v][code] for v, code in findings.hard.items()}
    told |= {names[v]: s.tolist() for v, s in findings.soft.items()}
    return ImpossibleEvidenceError(f"evidence must have positive probability, got probability 0 for {told}")
