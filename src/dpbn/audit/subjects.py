"""What is audited: the real measurement path in its variants, and mechanisms broken on purpose.

Tables are two neighbours over one family (a -> b, four cells). A subject draws many independent outcomes of one
release; the broken ones each repeat a mistake that has been published or made before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.graph import Dag
from dpbn.measure import Curator, Ladder, Names, Request, Table
from dpbn.network import Structure
from dpbn.privacy import accounting, gradual
from dpbn.privacy.guarantee import Budget, Neighbors, Sensitivity
from dpbn.privacy.noise import InsecureNoise, SecureNoise

FAMILY: Names = ("a", "b")
STRUCTURE = Structure(Schema((Variable("a", ("0", "1")), Variable("b", ("0", "1")))), Dag(FAMILY, {"b": ("a",)}))
ROWS = pd.DataFrame({"a": ["0", "0", "1"], "b": ["0", "1", "0"]})
ONE_MORE = pd.concat([ROWS, pd.DataFrame({"a": ["1"], "b": ["1"]})], ignore_index=True)  # fills an empty cell
REPLACED = pd.DataFrame({"a": ["0", "0", "1"], "b": ["0", "1", "1"]})
_BATCH = 500

Matrix = NDArray[Any]


@dataclass(frozen=True)
class Subject:
    """One mechanism to audit: what it promises, and how to draw `runs` outcomes from a table."""

    name: str
    draws: Callable[[pd.DataFrame, int], Matrix]
    epsilon: float = 1.0
    neighbour: pd.DataFrame = field(default_factory=lambda: ONE_MORE)


def clean_subjects(epsilon: float = 1.0) -> list[Subject]:
    """The library's own paths, all with SecureNoise."""
    half = Fraction(1, 2)
    return [
        Subject("one family, Laplace", _family(epsilon, Sensitivity()), epsilon),
        Subject("one family, replace", _family(epsilon, Sensitivity(Neighbors.REPLACE)), epsilon, REPLACED),
        Subject("one family, sampled rows", _family(epsilon, Sensitivity(), rate=half), epsilon),
        Subject("one family, thinned table", _family(epsilon, Sensitivity(), rate=half, thinned=True), epsilon),
        Subject("two tables at half the budget", _two_tables(epsilon), epsilon),
        Subject("coarse, then refined", _refined(epsilon), epsilon),
    ]


class ThinnedSource:
    """An engine that returns counts only: the Curator thins them."""

    can_sample_rows = False

    def __init__(self, table: pd.DataFrame):
        self._source = open_source(table, STRUCTURE)

    def counts(self, sets: Sequence[Names]) -> Mapping[Names, Table]:
        return self._source.counts(sets)

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], Any]) -> Mapping[Names, Table]:
        raise NotImplementedError("an engine without rows cannot sample them")


def _family(
    epsilon: float, sensitivity: Sensitivity, rate: Fraction = Fraction(1), thinned: bool = False
) -> Callable[[pd.DataFrame, int], Matrix]:
    """Noisy tables of one family at `epsilon` each, through Curator.measure with SecureNoise.

    Without sampling, _BATCH releases are asked for in one call: each is a request of its own with its own noise.
    With sampling every release is a call of its own, because one call draws one sample.
    """
    loss = accounting.before_sampling(epsilon, rate)
    request = Request(FAMILY, accounting.laplace_scale(loss, sensitivity.l1))

    def draws(table: pd.DataFrame, runs: int) -> Matrix:
        source: Any = ThinnedSource(table) if thinned else open_source(table, STRUCTURE)
        result = np.empty((runs, 4), dtype=np.int64)
        batch = _BATCH if rate == 1 else 1
        for start in range(0, runs, batch):
            count = min(batch, runs - start)
            curator = Curator(source, SecureNoise(), Budget(epsilon * count), sensitivity)
            made = curator.measure([request] * count, rate=rate)
            result[start : start + count] = [measurement.values.ravel() for measurement in made]
        return result

    return draws


def _two_tables(epsilon: float) -> Callable[[pd.DataFrame, int], Matrix]:
    shares = accounting.split(epsilon, [1.0, 1.0])
    requests = [
        Request(names, accounting.laplace_scale(share, 1))
        for names, share in zip([FAMILY, ("a",)], shares, strict=True)
    ]

    def draws(table: pd.DataFrame, runs: int) -> Matrix:
        source = open_source(table, STRUCTURE)
        rows = []
        for _ in range(runs):
            made = Curator(source, SecureNoise(), Budget(epsilon), Sensitivity()).measure(requests)
            rows.append(np.concatenate([measurement.values.ravel() for measurement in made]))
        return np.array(rows)

    return draws


