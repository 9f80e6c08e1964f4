"""How far to follow a suggestion, where Stein's formula can be written down."""

import numpy as np
import pytest

from dpbn.learners.stein import Rows, account, probed
from dpbn.measurement import Moments

VARIANCE = 50.0


def linear(slope):
    """A CPT of two rows and three states, and a suggestion that moves every count by `slope` times what was seen."""
    generator = np.random.default_rng(3)
    (seen,) = probed([generator.uniform(20, 200, (4, 2, 3))], [Moments.alone(VARIANCE)], [("a", "b")])
    shares = np.broadcast_to(generator.dirichlet(np.ones(3), (4, 2)), (2, 4, 2, 3)).reshape(seen.shape)
    records = np.broadcast_to(generator.uniform(50, 500, (4, 2)), (2, 4, 2)).reshape(seen.shape[:-1])
    rows = Rows(shares, seen, records, VARIANCE, np.full(seen.shape, VARIANCE))
    return rows, slope * seen / records[..., None]


@pytest.mark.parametrize("told", [None, np.array([[True, False]] * 3 + [[False, True]])])
@pytest.mark.parametrize("slope", [0.3, -2.0])
def test_the_best_step_along_a_linear_suggestion_is_that_of_steins_formula(slope, told):
    """d = slope y follows a count by slope, and a count varies by v of noise and n p (1 - p) of a sample."""
    rows, move = linear(slope)
    gain, size = account(rows, move, told)
    y, p, n = rows.seen[:4], rows.probabilities[:4], rows.records[:4, :, None]
    counted = np.ones((4, 2, 1)) if told is None else told[..., None]
    wanted = ((y - n * p) * slope * y - slope * (VARIANCE + n * p * (1 - p))) * counted
    assert gain == pytest.approx(wanted.sum(axis=(1, 2)) / VARIANCE)
    assert size == pytest.approx((np.square(slope * y) * counted).sum(axis=(1, 2)) / VARIANCE)
