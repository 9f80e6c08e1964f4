"""Inference: compile a network once, ask it many questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import ImpossibleEvidenceError, QueryError, TooLargeError, received
from dpbn.inference.answer import Answer, Comparison
from dpbn.inference.calibrated import CalibratedTree, plan_tree
from dpbn.inference.columns import MISSING, column_codes, columns_of
from dpbn.inference.derivatives import Differentiator
from dpbn.inference.elimination import EliminationEngine, impossible
from dpbn.inference.evidence import Evidence, Findings, listed
from dpbn.inference.explanation import Explanation
from dpbn.inference.junction_tree import JunctionTree
from dpbn.inference.map import MaximumEngine
from dpbn.inference.model import model_of
from dpbn.inference.plan import CELL_LIMIT, Plan
from dpbn.inference.predict import Predictor, impossible_rows
from dpbn.inference.sampling import Sampler
from dpbn.matching import headers_by_name, matchings
from dpbn.sampling import labelled

if TYPE_CHECKING:
    import pandas

    from dpbn.uncertainty.error_bars import Bars, ErrorBars
    from dpbn.uncertainty.leaning import WeakRow

Array = NDArray[np.float64]
STRATEGIES = ("auto", "elimination", "junction-tree")

LARGEST_LOG = math.log(np.finfo(np.float64).max)
QUESTIONS_KEPT = 4096
LARGE_TREE = 30_000  # cells above which touching cells costs more than calling numpy
WORTH_A_PLAN = 4  # times a question is asked of a large tree before it gets a plan of its own


class Inference:
    """Exact answers from a network or a release; plans and compiled tables are kept between questions.

    Evidence maps a node to a label, to a number where the node has cut points, or (soft evidence) to one likelihood per
    state. A factor of more than `limit` cells is refused before it is allocated.
    """

    def __init__(self, source: Any, *, strategy: str = "auto", limit: int = CELL_LIMIT):
        if strategy not in STRATEGIES:
            raise QueryError(f"strategy must be one of {STRATEGIES}, got {strategy!r}")
        if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1:
            raise QueryError(f"limit must be a whole number of cells >= 1, got {received(limit)}")
        self.source = source
        self.strategy = strategy
        self.limit = int(limit)
        self._model = model_of(source)
        if not self._model.vocabulary.nodes:
            raise QueryError("a network to ask must have at least one node, got none")
        self._words = self._model.vocabulary
        self._elimination = EliminationEngine(self._model, self.limit)
        self._maximum = MaximumEngine(self._model, self.limit)
        self._asked: dict[object, int] = {}
        self._cheaper: dict[object, bool] = {}
        self._predictor = Predictor(self._model, self.limit)
        self._sampler = Sampler(self._model, self.limit)
        self._differentiator = Differentiator(self._model, self.limit)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or what another process gets, compiles again."""
        return partial(type(self), strategy=self.strategy, limit=self.limit), (self.source,)

    def __repr__(self) -> str:
        return f"Inference({self.source!r}, strategy={self.strategy!r})"

    @property
    def nodes(self) -> tuple[str, ...]:
        return self._words.nodes

    def query(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> Answer:
        """P(targets | evidence) as a table with one axis per target, in the order asked."""
        variables, findings = self._words.question(targets, evidence)
        tree = self._tree
        values = None
        if tree is not None and not self._elimination_pays(tree, variables, findings):
            values = tree.query(variables, findings)
        if values is None:
            values = self._elimination.query(variables, findings)
        names = tuple(self._words.nodes[v] for v in variables)
        states = tuple(self._words.states[v] for v in variables)
        given = self._words.told(evidence, findings)
        if not self._noisy:
            return Answer(names, values, states, given)
        bars = partial(self._bars, names, values, given)
        return Answer(names, values, states, given, bars, partial(self.weak_rows, names, given))

    def compare(
        self, targets: str | Iterable[str], evidence: Evidence | None = None, other: Evidence | None = None
    ) -> Comparison:
        """P(targets | evidence) minus P(targets | other): what one observation instead of another makes of it."""
        names = listed(targets)
        first, second = self.query(names, evidence), self.query(names, other)
        return Comparison(first, second, partial(self._difference, first, second) if self._noisy else None)

    @property
    def _noisy(self) -> bool:
        return bool(getattr(self.source, "measurements", ()))

    @cached_property
    def error_bars(self) -> ErrorBars:
        """Plausible networks around the release, drawn at the first question about error."""
        if not self._noisy:
            raise QueryError("error bars must be asked of a release made with noise, got a network or an exact one")
        from dpbn.uncertainty.error_bars import ErrorBars

        return ErrorBars(self.source)

    def _bars(self, names: tuple[str, ...], values: Array, evidence: Evidence | None) -> Bars:
        return self.error_bars.query(values, names, evidence)

    def _difference(self, first: Answer, second: Answer) -> Bars:
        values = first.values - second.values
        return self.error_bars.difference(values, first.variables, first.evidence, second.evidence)

    def intervals(self, evidence: Evidence | None = None) -> dict[str, Bars]:
        """Error bars of every node's posterior: `.interval(0.9)`, and deviations by part (privacy, sampling)."""
        return self.error_bars.posteriors(self.posteriors(evidence), evidence)

    def weak_rows(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> list[WeakRow]:
        """CPT rows below the noise floor that the answer to this question leans on, heaviest first."""
        names = [self.nodes[v] for v in self._words.question(targets, evidence)[0]]
        if not self._noisy:
            return []
        from dpbn.uncertainty.leaning import weak_rows_behind

        return weak_rows_behind(self, names, evidence)

    def stability(self, assignment: Mapping[str, str], evidence: Evidence | None = None) -> float:
        """Share of plausible networks in which `assignment` (an answer of mpe or map) is still the best."""
        return self.error_bars.stability(assignment, evidence)

    def _elimination_pays(self, tree: CalibratedTree, targets: tuple[int, ...], findings: Findings) -> bool:
        """In a large tree a question asked again gets a pruned plan of its own, if that is cheaper."""
        if self.strategy == "junction-tree" or tree.plan.cells < LARGE_TREE:
            return False
        key = (targets, findings.pattern)
        if (known := self._cheaper.get(key)) is not None:  # read once: another thread may clear it
            return known
        if len(self._asked) >= QUESTIONS_KEPT:
            self._asked.clear()
            self._cheaper.clear()
        self._asked[key] = times = self._asked.get(key, 0) + 1
        if times < WORTH_A_PLAN:
            return False
        try:
            cheaper = self._elimination.plan(targets, findings).work < tree.work(targets, findings)
        except TooLargeError:
            cheaper = False
        self._cheaper[key] = cheaper
        return cheaper

    def posteriors(self, evidence: Evidence | None = None) -> dict[str, NDArray[np.float64]]:
        """P(node | evidence) of every node; an observed node is certain of its state."""
        findings = self._words.findings(evidence)
        tree = self._tree
        found = tree.posteriors(findings) if tree is not None else self._elimination.posteriors(findings)
        return dict(zip(self._words.nodes, found, strict=True))

    def probability(self, evidence: Evidence | None = None) -> float:
        """P(evidence), zero if it is impossible; with soft evidence, the expected likelihood."""
        log = self.log_probability(evidence)
        return math.exp(log) if log < LARGEST_LOG else math.inf

    def log_probability(self, evidence: Evidence | None = None) -> float:
        """ln P(evidence), -inf if it is impossible; does not underflow."""
        findings = self._words.findings(evidence)
        return self._log_probability(findings) + findings.log_scale

    def _log_probability(self, findings: Findings) -> float:
        tree = self._tree
        return tree.log_probability(findings) if tree is not None else self._elimination.log_probability(findings)

    @cached_property
    def _tree(self) -> CalibratedTree | None:
        """The junction tree, compiled at the first question; None where elimination answers instead."""
        planned = self._planned_tree
        return None if planned is None else CalibratedTree(self._model, *planned, self._elimination)

    @cached_property
    def _planned_tree(self) -> tuple[Plan, JunctionTree] | None:
        """The junction tree before any table is allocated; None if it is not wanted or too large."""
        if self.strategy == "elimination":
            return None
        try:
            return plan_tree(self._model, self.limit)
        except TooLargeError:
            if self.strategy == "junction-tree":
                raise
            return None

    @cached_property
    def _explanation(self) -> Explanation | None:
        """What answers `mpe`, where there is a junction tree."""
        tree = self._tree
        return None if tree is None else Explanation(self._model, tree.tree, tree.down, tree.nodes)

    def mpe(self, evidence: Evidence | None = None) -> tuple[dict[str, str], float]:
        """The most probable states of all unobserved nodes together, and P(those states | evidence)."""
        findings = self._words.findings(evidence)
        targets = tuple(v for v in range(len(self.nodes)) if v not in findings.hard)
        found = None if self._explanation is None else self._explanation.mpe(findings)
        return self._maximise(targets, findings) if found is None else self._told(targets, findings, *found)

    def map(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> tuple[dict[str, str], float]:
        """The most probable states of `targets` together (all else summed), and P(those states | evidence)."""
        return self._maximise(*self._words.question(targets, evidence))

    def _maximise(self, targets: tuple[int, ...], findings: Findings) -> tuple[dict[str, str], float]:
        return self._told(targets, findings, *self._maximum.map(tuple(sorted(targets)), findings))

    def _told(
        self, targets: tuple[int, ...], findings: Findings, codes: dict[int, int], log: float
    ) -> tuple[dict[str, str], float]:
        """Labels, and the probability given the evidence."""
        total = self._log_probability(findings)
        if log == -math.inf or total == -math.inf:
            raise impossible(self._model, findings)
        return {self._words.nodes[v]: self._words.states[v][codes[v]] for v in targets}, math.exp(min(log - total, 0.0))

    def predict_proba(
        self, table: Any, target: str, *, on_impossible: str = "error", on_unknown: str = "error"
    ) -> NDArray[np.float64]:
        """P(target | the other columns) for every row: rows × states of `target`.

        `table` is a DataFrame, a pyarrow Table or a mapping of columns; columns are found by node name or by the
        schema's column name, others are ignored (but not all of them). A missing value is an unobserved node, an
        undeclared one raises; `on_unknown` names the declared catch-all state that takes both ("catch_all": each
        variable's own). Rows whose relevant columns contradict the network raise, or get the prior with
        on_impossible="prior".
        """
        return self._predicted(table, target, on_impossible, on_unknown)[0]

    def predict_intervals(
        self, table: Any, target: str, *, on_impossible: str = "error", on_unknown: str = "error"
    ) -> Bars:
        """Error bars of `predict_proba`: `.values`, `.interval(0.9)`, and deviations by part (privacy, sampling)."""
        return self.error_bars.predictions(*self._predicted(table, target, on_impossible, on_unknown))

    def _predicted(
        self, table: Any, target: str, on_impossible: str, on_unknown: str
    ) -> tuple[Array, dict[int, Any], int]:
        """Predictions, what they rest on, the target's place; an impossible row gets the prior by telling nothing."""
        if on_impossible not in ("error", "prior"):
            raise QueryError(f"on_impossible must be 'error' or 'prior', got {received(on_impossible)}")
        goal, columns, rows = self._evidence_columns(table, target, on_unknown)
        values, possible = self._predictor.predict(columns, rows, goal)
        if not possible.all():
            if on_impossible == "error":
                raise impossible_rows(possible)
            values[~possible] = self.query([target]).values
            columns = {node: np.where(possible, codes, MISSING) for node, codes in columns.items()}
        return values, columns, goal

    def _evidence_columns(self, table: Any, target: str, on_unknown: str) -> tuple[int, dict[int, Any], int]:
        if on_unknown == "drop":
            raise QueryError("on_unknown must be 'error' or a declared catch-all state, got 'drop': no row is left out")
        goal = self._words.position(target)
        given, rows = columns_of(table)
        headers = headers_by_name(given)
        columns = {}
        for variable, rule in enumerate(matchings(self._model.structure.schema, on_unknown)):
            name = rule.variable.name if rule.variable.name in headers else rule.column
            if variable != goal and name in headers:
                columns[variable] = column_codes(given[headers[name]], rule)
        aim = self._model.structure.schema[target]
        of_the_aim = {headers.get(aim.name), headers.get(aim.source_column)}
        strange = [name for name in given if name not in of_the_aim]
        if strange and not columns:
            raise QueryError(f"a table must have a column named like a node of the network, got {strange[:8]}")
        return goal, columns, rows

    def derivatives(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> dict[str, Array]:
        """∂P(targets | evidence)/∂Θ of every node's CPT: axes of the targets in the order asked, then those of the CPT.

        A cell moves alone, its row is not made to sum to one again: what has a meaning are differences within a row.
        """
        variables, findings = self._words.question(targets, evidence)
        return dict(zip(self.nodes, self._differentiator.by_cells(variables, findings), strict=True))

    def sample(self, rows: int, evidence: Evidence | None = None, seed: int | None = None) -> pandas.DataFrame:
        """Rows drawn from P(all nodes | evidence), exactly, as a pandas DataFrame of categoricals."""
        codes = self._sampler.codes(rows, self._words.findings(evidence), seed)
        return labelled(self._model.structure, dict(zip(self.nodes, codes, strict=True)))

    def plan(self, targets: str | Iterable[str], evidence: Evidence | None = None) -> Plan:
        """How `query` would answer (by the junction tree or by elimination), its width, cells and bytes.

        The tree is the whole network's and compiled once; an elimination is pruned for this question.
        """
        variables, findings = self._words.question(targets, evidence)
        planned = self._planned_tree
        if planned is None or self._cheaper.get((variables, findings.pattern)):
            return self._elimination.plan(variables, findings)
        plan, tree = planned
        if tree.holding(sum(1 << v for v in variables)) is None:
            return self._elimination.plan(variables, findings)
        return plan


def answer_or_uniform(ask: Inference, targets: Iterable[str], evidence: Evidence) -> Array:
    """The values of an answer; uniform ones where the network calls the evidence impossible."""
    names = list(targets)
    try:
        return ask.query(names, evidence).values
    except ImpossibleEvidenceError:
        shape = tuple(ask._words.sizes[ask._words.position(name)] for name in names)
        return np.full(shape, 1.0 / math.prod(shape))
