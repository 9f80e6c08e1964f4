"""Error bars on every answer of a release, privacy noise and sampling error apart.

The deviation of an answer is the root mean square, over plausible networks (`replicates`), of their answer minus
the released one: it counts bias as well as spread. An interval is the released answer plus or minus the normal
quantile times the deviation. The privacy part is widened by WIDENING, because plausible networks scatter around
the released one, which is smoother than the truth. `make bench-intervals` measures the coverage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import QueryError
from dpbn.inference.evidence import Evidence
from dpbn.inference.map import MaximumEngine
from dpbn.inference.model import Model
from dpbn.inference.networks import BatchInference
from dpbn.inference.predict import Predictor
from dpbn.uncertainty.replicates import replicate

if TYPE_CHECKING:
    from dpbn.network import BayesianNetwork
    from dpbn.release import Release

Array = NDArray[np.float64]
WIDENING = 1.15  # of the privacy part; one number for all networks, budgets and methods
POSSIBLE = 1e-9  # mixed into every row, so that evidence is possible in every plausible network
PARTS = ("total", "privacy", "sampling")


@dataclass(frozen=True, eq=False)
class Bars:
    """Released probabilities and their deviations: in total, from privacy noise alone, from sampling alone."""

    values: Array
    total: Array
    privacy: Array
    sampling: Array

    def interval(self, level: float = 0.9, part: str = "total") -> tuple[Array, Array]:
        """Low and high ends that hold the true probability with about this confidence."""
        if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
            raise QueryError(f"the level of an interval must be between 0 and 1, got {level!r}")
        if part not in PARTS:
            raise QueryError(f"part must be one of {PARTS}, got {part!r}")
        squares = {
            "total": self.total**2 + (WIDENING**2 - 1) * self.privacy**2,
            "privacy": (WIDENING * self.privacy) ** 2,
            "sampling": self.sampling**2,
        }
        reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(squares[part])
        return np.clip(self.values - reach, 0.0, 1.0), np.clip(self.values + reach, 0.0, 1.0)


class ErrorBars:
    """Plausible networks around one release, drawn once, asked many times."""

    def __init__(self, release: Release, *, replicates: int = 100, seed: int = 0):
        drawn = replicate(release, replicates, seed)
        self._structure = release.structure
        self._total_cpts = {node: _possible(cpts) for node, cpts in drawn.total.items()}
        self._sampled_cpts = {node: _possible(cpts) for node, cpts in drawn.sampled.items()}
        self._total = BatchInference(release.structure, self._total_cpts)
        self._sampled = BatchInference(release.structure, self._sampled_cpts)
        self._count = replicates
        self._engine: MaximumEngine | None = None

    def query(self, values: Array, targets: Sequence[str], evidence: Evidence | None) -> Bars:
        """Bars of P(targets | evidence), whose released table is `values`."""
        return _bars(values, self._total.query(targets, evidence), self._sampled.query(targets, evidence))

    def posteriors(self, values: Mapping[str, Array], evidence: Evidence | None) -> dict[str, Bars]:
        """Bars of every node's posterior."""
        total, sampled = self._total.posteriors(evidence), self._sampled.posteriors(evidence)
        return {node: _bars(values[node], total[node], sampled[node]) for node in values}

    def probability(self, value: float, evidence: Evidence | None) -> Bars:
        """Bars of P(evidence)."""
        return _bars(np.asarray(value), self._total.probability(evidence), self._sampled.probability(evidence))

    def predictions(self, values: Array, columns: dict[int, NDArray[np.int64]], target: int) -> Bars:
        """Bars of predictions for rows of evidence codes, summed up network by network to spare memory."""
        predictors = [Predictor(Model(self._structure), self._total.limit) for _ in range(2)]
        sums = [np.zeros_like(values) for _ in PARTS]
        for index in range(self._count):
            pair = []
            for predictor, cpts in zip(predictors, (self._total_cpts, self._sampled_cpts), strict=True):
                predictor.model.cpts = [cpts[node][index] for node in self._structure.nodes]
                pair.append(predictor.predict(columns, len(values), target)[0])
            for part, difference in enumerate((pair[0] - values, pair[0] - pair[1], pair[1] - values)):
                sums[part] += np.square(difference)
        return Bars(values, *(np.sqrt(total / self._count) for total in sums))

    def tables(self, network: BayesianNetwork) -> dict[str, Bars]:
        """Bars of every cell of the released CPTs."""
        pairs = {node: (self._total_cpts[node], self._sampled_cpts[node]) for node in network.nodes}
        return {node: _bars(network.cpt(node), *pair) for node, pair in pairs.items()}

    def stability(self, assignment: Mapping[str, str], evidence: Evidence | None) -> float:
        """Share of plausible networks whose most probable states of these nodes are `assignment`."""
        if not isinstance(assignment, Mapping):
            raise QueryError(f"an assignment must be a mapping of node to state, got {type(assignment).__name__}")
        if self._engine is None:
            self._engine = MaximumEngine(Model(self._structure), self._total.limit)
        model, words = self._engine.model, self._engine.model.vocabulary
        findings = words.findings(evidence)
        if not assignment and len(findings.hard) == len(words.nodes):  # nothing is left to explain
            return 1.0
        targets = tuple(sorted(words.targets(list(assignment), findings.hard)))
        wanted = {words.position(node): self._structure.schema[node].index(s) for node, s in assignment.items()}
        same = 0
        for index in range(self._count):
            model.cpts = [self._total_cpts[node][index] for node in self._structure.nodes]
            same += self._engine.map(targets, findings)[0] == wanted
        return same / self._count


def _possible(cpts: Array) -> Array:
    return cpts * (1 - POSSIBLE) + POSSIBLE / cpts.shape[-1]


def _bars(values: Array, total: Array, sampled: Array) -> Bars:
    def deviation(difference: Array) -> Array:
        return np.sqrt(np.mean(np.square(difference), axis=0))

    return Bars(values, deviation(total - values), deviation(total - sampled), deviation(sampled - values))
