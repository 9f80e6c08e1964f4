"""Budget saving: the epsilon at which D-Ind reaches a method's error, divided by the method's epsilon.

D-Ind's mean error is a curve in epsilon, made monotone and interpolated in logarithms of both. Beyond the ends of the
curve only a bound is known. The interval is a bootstrap over runs; a run's data are shared, so D-Ind and the method
are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.evaluate.questions import derived_seed
from dpbn.evaluate.results import Row

Array = NDArray[np.float64]
BASELINE = "uniform"
RESAMPLES, LEVEL = 400, 0.9
TINY = 1e-12


@dataclass(frozen=True)
class Saving:
    """`factor` 3 means: as good as D-Ind with three times the budget. `bound` is '>' or '<' beyond D-Ind's curve."""

    network: str
    rows: int
    method: str
    epsilon: float
    measure: str
    factor: float
    low: float
    high: float
    bound: str = ""

    def __str__(self) -> str:
        if math.isnan(self.factor):
            return "–"
        known = not (self.bound or math.isnan(self.low))  # one run has no interval
        return f"{self.bound}{_short(self.factor)}" + (f" ({_short(self.low)}–{_short(self.high)})" if known else "")


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def equivalent_epsilon(epsilons: Array, curve: Array, error: float) -> float:
    """Where the curve, made non-increasing, reaches `error`; the nearest end where it does not."""
    falling = np.minimum.accumulate(np.maximum(curve, TINY))
    drops = np.concatenate([[True], np.diff(falling) < 0])  # of a flat stretch the smallest budget counts
    # np.interp wants ascending abscissae: read the curve from its small errors up
    ascending, budgets = np.log(falling[drops][::-1]), np.log(epsilons[drops][::-1])
    return float(np.exp(np.interp(np.log(max(error, TINY)), ascending, budgets)))


def savings(rows: Iterable[Row], measures: Iterable[str], *, seed: int = 0) -> list[Saving]:
    """For every network, number of rows, method, epsilon and measure in `rows`."""
    groups: dict[tuple[str, int], dict[tuple[str, float], dict[int, Row]]] = {}
    for row in rows:
        if not row["refusal"]:
            place = groups.setdefault((row["network"], row["rows"]), {})
            place.setdefault((row["method"], row["epsilon"]), {})[row["run"]] = row
    found = []
    for (network, count), cells in groups.items():
        epsilons = np.array(sorted(epsilon for method, epsilon in cells if method == BASELINE))
        if epsilons.size < 2:
            continue
        for (method, epsilon), by_run in cells.items():
            if method == "exact":
                continue
            for measure in measures:
                base = [{run: r[measure] for run, r in cells[BASELINE, e].items()} for e in epsilons]
                mine = {run: r[measure] for run, r in by_run.items()}
                generator = np.random.default_rng(derived_seed("bootstrap", seed, network, count, method, epsilon))
                factor, low, high, bound = _saving(epsilons, base, mine, epsilon, generator)
                found.append(Saving(network, count, method, epsilon, measure, factor, low, high, bound))
    return found


def _saving(
    epsilons: Array,
    base: list[dict[int, float]],
    mine: dict[int, float],
    epsilon: float,
    generator: np.random.Generator,
) -> tuple[float, float, float, str]:
    runs = np.array(sorted(set(mine).intersection(*base)))  # the same data for both, also where one has more runs
    if not runs.size:
        return float("nan"), float("nan"), float("nan"), ""
    points = np.array([[point[run] for run in runs] for point in base])
    values = np.array([mine[run] for run in runs])
    curve, error = points.mean(axis=1), float(values.mean())
    at = equivalent_epsilon(epsilons, curve, error)
    bound = ">" if error < curve.min() else "<" if error > curve.max() else ""
    if runs.size < 2:
        return at / epsilon, float("nan"), float("nan"), bound
    drawn = []
    for _ in range(RESAMPLES):
        pick = generator.integers(runs.size, size=runs.size)
        drawn.append(equivalent_epsilon(epsilons, points[:, pick].mean(axis=1), float(values[pick].mean())))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail]) / epsilon
    return at / epsilon, float(low), float(high), bound
