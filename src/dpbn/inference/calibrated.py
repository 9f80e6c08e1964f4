"""A junction tree calibrated once without evidence; each question only updates what its evidence changes.

Symbols: β_i is the table P(C_i) of clique i, μ the table P(S) of a separator. Evidence multiplies the β of
its home clique. A message is (new μ)/(old μ), with 0/0 = 0; only cliques between findings (and to the target)
exchange messages. Behind them hang subtrees without evidence: their nodes' posteriors are (new μ)·P(X | S),
one vector times a matrix prepared at compile time (`Shadows`).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpbn.elimination import cheapest_elimination
from dpbn.inference.conditional import FEW, Conditionals
from dpbn.inference.contraction import Array, Scope, arrange
from dpbn.inference.elimination import EliminationEngine, impossible
from dpbn.inference.evidence import Findings
from dpbn.inference.junction_tree import JunctionTree, junction_tree
from dpbn.inference.model import Model
from dpbn.inference.plan import STEP_CELLS, Plan, check_size
from dpbn.inference.program import TINY
from dpbn.inference.projection import Projection
from dpbn.inference.relations import Relations, only
from dpbn.inference.shadows import Shadows

FLOOR = float(np.finfo(np.float64).tiny)
PLACES_KEPT = 512
TOTAL_FACTOR = 10  # all cliques together may hold this many times the limit of one


@dataclass(slots=True)
class Update:
    """Tables that evidence changed: cliques, the messages sent upward, where all met, and the log scale."""

    tables: dict[int, Array]
    sent: dict[int, Array]
    meeting: int
    log_scale: float


def plan_tree(model: Model, limit: int) -> tuple[Plan, JunctionTree]:
    """The junction tree of the whole network, refused before any table is allocated if it is too large."""
    elimination = cheapest_elimination(model.scopes, model.sizes, limit=limit)
    check_size(elimination.largest, limit, "the largest clique of the junction tree")
    tree = junction_tree(elimination, model.sizes)
    check_size(max(tree.cells), max(limit, 64), "the largest clique of the junction tree")
    check_size(sum(tree.cells), TOTAL_FACTOR * limit, "the junction tree")
    plan = Plan("junction-tree", tree.width, sum(tree.cells), max(tree.cells), len(model.scopes), elimination.heuristic)
    return plan, tree


def clique_potentials(model: Model, tree: JunctionTree) -> list[Array]:
    """The product of the CPTs assigned to each clique, flat."""
    tables: list[Array] = [np.ones(tuple(model.sizes[v] for v in clique)) for clique in tree.cliques]
    for cpt, scope in zip(model.cpts, model.scopes, strict=True):
        mask = sum(1 << v for v in scope)
        # the family is complete in the moral graph, so some clique holds it; the child's home is tried first
        clique = tree.home[scope[-1]]
        if tree.masks[clique] & mask != mask:
            found = tree.holding(mask)
            assert found is not None
            clique = found
        wanted = _within(tree.cliques[clique], scope)
        view = arrange(cpt, scope, wanted, model.sizes)
        projection = Projection(tree.cliques[clique], wanted, model.sizes)
        tables[clique] = projection.multiply(tables[clique].reshape(-1), np.ascontiguousarray(view).reshape(-1))
    return [table.reshape(-1) for table in tables]


class CalibratedTree:
    """P(C) of every clique and P(S) of every separator, and the updates that answer questions."""

    def __init__(self, model: Model, plan: Plan, tree: JunctionTree, faint: EliminationEngine):
        self.model, self.plan, self.tree = model, plan, tree
        self._faint = faint  # answers where numbers are too small for the tree
        sizes = model.sizes
        count = len(tree.cliques)
        self.up = [Projection(tree.cliques[i], tree.separators[i], sizes) for i in range(count)]
        self.down = [Projection(tree.cliques[max(tree.parents[i], 0)], tree.separators[i], sizes) for i in range(count)]
        self.nodes = [Projection(tree.cliques[tree.home[v]], (v,), sizes) for v in range(len(sizes))]
        try:
            with np.errstate(under="raise"):
                self._calibrate()
            self._whole = True
        except FloatingPointError:
            self._calibrate()
            self._whole = False  # some cells are lost: no scaling brings them back
        self._place = lru_cache(PLACES_KEPT)(self._find_place)

    def _calibrate(self) -> None:
        tree = self.tree
        tables = clique_potentials(self.model, tree)
        sent: list[Array] = [np.ones(1)] * len(tables)
        for i in range(len(tables) - 1, 0, -1):
            sent[i] = self.up[i].sum(tables[i])
            tables[tree.parents[i]] = self.down[i].multiply(tables[tree.parents[i]], sent[i])
        tables[0] = tables[0] / np.add.reduce(tables[0])
        separators: list[Array] = [np.ones(1)] * len(tables)
        for i in range(1, len(tables)):
            separators[i] = self.down[i].sum(tables[tree.parents[i]])
            tables[i] = self.up[i].multiply(tables[i], _ratio(separators[i], sent[i]))
        self.tables = tables
        self.separators = [np.where(table > 0, table, 1.0) for table in separators]  # safe to divide by

    @cached_property
    def shadows(self) -> Shadows:
        return Shadows(self.model, self.tree, self.tables, self.separators, self.up, self.down, self.nodes)

    @cached_property
    def conditionals(self) -> Conditionals:
        return Conditionals(self.tree, self.tables, self.nodes, self.shadows)

    @cached_property
    def relations(self) -> Relations:
        return Relations(self.model)

    def collect(self, findings: Findings, toward: int | None = None) -> Update | None:
        """Messages between findings (and on to clique `toward`); scaled only where the plain pass nears underflow.

        None where scaling does not help either, or nothing is left: logarithms must answer.
        """
        update = self._collect(findings, toward, scaled=False)
        if np.add.reduce(update.tables[update.meeting]) > TINY:
            return update
        if not self._whole:
            return None
        try:
            with np.errstate(under="raise"):
                update = self._collect(findings, toward, scaled=True)
        except FloatingPointError:
            return None
        return update if np.add.reduce(update.tables[update.meeting]) > 0 else None

    def _collect(self, findings: Findings, toward: int | None, *, scaled: bool) -> Update:
        tree, tables = self.tree, self.tables
        parents = tree.parents
        changed = self._absorb(findings)
        sent: dict[int, Array] = {}
        log = 0.0
        spine: list[int] = []  # the target's clique and its ancestors: along it messages go down
        if toward is not None:
            clique = toward
            while clique >= 0:
                spine.append(clique)
                clique = parents[clique]
        on_spine = set(spine)
        pending = [-i for i in changed if i not in on_spine]  # numbers grow downward: the largest is above no other
        heapq.heapify(pending)
        while pending and (spine or len(pending) > 1):
            i = -heapq.heappop(pending)
            if scaled:
                changed[i], log = _scaled(changed[i], log)
            sent[i] = self.up[i].sum(changed[i])
            ratio = sent[i] / self.separators[i]
            if scaled:
                ratio, log = _scaled(ratio, log)
            parent = parents[i]
            if parent in changed:
                changed[parent] = self.down[i].multiply(changed[parent], ratio)
                if scaled:
                    changed[parent], log = _scaled(changed[parent], log)
            else:
                changed[parent] = self.down[i].multiply(tables[parent], ratio)
                if parent not in on_spine:
                    heapq.heappush(pending, -parent)
        meeting = toward if toward is not None else -pending[0] if pending else 0
        below: int | None = None
        for i in reversed(spine):  # from the top: the first changed clique starts the way down
            if below is not None:
                ratio = self.down[i].sum(changed[below]) / self.separators[i]
                if scaled:
                    ratio, log = _scaled(ratio, log)
                changed[i] = self.up[i].multiply(changed.get(i, tables[i]), ratio)
                if scaled:
                    changed[i], log = _scaled(changed[i], log)
            if i in changed:
                below = i
        changed.setdefault(meeting, tables[meeting])
        return Update(changed, sent, meeting, log)

    def _absorb(self, findings: Findings) -> dict[int, Array]:
        """Cliques with their findings multiplied in."""
        changed: dict[int, Array] = {}
        for v, likelihood in findings.likelihoods(self.model.sizes).items():
            clique = self.tree.home[v]
            changed[clique] = self.nodes[v].multiply(changed.get(clique, self.tables[clique]), likelihood)
        return changed

    def log_probability(self, findings: Findings) -> float:
        """ln P(evidence); -inf if it is impossible."""
        if not findings.hard and not findings.soft:
            return 0.0
        update = self.collect(findings)
        if update is None:
            return self._faint.log_probability(findings)
        return math.log(float(np.add.reduce(update.tables[update.meeting]))) + update.log_scale

    def query(self, targets: Scope, findings: Findings) -> Array | None:
        """P(targets | evidence), or None if no clique holds all targets."""
        clique, projection, scope = self._place(targets)
        if clique is None or projection is None:
            return None
        related = self._related(targets, findings)
        count = len(related.hard) + len(related.soft)
        if not count and len(targets) == 1:
            return self.shadows.priors[self.shadows.slices[targets[0]]]
        total = 0.0
        if count <= FEW:
            table = self.conditionals.joint(clique, targets[0] if len(targets) == 1 else None, projection, related)
            total = np.add.reduce(table)
        if not total > TINY:
            update = self.collect(related, clique)
            if update is None:
                return self._faint.query(targets, related)
            table = projection.sum(update.tables[clique])
            total = np.add.reduce(table)
        table = table / total
        if len(targets) == 1:
            return table
        return arrange(table.reshape(tuple(self.model.sizes[v] for v in scope)), scope, targets, self.model.sizes)

    def _find_place(self, targets: Scope) -> tuple[int | None, Projection | None, Scope]:
        """The smallest clique that holds all targets, the way from it to them, and their order there."""
        tree = self.tree
        if len(targets) == 1:
            return tree.home[targets[0]], self.nodes[targets[0]], targets
        clique = tree.holding(sum(1 << v for v in targets))
        if clique is None:
            return None, None, ()
        scope = _within(tree.cliques[clique], targets)
        return clique, Projection(tree.cliques[clique], scope, self.model.sizes), scope

    def _related(self, targets: Scope, findings: Findings) -> Findings:
        """The findings that share ancestors with the targets; the others only have to be possible."""
        if not findings.hard and not findings.soft:
            return findings
        mine, others = self.relations.split(targets, findings)
        for group in others:
            if not self._possible(group, findings):
                raise impossible(self.model, findings)
        return mine

    def _possible(self, group: list[int], findings: Findings) -> bool:
        if len(group) == 1 and group[0] in findings.hard:
            shadows = self.shadows
            return bool(shadows.priors[shadows.slices[group[0]].start + findings.hard[group[0]]] > 0)
        chosen = only(findings, group)
        return self.relations.surely_possible(chosen) or self.log_probability(chosen) > -math.inf

    def work(self, targets: Scope, findings: Findings) -> int:
        """Cells touched by a query, with each clique visited counted as the cells it could have touched."""
        tree = self.tree
        clique, _, _ = self._place(targets)
        if clique is None:
            return 1 << 62
        visited = {clique}
        paths = []
        for start in (clique, *(tree.home[v] for v in (*findings.hard, *findings.soft))):
            path = [start]
            while path[-1]:
                path.append(tree.parents[path[-1]])
            paths.append(path[::-1])
            visited.update(path)
        shared = 0  # the stretch below the root that all paths share needs no visit
        while all(len(path) > shared + 1 for path in paths) and len({path[shared + 1] for path in paths}) == 1:
            visited.discard(paths[0][shared])
            shared += 1
        return sum(3 * tree.cells[i] + 2 * STEP_CELLS for i in visited)

    def posteriors(self, findings: Findings) -> list[Array]:
        """P(node | evidence) of every node, in node order."""
        shadows = self.shadows
        if not findings.hard and not findings.soft:
            return shadows.split(shadows.priors.copy())
        update = self.collect(findings)
        if update is None:
            return self._faint.posteriors(findings)
        changed, meeting = update.tables, update.meeting
        total = float(np.add.reduce(changed[meeting]))
        out = shadows.priors * total  # what evidence cannot reach keeps its prior
        affected = shadows.affected(findings)
        stack = [(meeting, -1)]
        while stack:
            i, came = stack.pop()
            table = changed[i]
            for projection, where in shadows.residents[i]:
                out[where] = projection.sum(table)
            for edge in shadows.edges[i]:
                k = edge.to
                if k == came or not edge.behind & affected:
                    continue
                message = edge.here.sum(table)
                if k in update.sent and edge.downward:
                    changed[k] = edge.there.multiply(changed[k], _ratio(message, update.sent[k]))
                    stack.append((k, i))
                elif edge.shadow is not None:
                    values = shadows.seen_through(edge, message)
                    for where, part in edge.places:
                        out[where] = values[part]
                else:
                    changed[k] = edge.there.multiply(self.tables[k], message / edge.separator)
                    stack.append((k, i))
        out /= total
        return shadows.split(out)


def _within(clique: Scope, variables: Scope) -> Scope:
    inside = set(variables)
    return tuple(v for v in clique if v in inside)


def _ratio(above: Array, below: Array) -> Array:
    """above / below with 0/0 = 0."""
    return above / np.maximum(below, FLOOR)


def _scaled(ratio: Array, log: float) -> tuple[Array, float]:
    peak = float(np.maximum.reduce(ratio))
    return (ratio / peak, log + math.log(peak)) if peak > 0 else (ratio, log)
