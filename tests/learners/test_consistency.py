"""Least squares by one pass over the intersections is the estimate that normal equations give."""

import itertools

import numpy as np
import pytest

from dpbn.domain import Schema, Variable
from dpbn.learners.consistency import least_squares, overlaps
from dpbn.measurement import Moments

SIZES = {"a": 2, "b": 3, "c": 2, "d": 2}
SCHEMA = Schema(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in SIZES.items()))


@pytest.mark.parametrize(
    "tables",
    [
        [("a", "b", "c"), ("a", "b", "d"), ("a", "c")],  # one intersection inside another: a of ab and ac
        [("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d")],  # a is shared by all three, but by no two alone
        [("a", "b"), ("b", "c"), ("c", "d"), ("d",)],
    ],
)
def test_least_squares_is_exact(tables):
    cells = list(itertools.product(*map(range, SIZES.values())))
    random, variances = np.random.default_rng(0), [1.0, 4.0, 9.0, 2.0][: len(tables)]
    values = [random.normal(size=SCHEMA.shape(names)) for names in tables]
    sums, weights = [], []
    for names, variance in zip(tables, variances, strict=True):
        places = [SCHEMA.position(name) for name in names]
        for cell in itertools.product(*map(range, SCHEMA.shape(names))):
            sums.append([tuple(whole[place] for place in places) == cell for whole in cells])
            weights.append(variance**-0.5)
    design, weights = np.array(sums, dtype=float), np.array(weights)
    noisy = np.concatenate([table.ravel() for table in values])
    best = design @ np.linalg.lstsq(design * weights[:, None], noisy * weights, rcond=None)[0]
    noises = [Moments.alone(variance) for variance in variances]
    found = least_squares([table[None] for table in values], noises, overlaps(SCHEMA, tables))
    assert np.concatenate([table.ravel() for table in found]) == pytest.approx(best)
