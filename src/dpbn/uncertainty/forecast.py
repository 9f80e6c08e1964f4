"""`dpbn.plan`: what a release will be worth, before any private data is touched.

The forecast runs the real learner on synthetic rows drawn from a public guess (given CPTs, an earlier release,
or typical random ones), with simulated noise, and averages the errors. It reads public facts only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpbn.errors import InputError, received
from dpbn.formats import load_structure
from dpbn.inference import Inference
from dpbn.inference.queries import answer_or_uniform
from dpbn.learners.learned import Learned
from dpbn.learners.registry import learner_of, takes_workload
from dpbn.measure import Curator
from dpbn.measurement import Measurement, finest
from dpbn.network import BayesianNetwork, Structure
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.noise import InsecureNoise
from dpbn.public import Array, checked_cpts, dirichlet_prior
from dpbn.release import Release
from dpbn.support import FLOOR, row_support
from dpbn.uncertainty.guess import CONCENTRATION, LEAST_EVEN, MOST_EVEN, typical_network
from dpbn.uncertainty.simulate import simulated
from dpbn.workload import Query, checked_workload

LEAST_EPSILON = 1e-3  # asked about: an error that this reaches needs no more
ROWS_OF_TRUTH = 50_000  # synthetic rows that stand for the guess's own P(parents)


@dataclass(frozen=True)
class PlannedTable:
    """One table that will be measured: its attributes, cells, noise law and deviation of a cell."""

    names: tuple[str, ...]
    cells: int
    mechanism: str
    scale: float
    deviation: float


@dataclass(frozen=True)
class Forecast:
    """Expected errors of a release at `epsilon`: tables, error per node and per query, hopeless rows."""

    epsilon: float
    delta: float
    rows: int
    method: str
    tables: tuple[PlannedTable, ...]
    node_errors: Mapping[str, float]
    query_errors: Mapping[Query, float]
    rare_rows: Mapping[str, float]  # share of a node's CPT rows whose expected count is below two deviations of noise
    simulated: tuple[float, ...]  # the error of each simulated release
    guessed: bool  # whether CPTs were given; if not, typical ones were drawn
    again: Callable[..., Forecast] = field(repr=False, compare=False)  # (epsilon[, concentration])

    @property
    def error(self) -> float:
        """Mean over nodes of the expected `weighted` error (L1 per CPT row, rows weighted by P(parents))."""
        return float(np.mean(list(self.node_errors.values())))

    @cached_property
    def error_range(self) -> tuple[float, float] | None:
        """Least and largest error simulated, with CPTs from the least to the most even published; None with a guess."""
        if self.guessed:
            return None
        ends = [self.again(self.epsilon, evenness).simulated for evenness in (LEAST_EVEN, MOST_EVEN)]
        errors = [*self.simulated, *ends[0], *ends[1]]
        return min(errors), max(errors)

    def epsilon_for(self, error: float, *, lowest: float = LEAST_EPSILON, highest: float = 1e3) -> float:
        """The smallest epsilon (to 5 %) whose forecast error is at most `error`: the inverse question."""
        if not _is_number(error) or not 0 < error < 2:
            raise InputError(f"a wanted error must be above 0 and below 2, the largest L1 distance, got {error!r}")
        if not (_is_number(lowest) and _is_number(highest) and 0 < lowest < highest < math.inf):
            raise InputError(
                f"lowest and highest must be epsilons, 0 < lowest < highest, got {lowest!r} and {highest!r}"
            )
        if self.again(lowest).error <= error:
            return lowest
        if self.again(highest).error > error:
            raise InputError(
                f"an error of {error:g} must be in reach at {self.rows} rows, got {self.again(highest).error:.3g} "
                f"even at epsilon={highest:g}: sampling error alone is larger"
            )
        low, high = math.log(lowest), math.log(highest)
        while high - low > 0.05:
            middle = (low + high) / 2
            low, high = (low, middle) if self.again(math.exp(middle)).error <= error else (middle, high)
        return math.exp(high)

    def to_dict(self) -> dict[str, Any]:
        """Everything it says, ready for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rows": self.rows,
            "method": self.method,
            "error": self.error,
            "error_range": list(self.error_range) if self.error_range else None,
            "tables": [
                {"names": list(t.names), "cells": t.cells, "mechanism": t.mechanism, "deviation": t.deviation}
                for t in self.tables
            ],
            "nodes": {n: {"error": e, "rare_rows": self.rare_rows[n]} for n, e in self.node_errors.items()},
            "queries": [
                {"variables": list(q.variables), "evidence": dict(q.evidence), "error": e}
                for q, e in self.query_errors.items()
            ],
        }

    @property
    def headline(self) -> str:
        """Settings, number of tables and mean expected error in one line."""
        return (
            f"{self.method} at epsilon={self.epsilon:g}, delta={self.delta:g}, {self.rows:,} rows: "
            f"{len(self.tables)} tables, mean expected error {self.error:.3f}"
        )

    @property
    def span(self) -> str:
        """The range in words, or nothing where CPTs were given."""
        if not self.error_range:
            return ""
        low, high = self.error_range
        return (
            f"between {low:.3f} (CPTs nearly deterministic) and {high:.3f} (nearly even): without a guess of the "
            "CPTs a structure cannot tell"
        )

    def __repr__(self) -> str:
        return f"Forecast({self.headline})"

    def __str__(self) -> str:
        lines = [self.headline, *([self.span] if self.span else [])]
        lines += [f"{'node':24}{'expected error':>15}{'rows below noise':>18}"]
        lines += [f"{n:24}{e:15.3f}{self.rare_rows[n]:18.0%}" for n, e in self.node_errors.items()]
        return "\n".join([*lines, *(f"{query}: {e:.3f}" for query, e in self.query_errors.items())])

    def plot(self, path: str | Path) -> Path:
        """Expected error of every node as bars, largest first; .png or .svg."""
        from dpbn.uncertainty.plots import plot_forecast

        return plot_forecast(self, path)


