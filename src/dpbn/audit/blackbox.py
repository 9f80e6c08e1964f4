"""A lower bound on the privacy loss of any release, from runs on two neighbouring tables alone.

If a release is (epsilon, delta)-DP, every event S has P(S) <= e^epsilon P'(S) + delta. The auditor looks for the worst
event on a pilot, then bounds both probabilities on fresh runs (Clopper & Pearson 1934): with confidence
1 - alpha the true epsilon is at least ln((lower P - delta) / upper P'). A bound above the promise is proof of
a breach up to alpha; a bound below it proves nothing beyond that this auditor found no worse event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbn.audit.events import Event, Outcomes, candidates, collect, conjunctions, halves
from dpbn.errors import InputError, extra

Draws = Callable[[Any, int], Sequence[Any]]
Score = Callable[[int, int, int], float]
Bound = Callable[[float, float], float]  # of the loss, from a lower and an upper bound on the two probabilities
ALPHA = 1e-6
_TESTED = 3  # events carried from the pilot to the test; alpha is shared among them


@dataclass(frozen=True)
class Verdict:
    """What the audit found. `lower` is the proven loss (epsilon, or delta if a profile was audited)."""

    lower: float
    promised: float
    event: str
    runs: int

    @property
    def caught(self) -> bool:
        return self.lower > self.promised

    @property
    def tightness(self) -> float:
        return self.lower / self.promised


def repeated(release: Callable[[Any], Any]) -> Draws:
    """Run a release again and again; an exception is an output like any other."""

    def draws(table: Any, runs: int) -> list[Any]:
        outcomes = []
        for _ in range(runs):
            try:
                outcomes.append(release(table))
            except Exception as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        return outcomes

    return draws


def audit(
    release: Callable[..., Any],
    table: Any,
    neighbour: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 200_000,
    pilot: int = 20_000,
    alpha: float = ALPHA,
    many: bool = False,
) -> Verdict:
    """Lower-bound the epsilon of `release` on two neighbouring tables.

    `release(table)` gives one outcome; with `many=True`, `release(table, runs)` gives a sequence of independent ones.
    """

    def bound(low: float, high: float) -> float:
        return math.log((low - delta) / high) if low > delta else -math.inf

    draws = release if many else repeated(release)
    return _verdict(draws, table, neighbour, bound, epsilon, runs, pilot, alpha)


def audit_profile(
    draws: Draws,
    table: Any,
    neighbour: Any,
    *,
    epsilon: float,
    profile: Callable[[float], float],
    runs: int,
    pilot: int,
) -> Verdict:
    """Lower-bound delta at a fixed epsilon, against the delta that `profile` promises there.

    `draws(table, runs)` gives a sequence of independent outcomes.
    """

    def bound(low: float, high: float) -> float:
        return low - math.exp(epsilon) * high

    return _verdict(draws, table, neighbour, bound, profile(epsilon), runs, pilot, ALPHA)


def _verdict(
    draws: Draws, table: Any, neighbour: Any, bound: Bound, promised: float, runs: int, pilot: int, alpha: float
) -> Verdict:
    """Events chosen on a pilot, tested on fresh runs; `bound` says what an event proves."""
    if runs < 1 or pilot < 2 or not 0 < alpha < 1:
        raise InputError(f"runs must be at least 1, pilot at least 2 and alpha in (0, 1), got {runs}, {pilot}, {alpha}")

    def foreseen(p: int, q: int, size: int) -> float:
        """What the test will prove, if probabilities are as the pilot shows, to the bad side: no event wins by luck."""
        low, high = clopper_pearson(p, q, size, 0.01)
        return bound(*clopper_pearson(math.floor(low * runs), math.ceil(high * runs), runs, alpha / _TESTED))

    trial = collect(draws(table, pilot)), collect(draws(neighbour, pilot))
    bets = _best_bets(*trial, score=foreseen)
    fresh = collect(draws(table, runs)), collect(draws(neighbour, runs))
    lower, name = max(
        (bound(*clopper_pearson(*_seen(event, fresh, swapped), runs, alpha / len(bets))), event.name)
        for event, swapped in bets
    )
    return Verdict(max(0.0, lower), promised, name, runs)


def _best_bets(first: Outcomes, second: Outcomes, score: Score) -> list[tuple[Event, bool]]:
    """The most telling events of the pilot, each with the side (swapped or not) on which it is likelier.

    Events are thought of on one half of the pilot and chosen on the other, where their luck is gone.
    """
    (first, chosen_first), (second, chosen_second) = halves(first), halves(second)
    size = chosen_first.kinds.size

    def ranked(events: Sequence[Event]) -> list[tuple[float, Event, bool]]:
        found = []
        for event in events:
            p, q = _seen(event, (chosen_first, chosen_second), False)
            found += [(score(p, q, size), event, False), (score(q, p, size), event, True)]
        return sorted(found, key=lambda item: -item[0])

    single = ranked(candidates(first, second))
    together = []
    for side in (False, True):  # the best event of each coordinate, joined: what composition leaks
        best: dict[str, Event] = {}
        for _, event, swapped in single:
            if swapped is side:
                best.setdefault(event.name.split(" ")[0], event)
        together += conjunctions(list(best.values())[:5])
    everything = sorted(single + ranked(together), key=lambda item: -item[0])
    return [(event, swapped) for _, event, swapped in everything[:_TESTED]]


def _seen(event: Event, outcomes: tuple[Outcomes, Outcomes], swapped: bool) -> tuple[int, int]:
    first, second = (int(event.holds(side).sum()) for side in outcomes)
    return (second, first) if swapped else (first, second)


def clopper_pearson(p: int, q: int, runs: int, alpha: float) -> tuple[float, float]:
    """Lower bound on the probability seen p times and upper bound on the one seen q times, alpha/2 each."""
    with extra("scipy", "audit"):
        from scipy.special import betaincinv
    low = 0.0 if p == 0 else float(betaincinv(p, runs - p + 1, alpha / 2))
    high = 1.0 if q == runs else float(betaincinv(q + 1, runs - q, 1 - alpha / 2))
    return low, high


def discrete_gaussian_profile(scale: float, tables: int = 1) -> Callable[[float], float]:
    """Exact delta(epsilon) of `tables` counts with discrete Gaussian noise of one scale, each one apart.

    The odds of outcomes x are exp((2 sum(x) - tables) / 2 scale^2): they follow from the sum alone, so delta is the
    sum of the positive parts of P - e^epsilon P' over the law of the sum. (For one table this is Theorem 7 of
    Canonne, Kamath, Steinke 2020.)
    """
    half = math.ceil(40 * scale) + 2
    single = np.exp(-((np.arange(-half, half + 1) / scale) ** 2) / 2)
    single /= single.sum()
    law = np.ones(1)
    for _ in range(tables):
        law = np.convolve(law, single)
    here, moved = (np.pad(law, ends) for ends in ((0, tables), (tables, 0)))

    def delta(epsilon: float) -> float:
        return float(np.maximum(moved - math.exp(epsilon) * here, 0.0).sum())

    return delta


def summed_profile(scale: float, draws: int, tables: int = 1) -> Callable[[float], float]:
    """Delta(epsilon) of `tables` counts with the sum of so many Laplace draws, each one apart.

    The law by adding draws up one by one; log odds of several tables on the nearest points of a fine grid, added up by
    Fourier transform: not a bound, but right to three digits, and nothing of it is the accountant's.
    """
    half = math.ceil(60 * scale * math.sqrt(draws)) + 2
    single = np.exp(-np.abs(np.arange(-half, half + 1)) / scale)
    single /= single.sum()
    law = single
    for _ in range(draws - 1):
        law = np.convolve(law, single)
    seen = law[1:-1] > 1e-200
    here, moved = law[1:-1][seen], law[:-2][seen]
    if tables == 1:
        return lambda epsilon: float(np.maximum(moved - math.exp(epsilon) * here, 0.0).sum())
    step = 2e-5 / scale
    nearest = np.rint(np.log(moved / here) / step).astype(np.int64)
    first = int(nearest.min())
    masses = np.bincount(nearest - first, moved)
    size = 2 ** math.ceil(math.log2(tables * masses.size))
    every = np.fft.irfft(np.fft.rfft(masses, size) ** tables, size)
    odds = step * (tables * first + np.arange(every.size))
    return lambda epsilon: float((every * np.maximum(-np.expm1(epsilon - odds), 0.0)).sum())