def _refined(epsilon: float) -> Callable[[pd.DataFrame, int], Matrix]:
    """Both levels are shown: together they may cost the fine level only."""
    fine = accounting.laplace_scale(epsilon, 1)
    ladder = Ladder(FAMILY, (3 * fine, 1.5 * fine, fine))

    def draws(table: pd.DataFrame, runs: int) -> Matrix:
        source = open_source(table, STRUCTURE)
        rows = []
        for _ in range(runs):
            shown = Curator(source, SecureNoise(), Budget(epsilon), Sensitivity()).gradual([ladder])
            coarse = shown.measurements[0].values
            rows.append(np.concatenate([coarse.ravel(), shown.refine({FAMILY: 2})[0].values.ravel()]))
        return np.array(rows)

    return draws


def gaussian_draws(scale: float) -> Callable[[pd.DataFrame, int], Matrix]:
    """One family with discrete Gaussian noise, _BATCH requests to a call."""
    request = Request(FAMILY, scale, "gaussian")

    def draws(table: pd.DataFrame, runs: int) -> Matrix:
        source = open_source(table, STRUCTURE)
        result = np.empty((runs, 4), dtype=np.int64)
        for start in range(0, runs, _BATCH):
            count = min(_BATCH, runs - start)
            curator = Curator(source, SecureNoise(), Budget(1e6, 1e-6), Sensitivity())
            made = curator.measure([request] * count)
            result[start : start + count] = [measurement.values.ravel() for measurement in made]
        return result

    return draws


# -- broken on purpose ----------------------------------------------------------------------------------------


def broken_subjects(seed: int = 0, epsilon: float = 1.0) -> list[Subject]:
    """Each promises `epsilon` and does not keep it. Fast numpy noise: the mistake is elsewhere."""
    noise = InsecureNoise(seed)
    floats = np.random.default_rng(seed)
    rate = Fraction(1, 10)
    on_sample = accounting.before_sampling(epsilon, rate)

    def noisy(table: pd.DataFrame, runs: int, loss: float = epsilon) -> Matrix:
        return noise.laplace(_tiled(table, runs), 1 / loss)

    def observed_only(table: pd.DataFrame, runs: int) -> Matrix:
        return np.where(_tiled(table, runs) > 0, noisy(table, runs), 0)

    def divided_by_n(table: pd.DataFrame, runs: int) -> Matrix:
        return _tiled(table, runs) + (noisy(table, runs) - _tiled(table, runs)) / len(table)

    def float_laplace(table: pd.DataFrame, runs: int) -> Matrix:
        return _tiled(table, runs) + floats.laplace(0.0, 1 / epsilon, (runs, 4))

    def fixed_seed(table: pd.DataFrame, runs: int) -> Matrix:
        return np.repeat(InsecureNoise(7).laplace(_tiled(table, 1), 1 / epsilon), runs, axis=0)

    def stage_one_free(table: pd.DataFrame, runs: int) -> Matrix:
        return np.hstack([noisy(table, runs, 0.1 * epsilon), noisy(table, runs)])

    def refined_too_far(table: pd.DataFrame, runs: int) -> Matrix:
        fine = noisy(table, runs, 1.2 * epsilon)
        return np.hstack([gradual.coarsen(fine, 1 / (1.2 * epsilon), 1 / epsilon, noise), fine])

    def unbounded(table: pd.DataFrame, runs: int) -> Matrix:
        extra = 2 * (_tiled(table, runs) - _tiled(ROWS, runs))  # the person added has three rows, not one
        return noisy(table, runs) + extra

    def upside_down(table: pd.DataFrame, runs: int) -> Matrix:
        return noise.laplace(noise.thin(_tiled(table, runs), 1 - rate), 1 / on_sample)

    def with_exact_n(table: pd.DataFrame, runs: int) -> Matrix:
        return np.hstack([noisy(table, runs), np.full((runs, 1), len(table))])

    def independent_levels(table: pd.DataFrame, runs: int) -> Matrix:
        return np.hstack([noisy(table, runs, 0.5 * epsilon), noisy(table, runs)])

    return [
        Subject("epsilon x 1.05", lambda t, n: noisy(t, n, 1.05 * epsilon), epsilon),
        Subject("epsilon x 1.1", lambda t, n: noisy(t, n, 1.1 * epsilon), epsilon),
        Subject("half the scale", lambda t, n: noisy(t, n, 2 * epsilon), epsilon),
        Subject("noise on observed cells only", observed_only, epsilon),
        Subject("noise divided by n", divided_by_n, epsilon),
        Subject("replace-neighbours with sensitivity 1", noisy, epsilon, REPLACED),
        Subject("floating-point Laplace", float_laplace, epsilon),
        Subject("fixed seed", fixed_seed, epsilon),
        Subject("stage I not charged", stage_one_free, epsilon),
        Subject("refined above the level charged", refined_too_far, epsilon),
        Subject("levels drawn independently", independent_levels, epsilon),
        Subject("contributions not bounded", unbounded, epsilon),
        Subject("amplification upside down", upside_down, epsilon),
        Subject("exact n in the release", with_exact_n, epsilon),
    ]


def _tiled(table: pd.DataFrame, runs: int) -> NDArray[np.int64]:
    """The true counts of the family, once per run."""
    counts = open_source(table, STRUCTURE).counts([FAMILY])[FAMILY].astype(np.int64)
    return np.tile(counts.ravel(), (runs, 1))