def plan(
    structure: str | Path | Structure | BayesianNetwork | Release,
    epsilon: float = 1.0,
    rows: int = 10_000,
    *,
    delta: float = 0.0,
    method: str = "optimized",
    neighbors: str = "add-remove",
    max_contributions: int = 1,
    prior: float | Mapping[str, Any] | None = None,
    public_cpts: Mapping[str, Any] | None = None,
    guess: Any = None,
    workload: Iterable[Query] | None = None,
    simulations: int = 8,
    **options: Any,
) -> Forecast:
    """Forecast the errors of `dpbn.learn` with these settings on a table of about `rows` records.

    `guess` (a BayesianNetwork or an earlier release) makes the forecast sharper; without it typical CPTs are drawn.
    `public_cpts` are taken to be true. What is left of `dpbn.learn` decides which records count (`unit`,
    `on_unknown`): say in `rows` how many will.
    """
    structure = load_structure(structure)
    if not structure.nodes:
        raise InputError("a structure to plan for must have at least one node, got none")
    for name, count in (("rows", rows), ("simulations", simulations)):
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise InputError(f"{name} must be a whole number >= 1, got {received(count)}")
    rows, simulations = int(rows), int(simulations)
    Budget(epsilon, delta)  # refuses a bad budget before anything is simulated
    sensitivity = Sensitivity(neighbors, max_contributions)  # type: ignore[arg-type]
    queries = checked_workload(structure, () if workload is None else workload)
    learner = learner_of(method, options, delta, queries if takes_workload(method) else None, plan)
    return _Simulation(
        structure=structure,
        rows=rows,
        delta=float(delta),
        sensitivity=sensitivity,
        method=method,
        learner=learner,
        queries=queries,
        prior=dirichlet_prior(structure, prior),
        public_cpts=checked_cpts(structure, public_cpts),
        guess=_network_of(guess, structure),
        simulations=simulations,
    )(epsilon)


@dataclass(frozen=True)
class _Run:
    """One simulated release: errors by node and query, the share of rare rows, what was measured."""

    nodes: Mapping[str, float]
    rare: Mapping[str, float]
    queries: Mapping[Query, float]
    measurements: Sequence[Measurement]


