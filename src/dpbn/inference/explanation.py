"""MPE on the junction tree: max-product messages computed once, updated only above the evidence.

ψ_i is the clique's potential times the max-messages of its children; a message upward is the maximum of ψ_i over
what the parent does not share. Evidence changes ψ on the paths from its cliques to the root; there a message is
multiplied in as (new)/(old), with 0/0 = 0: evidence never makes a zero positive. Where a product underflows,
somebody else must answer.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from dpbn.inference.calibrated import clique_potentials
from dpbn.inference.contraction import Array
from dpbn.inference.evidence import Findings
from dpbn.inference.junction_tree import JunctionTree
from dpbn.inference.model import Model
from dpbn.inference.projection import Projection


class Explanation:
    """Most probable codes of all nodes given findings."""

    def __init__(self, model: Model, tree: JunctionTree, down: list[Projection], nodes: list[Projection]):
        self.model, self.tree, self.down, self.nodes = model, tree, down, nodes
        self.shapes = [tuple(model.sizes[v] for v in clique) for clique in tree.cliques]
        self._maximised: list[tuple[int, ...]] = []
        self._choices: list[tuple[tuple[int | None, ...], list[tuple[int, int]]]] = []
        for clique, separator in zip(tree.cliques, tree.separators, strict=True):
            shared = set(separator)
            own = [v for v in clique if v not in shared]
            self._maximised.append(tuple(i for i, v in enumerate(clique) if v not in shared))
            self._choices.append(
                (tuple(v if v in shared else None for v in clique), [(v, model.sizes[v]) for v in reversed(own)])
            )
        try:
            with np.errstate(under="raise"):
                self._prepare()
            self._faint = False
        except FloatingPointError:
            self._faint = True

    def _prepare(self) -> None:
        tree, down = self.tree, self.down
        tables = clique_potentials(self.model, tree)
        messages: list[Array] = [np.ones(1)] * len(tables)
        self.log = 0.0
        for i in range(len(tables) - 1, 0, -1):
            message = self._maximum(i, tables[i])
            peak = float(np.max(message))
            self.log += math.log(peak)
            tables[i] = tables[i] / peak
            messages[i] = message / peak
            tables[tree.parents[i]] = down[i].multiply(tables[tree.parents[i]], messages[i])
        self.tables = tables
        self.messages = [np.where(message > 0, message, 1.0) for message in messages]  # safe to divide by

    def _maximum(self, clique: int, table: Array) -> Array:
        axes = self._maximised[clique]
        return np.maximum.reduce(table.reshape(self.shapes[clique]), axis=axes).reshape(-1) if axes else table

    def mpe(self, findings: Findings) -> tuple[dict[int, int], float] | None:
        """The best code of every node (observed ones included), and the log of its weight; -inf if impossible.

        None where a product underflows: a cell lost could have been the best one.
        """
        if self._faint:
            return None
        try:
            with np.errstate(under="raise"):
                return self._best(findings)
        except FloatingPointError:
            return None

    def _best(self, findings: Findings) -> tuple[dict[int, int], float]:
        tree = self.tree
        changed: dict[int, Array] = {}
        for v, likelihood in findings.likelihoods(self.model.sizes).items():
            home = tree.home[v]
            changed[home] = self.nodes[v].multiply(changed.get(home, self.tables[home]), likelihood)
        log = self.log
        pending = [-i for i in changed if i]
        heapq.heapify(pending)
        while pending:
            i = -heapq.heappop(pending)
            message = self._maximum(i, changed[i])
            peak = float(np.maximum.reduce(message))
            if not peak > 0:
                return {}, -math.inf
            log += math.log(peak)
            parent = tree.parents[i]
            if parent and parent not in changed:
                heapq.heappush(pending, -parent)
            ratio = message / (peak * self.messages[i])
            changed[parent] = self.down[i].multiply(changed.get(parent, self.tables[parent]), ratio)
        best = float(np.maximum.reduce(changed.get(0, self.tables[0])))
        if not best > 0:
            return {}, -math.inf
        return self._trace(changed), log + math.log(best)

    def _trace(self, changed: dict[int, Array]) -> dict[int, int]:
        """From the root downward, the best codes of what each clique adds given what is already chosen."""
        found: dict[int, int] = {}
        for i, (fixed, own) in enumerate(self._choices):
            if not own:
                continue
            table = changed.get(i, self.tables[i]).reshape(self.shapes[i])
            best = int(table[tuple(slice(None) if v is None else found[v] for v in fixed)].argmax())
            for v, size in own:
                best, found[v] = divmod(best, size)
        return found
