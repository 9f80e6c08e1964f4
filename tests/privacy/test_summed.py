"""Noise of several Laplace draws: never below its exact loss, little above it, and less noise than its peers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn.audit.blackbox import summed_profile
from dpbn.errors import PrivacyError
from dpbn.measurement import variance_apart
from dpbn.privacy import summed
from dpbn.privacy.gaussian import rho_budget
from tests.privacy.laws import summed_laplace


def exact_delta(laws, touched, epsilon):
    """By enumeration: the sum of (P - e^epsilon Q)+ over all outcomes of the cells that a record touches."""
    here, moved = np.ones(1), np.ones(1)
    for scale, draws in laws:
        law = summed_laplace(scale, draws, math.ceil(18 * scale) + 2 * draws)
        pair = law[1:-1], law[:-2]  # the ends hold all tails
        for _ in range(touched):
            here, moved = (np.multiply.outer(old, new).ravel() for old, new in zip((here, moved), pair, strict=True))
    return float(np.maximum(here - math.exp(epsilon) * moved, 0.0).sum())


@pytest.mark.parametrize(("scale", "draws"), [(0.1, 2), (0.8, 2), (3.0, 3), (5.5, 7), (40.0, 12)])
def test_the_law_is_that_of_draws_added_up(scale, draws):
    masses, odds = summed._law(scale, draws)
    middle = masses.size // 2
    half = math.ceil(8 * scale)
    known = summed_laplace(scale, draws, half)[1:-1]
    assert masses[middle - half + 1 : middle + half] == pytest.approx(known, rel=1e-9)
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert odds[middle - half + 2 : middle + half] == pytest.approx(np.log(known[1:] / known[:-1]), abs=1e-7 / scale)
    assert (np.diff(odds) <= 1e-12).all() and np.abs(odds).max() < 1 / scale


@pytest.mark.parametrize("touched", [1, 2])
@pytest.mark.parametrize(
    "laws", [((0.5, 2),), ((1.0, 2),), ((1.0, 5),), ((0.7, 2), (2.0, 2)), ((1.0, 3), (1.6, 2)), ((3.0, 4),)]
)
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2, 0.2])
def test_the_claim_covers_the_exact_loss_and_little_more(laws, touched, delta):
    if touched == 2 and len(laws) == 2:
        laws = tuple((0.4 * scale, draws) for scale, draws in laws)  # or there are too many outcomes
    epsilon = summed.summed_epsilon(laws, touched, delta)
    assert exact_delta(laws, touched, epsilon) <= delta * (1 + 1e-9) + 1e-13
    if epsilon > 0 and delta > 1e-9:
        assert exact_delta(laws, touched, 0.99 * epsilon) > delta


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0.06, 4.0), st.integers(2, 12)), min_size=1, max_size=2),
    st.floats(1e-10, 0.5),
)
def test_the_claim_covers_the_exact_loss_everywhere(laws, delta):
    epsilon = summed.summed_epsilon(laws, 1, delta)
    assert exact_delta(laws, 1, epsilon) <= delta * (1 + 1e-9) + 1e-13
    assert 0 <= epsilon <= sum(1 / scale for scale, _ in laws) * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (3.0, 1e-6), (1.0, 1e-3)])
def test_little_is_wasted_on_many_tables_and_one_percent_less_noise_would_be_too_little(epsilon, delta):
    laws = summed.summed_laws((1.0,) * 18, 1, epsilon, delta)
    scale, draws = laws[0]
    assert set(laws) == {(scale, draws)}
    exact, less = (summed_profile(times * scale, draws, 18)(epsilon) for times in (1.0, 0.99))
    assert 0.9 * delta < exact < 1.002 * delta < less  # the profile is right to three digits


def test_other_accountants_agree():
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.pld_pmf import create_pmf

    laws = [(3.0, 4), (4.0, 4), (5.0, 3), (5.0, 5), (7.0, 4), (9.0, 2)]
    composed, step = None, 1e-4
    for scale, draws in laws:
        law = summed_laplace(scale, draws, math.ceil(30 * scale) + 8 * draws)
        here, moved = law[1:-1], law[:-2]
        seen = (here > 1e-18) & (moved > 1e-18)
        points = {}
        for p, q in zip(here[seen], moved[seen], strict=True):
            points[math.ceil(math.log(p / q) / step)] = points.get(math.ceil(math.log(p / q) / step), 0.0) + p
        pmf = create_pmf(points, step, 0.0, True)
        made = pld.PrivacyLossDistribution(pmf)
        composed = made if composed is None else composed.compose(made)
    theirs = composed.get_epsilon_for_delta(1e-6)  # rounds up
    assert theirs * 0.995 <= summed.summed_epsilon(laws, 1, 1e-6) <= theirs * 1.001


@pytest.mark.parametrize("touched", [1, 2])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_a_budget_converts_back_within_epsilon_and_is_used_up(epsilon, delta, touched):
    shares = np.random.default_rng(1).gamma(2.0, size=14)
    laws = summed.summed_laws(tuple(shares), touched, epsilon, delta)
    assert epsilon * 0.9995 < summed.summed_epsilon(laws, touched, delta) <= epsilon
    precise = np.array([scale**-2.0 for scale, _ in laws])
    assert precise / precise.sum() == pytest.approx(shares / shares.sum(), rel=1e-9)
    proved = summed.summed_epsilon(laws, touched, delta, proved=True)
    assert proved < summed.summed_epsilon(laws, touched, delta) <= proved * (1 + 2e-9)


@pytest.mark.parametrize(("tables", "gain"), [(8, 0.03), (10, 0.05), (14, 0.028), (24, 0.01)])
def test_it_is_less_noise_than_laplace_and_gaussian(tables, gain):
    scale, draws = summed.summed_laws((1.0,) * tables, 1, 1.0, 1e-6)[0]
    deviation = math.sqrt(variance_apart("summed", scale, draws))
    laplace = math.sqrt(variance_apart("laplace", tables))
    gaussian = math.sqrt(tables / (2 * rho_budget(1.0, 1e-6, 1 / tables)))
    assert deviation < (1 - gain) * min(laplace, gaussian)


@pytest.mark.parametrize(
    ("shares", "touched", "epsilon", "delta"),
    [
        ([1.0] * 8, 1, 1.0, 1e-6),
        ([1.0] * 16, 1, 1.0, 1e-6),
        ([1.0] * 20, 1, 0.3, 1e-9),
        ([1.0] * 9, 1, 3.0, 1e-3),
        ([1.0] * 5, 2, 1.0, 1e-6),
        ([1.0] * 8, 2, 1.0, 1e-6),
        ([20.0] * 4 + [1.0] * 16, 1, 1.0, 1e-6),
    ],
    ids=str,
)
def test_no_other_number_of_draws_is_much_better(shares, touched, epsilon, delta):
    chosen = summed.summed_laws(tuple(shares), touched, epsilon, delta)
    for other in range(2, 13):
        laws = []  # of deviations a little smaller, within discretisation
        for scale, draws in chosen:
            less = 0.992**2 * variance_apart("summed", scale, draws) / variance_apart("summed", scale, other)
            laws.append((scale * math.sqrt(less), other))
        assert summed.summed_epsilon(laws, touched, delta) > epsilon


def test_more_tables_cost_more_and_more_delta_less():
    costs = [summed.summed_epsilon([(6.0, 4)] * tables, 1, 1e-6) for tables in (1, 2, 5, 9, 30, 64)]
    assert costs == sorted(costs) and costs[0] > 0
    costs = [summed.summed_epsilon([(6.0, 4)] * 9, 1, delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5)]
    assert costs == sorted(costs, reverse=True) and costs[-1] == 0.0
    assert summed.summed_epsilon([], 1, 1e-6) == 0.0
    assert 0.96 / 6 < summed.summed_epsilon([(6.0, 4)], 1, 1e-30) < 1 / 6


@pytest.mark.parametrize(
    ("laws", "touched", "delta"),
    [
        ([(5.0, 4)] * 65, 1, 1e-6),
        ([(5.0, 4)], 3, 1e-6),
        ([(5.0, 4)], 0, 1e-6),
        ([(5.0, 4)], 1, 0.0),
        ([(5.0, 4)], 1, 1.0),
        ([(math.nan, 4)], 1, 1e-6),
        ([(2e3, 4)], 1, 1e-6),
        ([(5.0, 4)], 2.0, 1e-6),
        ([(5.0, 4)], True, 1e-6),
        ([(5.0, 1)], 1, 1e-6),
        ([(5.0, 13)], 1, 1e-6),
        ([(5.0, 4.0)], 1, 1e-6),
        ([(0.049, 4)], 1, 1e-6),
    ],
)
def test_what_is_not_accounted_for_is_refused(laws, touched, delta):
    with pytest.raises(PrivacyError):
        summed.summed_epsilon(laws, touched, delta)


@pytest.mark.parametrize(
    ("shares", "epsilon", "delta"),
    [
        ([1.0], 1.0, 1e-6),
        ([1.0] * 65, 1.0, 1e-6),
        ([1.0] * 9, 1e-4, 1e-6),
        ([1.0] * 9, 1e-170, 1e-6),
        ([1.0] * 9, 1e300, 1e-6),
        ([1.0] * 9, 1.0, 1e-300),
        ([1.0] * 9, 1e3, 1e-6),
    ],
)
def test_where_it_cannot_be_had_there_is_none(shares, epsilon, delta):
    assert summed.summed_laws(tuple(shares), 1, epsilon, delta) is None


@pytest.mark.parametrize(("scale", "draws"), [(0.06, 2), (1.3, 3), (25.0, 12)])
def test_all_that_is_rounded_goes_to_the_private_side(scale, draws, monkeypatch):
    step = 0.04 / (scale * math.sqrt(2 * draws))
    masses, odds = summed._law(scale, draws)
    start, points = summed._points(scale, draws, step)
    losses = step * (start + np.arange(points.size))
    assert losses[-1] > 1 / scale > odds.max()
    other = float(points[:-1] @ np.exp(-losses[:-1]))  # of the law of the other table, which loses what goes up
    kept = float(masses @ np.exp(-odds))
    assert kept * (1 - 2 * step * summed.ROUNDING) < other < kept - 0.2 * step * summed.ROUNDING
    assert points.sum() >= masses.sum() * (1 - 1e-14)
    monkeypatch.setattr(summed, "_further", lambda _: 0.125)  # cached points have other arguments than these
    moved = summed._points(scale, draws, 1.1 * step)[1]
    assert moved[-1] == pytest.approx(0.125, rel=1e-6) and moved.sum() == pytest.approx(1.125)


@pytest.mark.parametrize(("scale", "draws"), [(0.3, 2), (2.0, 5), (7.0, 12)])
def test_what_lies_beyond_the_last_outcome_is_not_forgotten(scale, draws, monkeypatch):
    monkeypatch.setattr(summed, "FURTHEST", 3.0 - 4.0 * draws)
    masses, _ = summed._law(scale, draws)
    left = 1.0 - masses.sum()
    assert left > 1e-6
    assert left <= summed._further(masses) < 30 * left


def test_epsilon_and_delta_are_rounded_up(monkeypatch):
    """One outcome at log odds 1, of mass 1/2: delta is (1 - e^(epsilon - 1)) / 2."""
    monkeypatch.setattr(summed, "_profile", lambda laws, touched: (np.array([0.0, 1.0]), np.array([0.5, 0.5])))
    for delta in (0.1, 0.3):
        exact = 1 + math.log(1 - 2 * delta)
        found = summed._epsilon.__wrapped__(((5.0, 2),), 1, delta)
        up = summed.ROUNDING * (exact + 2 * delta / (1 - 2 * delta))
        assert exact + 0.9 * up < found < exact + 1.1 * up
    edge = 0.5 * (1 - math.exp(-1))
    assert summed._epsilon.__wrapped__(((5.0, 2),), 1, edge * (1 + 2e-7)) == 0.0
    assert summed._epsilon.__wrapped__(((5.0, 2),), 1, edge * (1 + 5e-8)) > 0.0


def test_below_the_smallest_delta_pure_epsilon_is_charged():
    laws, least = [(5.0, 12)] * 64, summed.LEAST_DELTA
    for delta in (5e-324, 1e-300, 0.999 * least):
        assert summed.summed_epsilon(laws, 2, delta) >= 64 * 2 / 5 > summed.summed_epsilon(laws, 2, least)
    assert least * np.finfo(float).eps > np.finfo(float).tiny  # what is too small for digits is too small to matter


@pytest.mark.parametrize("delta", [1e-30, 1e-100, 1e-280])
def test_no_cell_loses_more_than_pure_epsilon(delta):
    """Though outcomes beyond the last one written down have more mass than such a delta."""
    for tables in (1, 3):
        assert summed.summed_epsilon([(6.0, 4)] * tables, 1, delta) <= tables / 6 * (1 + 1e-6)


@pytest.mark.parametrize("shares", [[1.0, 1.0], [1.0, 60.0, 60.0], [1.0] * 12])
@pytest.mark.parametrize("touched", [1, 2])
def test_near_the_limits_of_a_scale_there_is_a_law_within_them_or_none(shares, touched):
    """Never an error: with Gaussian noise the same budget can be had."""
    found = []
    for epsilon in (*np.geomspace(1e-4, 0.1, 16), *np.geomspace(3.0, 900.0, 16)):
        laws = summed.summed_laws(tuple(shares), touched, epsilon, 1e-6)
        found.append(laws is not None)
        assert laws is None or summed.summed_epsilon(laws, touched, 1e-6) <= epsilon
    assert not found[0] and not found[-1] and any(found)


def test_pure_epsilon_is_rounded_up_too():
    found = summed.summed_epsilon([(5.0, 2)], 1, 1e-300, proved=True)
    assert 0.2 * (1 + 0.9e-7) < found < 0.2 * (1 + 1.1e-7)