@dataclass(frozen=True)
class _Simulation:
    """All that a forecast rests on but epsilon and how even unknown CPTs are."""

    structure: Structure
    rows: int
    delta: float
    sensitivity: Sensitivity
    method: str
    learner: Callable[..., Learned]
    queries: Sequence[Query]
    prior: Mapping[str, Array]
    public_cpts: Mapping[str, Array]
    guess: BayesianNetwork | None
    simulations: int

    @np.errstate(under="ignore")  # as NumPy has it, also for a caller who has it raise
    def __call__(self, epsilon: float, concentration: float = CONCENTRATION) -> Forecast:
        runs = [self._run(seed, Budget(epsilon, self.delta), concentration) for seed in range(self.simulations)]
        nodes = self.structure.nodes
        return Forecast(
            epsilon=float(epsilon),
            delta=self.delta,
            rows=self.rows,
            method=self.method,
            tables=tuple(
                PlannedTable(m.names, m.values.size, m.mechanism, m.scale, math.sqrt(m.variance))
                for m in finest(runs[0].measurements)
            ),
            node_errors={n: float(np.mean([run.nodes[n] for run in runs])) for n in nodes},
            query_errors={q: float(np.mean([run.queries[q] for run in runs])) for q in self.queries},
            rare_rows={n: float(np.mean([run.rare[n] for run in runs])) for n in nodes},
            simulated=tuple(float(np.mean(list(run.nodes.values()))) for run in runs),
            guessed=self.guess is not None,
            again=self,
        )

    def _run(self, seed: int, budget: Budget, concentration: float) -> _Run:
        drawn = self.guess or typical_network(self.structure, seed, concentration)
        truth = BayesianNetwork(
            self.structure, {node: self.public_cpts.get(node, drawn.cpt(node)) for node in drawn.nodes}
        )
        curator = Curator(simulated(truth, self.rows, seed), InsecureNoise(seed), budget, self.sensitivity)
        learned = self.learner(self.structure, curator, prior=self.prior, public_cpts=self.public_cpts)
        reference = simulated(truth, ROWS_OF_TRUTH, seed + 1_000_003)
        nodes, rare = {}, {}
        for node in truth.nodes:
            parents = truth.parents(node)
            mass = reference.counts([parents])[parents] / ROWS_OF_TRUTH
            nodes[node] = float(np.sum(np.abs(learned.cpts[node] - truth.cpt(node)).sum(axis=-1) * mass))
            support = row_support(truth.structure, curator.measurements, node)
            few = mass * self.rows < FLOOR * support.row_deviation if support else np.zeros(1)
            rare[node] = 1.0 if support and support.left_out else float(np.mean(few))
        return _Run(nodes, rare, self._query_errors(truth, learned), curator.measurements)

    def _query_errors(self, truth: BayesianNetwork, learned: Learned) -> dict[Query, float]:
        if not self.queries:
            return {}
        ask_truth, ask = Inference(truth), Inference(BayesianNetwork(truth.structure, learned.cpts))
        errors = {}
        for query in self.queries:
            true = ask_truth.query(query.variables, query.evidence).values
            errors[query] = float(np.abs(true - answer_or_uniform(ask, query.variables, query.evidence)).sum())
        return errors


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _network_of(guess: Any, structure: Structure) -> BayesianNetwork | None:
    if guess is None:
        return None
    network = guess if isinstance(guess, BayesianNetwork) else getattr(guess, "network", None)
    if not isinstance(network, BayesianNetwork):
        raise InputError(f"guess must be a network or a release over the same structure, got {type(guess).__name__}")
    if network.structure.dag != structure.dag:
        raise InputError("guess must have the nodes and parents of the structure, in its order, got others")
    for node in structure.nodes:  # columns and cut points may differ: rows are simulated, not read
        if network.states(node) != structure.states(node):
            raise InputError(
                f"guess must have the states {list(structure.states(node))} of {node!r}, "
                f"got {list(network.states(node))}"
            )
    return BayesianNetwork(structure, {node: network.cpt(node) for node in structure.nodes})
