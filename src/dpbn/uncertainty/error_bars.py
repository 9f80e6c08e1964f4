"""Error bars on every answer of a release, privacy noise and sampling error apart.

The deviation of an answer is the root mean square of what the learner would get minus what is true, over plausible
truths (`replicates`): it counts bias as well as spread. An interval is the released answer plus or minus the normal
quantile times the deviation. `make bench-intervals` measures the coverage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import QueryError, received
from dpbn.inference.evidence import Evidence
from dpbn.inference.map import MaximumEngine
from dpbn.inference.model import Model
from dpbn.inference.networks import BatchInference
from dpbn.inference.plan import CELL_LIMIT
from dpbn.inference.predict import Predictor
from dpbn.learners.procedure1 import normalised_rows
from dpbn.uncertainty.replicates import as_released, plausible_truths, replicate

if TYPE_CHECKING:
    from dpbn.network import BayesianNetwork
    from dpbn.release import Release

Array = NDArray[np.float64]
POSSIBLE = 1e-9  # mixed into every row, so that evidence is possible in every plausible network
PARTS = ("total", "privacy", "sampling")
NETWORKS, SEED = 100, 0  # plausible networks, and what they are drawn with


@dataclass(frozen=True, eq=False)
class Bars:
    """Released probabilities and their deviations: in total, from privacy noise alone, from sampling alone."""

    values: Array
    total: Array
    privacy: Array
    sampling: Array
    least: float = field(default=0.0, kw_only=True)  # that a value can be: -1 for a difference of probabilities

    def interval(self, level: float = 0.9, part: str = "total") -> tuple[Array, Array]:
        """Low and high ends that hold the true probability with about this confidence."""
        if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
            raise QueryError(f"the level of an interval must be between 0 and 1, got {received(level)}")
        if part not in PARTS:
            raise QueryError(f"part must be one of {PARTS}, got {received(part)}")
        deviation = {"total": self.total, "privacy": self.privacy, "sampling": self.sampling}[part]
        reach = -NormalDist().inv_cdf((1 - level) / 2) * deviation
        return np.clip(self.values - reach, self.least, 1.0), np.clip(self.values + reach, self.least, 1.0)


class ErrorBars:
    """Plausible networks around one release, drawn at the first question that needs them, asked many times."""

    def __init__(self, release: Release):
        self._release, self._structure = release, release.structure

    @cached_property
    @np.errstate(under="ignore")  # as NumPy has it, also for a caller who has it raise
    def _cpts(self) -> list[dict[str, Array]]:
        """Of plausible truths, of what the learner would make of them, and of what it would make without noise."""
        drawn = replicate(self._release, plausible_truths(self._release, NETWORKS, SEED), SEED)
        kinds = (drawn.truth, drawn.total, drawn.sampled)
        return [{node: _possible(cpts) for node, cpts in kind.items()} for kind in kinds]

    @cached_property
    def _networks(self) -> list[BatchInference]:
        return [BatchInference(self._structure, cpts) for cpts in self._cpts]

    @cached_property
    @np.errstate(under="ignore")
    def _around(self) -> list[list[Array]]:
        """CPTs as the learner would make them if the released network were true."""
        released = as_released(self._release, NETWORKS)
        drawn = replicate(self._release, released, SEED)
        nodes = []
        for node in self._structure.nodes:  # where the truth had to move, its error is that of the released network
            cpts = np.maximum(drawn.total[node] + (released[node] - drawn.truth[node]), 0.0)
            nodes.append(_possible(normalised_rows(cpts)))
        return [[cpts[index] for cpts in nodes] for index in range(NETWORKS)]

    def query(self, values: Array, targets: Sequence[str], evidence: Evidence | None) -> Bars:
        """Bars of P(targets | evidence), whose released table is `values`."""
        return _bars(values, *(networks.query(targets, evidence) for networks in self._networks))

    def difference(
        self, values: Array, targets: Sequence[str], evidence: Evidence | None, other: Evidence | None
    ) -> Bars:
        """Bars of P(targets | evidence) - P(targets | other): both are asked of the same plausible networks."""
        found = [networks.query(targets, evidence) - networks.query(targets, other) for networks in self._networks]
        return replace(_bars(values, *found), least=-1.0)

    def posteriors(self, values: Mapping[str, Array], evidence: Evidence | None) -> dict[str, Bars]:
        """Bars of every node's posterior."""
        found = [networks.posteriors(evidence) for networks in self._networks]
        return {node: _bars(values[node], *(kind[node] for kind in found)) for node in values}

    def predictions(self, values: Array, columns: dict[int, NDArray[np.int64]], target: int) -> Bars:
        """Bars of predictions for rows of evidence codes, summed up network by network to spare memory."""
        predictors = [Predictor(Model(self._structure), CELL_LIMIT) for _ in self._cpts]
        sums = [np.zeros_like(values) for _ in PARTS]
        for index in range(NETWORKS):
            found = []
            for predictor, cpts in zip(predictors, self._cpts, strict=True):
                predictor.model.cpts = [cpts[node][index] for node in self._structure.nodes]
                found.append(predictor.predict(columns, len(values), target)[0])
            for part, difference in enumerate(_differences(*found)):
                sums[part] += np.square(difference)
        return Bars(values, *(np.sqrt(total / NETWORKS) for total in sums))

    def tables(self, network: BayesianNetwork) -> dict[str, Bars]:
        """Bars of every cell of the released CPTs."""
        return {node: _bars(network.cpt(node), *(cpts[node] for cpts in self._cpts)) for node in network.nodes}

    def stability(self, assignment: Mapping[str, str], evidence: Evidence | None) -> float:
        """Share of plausible networks whose most probable states of these nodes are `assignment`.

        Networks as the learner would make them if the released one were true. Plausible truths, with rows drawn one by
        one, scatter too much for that: most probable states follow many rows at once.
        """
        if not isinstance(assignment, Mapping):
            raise QueryError(f"an assignment must be a mapping of node to state, got {type(assignment).__name__}")
        model = Model(self._structure)  # of this question alone: its CPTs change from network to network
        engine, words = MaximumEngine(model, CELL_LIMIT), model.vocabulary
        findings = words.findings(evidence)
        if not assignment and len(findings.hard) == len(words.nodes):  # nothing is left to explain
            return 1.0
        targets = tuple(sorted(words.targets(list(assignment), findings.hard)))
        wanted = {words.position(node): self._structure.schema[node].index(s) for node, s in assignment.items()}
        same = 0
        for cpts in self._around:
            model.cpts = cpts
            same += engine.map(targets, findings)[0] == wanted
        return same / NETWORKS


def _possible(cpts: Array) -> Array:
    return cpts * (1 - POSSIBLE) + POSSIBLE / cpts.shape[-1]


def _differences(truth: Array, total: Array, sampled: Array) -> tuple[Array, Array, Array]:
    """In total, by privacy noise, by sampling."""
    return total - truth, total - sampled, sampled - truth


def _bars(values: Array, truth: Array, total: Array, sampled: Array) -> Bars:
    differences = _differences(truth, total, sampled)
    return Bars(values, *(np.sqrt(np.mean(np.square(difference), axis=0)) for difference in differences))
