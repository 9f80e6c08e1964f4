"""Mechanisms broken on purpose: each promises epsilon, and repeats a mistake that has been published or made before."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpbn.audit.subjects import (
    CAPS,
    EPSILON,
    FAMILIES,
    FAMILY,
    LOOK,
    ONE_MORE,
    ONE_MORE_TRIPLE,
    REPLACED,
    ROWS,
    STRUCTURE,
    THREE,
    TRIPLES,
    Matrix,
    Subject,
    whole_learn,
)
from dpbn.data import open_source
from dpbn.margins import Names
from dpbn.network import Structure
from dpbn.privacy import accounting, gradual
from dpbn.privacy.noise import Counts, InsecureNoise, SecureNoise

THREE_MORE = pd.concat([ROWS, *[ONE_MORE.iloc[-1:]] * 3], ignore_index=True)  # one person's three rows


class HalfScale(SecureNoise):
    """Half the noise asked for."""

    def laplace(self, counts: Counts, scale: float) -> Counts:
        return super().laplace(counts, scale / 2)


def broken_learn() -> Subject:
    """The whole of `learn` with half the noise: shows that an audit of this size sees such a thing."""
    return Subject("whole of learn, uniform, half the scale", whole_learn("uniform", noise=HalfScale()))


def broken_subjects(seed: int = 0) -> list[Subject]:
    """Each promises EPSILON and does not keep it. Fast numpy noise: the mistake is elsewhere."""
    noise = InsecureNoise(seed)
    floats = np.random.default_rng(seed)
    rate = Fraction(1, 10)
    on_sample = accounting.before_sampling(EPSILON, rate)

    def noisy(table: pd.DataFrame, runs: int, loss: float = EPSILON) -> Matrix:
        return noise.laplace(_tiled(table, runs), 1 / loss)

    def observed_only(table: pd.DataFrame, runs: int) -> Matrix:
        return np.where(_tiled(table, runs) > 0, noisy(table, runs), 0)

    def divided_by_n(table: pd.DataFrame, runs: int) -> Matrix:
        return noisy(table, runs, len(table) * EPSILON)  # the scale meant for shares, on counts

    def float_laplace(table: pd.DataFrame, runs: int) -> Matrix:
        return _tiled(table, runs) + floats.laplace(0.0, 1 / EPSILON, (runs, 4))

    def fixed_seed(table: pd.DataFrame, runs: int) -> Matrix:
        return np.repeat(InsecureNoise(7).laplace(_tiled(table, 1), 1 / EPSILON), runs, axis=0)

    def stage_one_free(table: pd.DataFrame, runs: int) -> Matrix:
        return np.hstack([noisy(table, runs, 0.1 * EPSILON), noisy(table, runs)])

    def refined_too_far(table: pd.DataFrame, runs: int) -> Matrix:
        fine = noisy(table, runs, 1.2 * EPSILON)
        return np.hstack([gradual.coarsen(fine, 1 / (1.2 * EPSILON), 1 / EPSILON, noise), fine])

    def coin_inverted(table: pd.DataFrame, runs: int) -> Matrix:
        return noise.laplace(noise.thin(_tiled(table, runs), 1 - rate), 1 / on_sample)

    def not_sampled(table: pd.DataFrame, runs: int) -> Matrix:
        return noisy(table, runs, on_sample)

    def with_exact_n(table: pd.DataFrame, runs: int) -> Matrix:
        return np.hstack([noisy(table, runs), np.full((runs, 1), len(table))])

    def independent_levels(table: pd.DataFrame, runs: int) -> Matrix:
        return np.hstack([noisy(table, runs, 0.5 * EPSILON), noisy(table, runs)])

    def drawn_apart(table: pd.DataFrame, runs: int) -> Matrix:
        return noise.laplace(np.hstack([_tiled(table, runs, names, THREE) for names in FAMILIES]), 1 / EPSILON)

    def joint_half_scale(table: pd.DataFrame, runs: int) -> Matrix:
        counts = [_tiled(table, runs, names, THREE).reshape(-1, 2) for names in FAMILIES]  # a block per value of a
        return np.hstack([noisy.reshape(runs, -1) for noisy in noise.joint(counts, 0.5 / EPSILON)])

    def look_charged_once(table: pd.DataFrame, runs: int) -> Matrix:
        counts = open_source(table, STRUCTURE).counts(list(LOOK))
        beyond = sum(int(np.maximum(counts[names] - cap, 0).sum()) for names, cap in zip(LOOK, CAPS, strict=True))
        return noise.laplace(np.full((runs, 1), beyond), 1 / EPSILON)

    triples = {"table": TRIPLES, "neighbour": ONE_MORE_TRIPLE}
    return [
        Subject("epsilon x 1.05", lambda t, n: noisy(t, n, 1.05 * EPSILON)),
        Subject("epsilon x 1.1", lambda t, n: noisy(t, n, 1.1 * EPSILON)),
        Subject("half the scale", lambda t, n: noisy(t, n, 2 * EPSILON)),
        Subject("noise on observed cells only", observed_only),
        Subject("noise divided by n", divided_by_n),
        Subject("replace-neighbours with sensitivity 1", noisy, neighbour=REPLACED),
        Subject("floating-point Laplace", float_laplace),
        Subject("fixed seed", fixed_seed),
        Subject("stage I not charged", stage_one_free),
        Subject("refined above the level charged", refined_too_far),
        Subject("levels drawn independently", independent_levels),
        Subject("contributions not bounded", noisy, neighbour=THREE_MORE),
        Subject("amplification with the coin inverted", coin_inverted),
        Subject("amplification claimed for rows not sampled", not_sampled),
        Subject("exact n in the release", with_exact_n),
        Subject("joint noise drawn apart for every table", drawn_apart, **triples),
        Subject("joint noise, half the scale", joint_half_scale, **triples),
        Subject("a look at two tables charged as one", look_charged_once),
    ]


def _tiled(
    table: pd.DataFrame, runs: int, names: Names = FAMILY, structure: Structure = STRUCTURE
) -> NDArray[np.int64]:
    """The true counts over `names`, once per run."""
    counts = open_source(table, structure).counts([names])[names].astype(np.int64)
    return np.tile(counts.ravel(), (runs, 1))
