"""From rho to (epsilon, delta): never below the exact loss of discrete Gaussian noise, and little above it."""

import itertools
import math
from fractions import Fraction
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn.audit.blackbox import discrete_gaussian_profile
from dpbn.errors import PrivacyError
from dpbn.privacy import accounting, gaussian


def exact_delta(scales, shifts, epsilon):
    """By enumeration: the sum of (P - e^epsilon Q)+ over all outcomes, counts apart by `shifts`."""
    axes = [np.arange(-math.ceil(14 * s) - 4, math.ceil(14 * s) + 5) for s in scales]
    here, moved = np.ones(1), np.ones(1)
    for axis, scale, shift in zip(axes, scales, shifts, strict=True):
        law = np.exp(-(axis**2) / (2 * scale**2))
        there = np.exp(-((axis - shift) ** 2) / (2 * scale**2))
        here, moved = (np.multiply.outer(old, new / law.sum()).ravel() for old, new in ((here, law), (moved, there)))
    return float(np.maximum(here - math.exp(epsilon) * moved, 0.0).sum())


@pytest.mark.parametrize("x", [0, 0.3, -0.3, -5, -20, -39.5, 7, 33])
def test_the_normal_function_is_right_to_sixty_digits(x):
    with mpmath.workdps(1200):
        found, known = mpmath.mpf(str(gaussian.normal(Fraction(x)))), mpmath.ncdf(x)
        assert abs(found - known) <= known * mpmath.mpf(10) ** -60


@pytest.mark.parametrize(
    ("scales", "shifts"),
    [
        ((0.4,), (1,)),
        ((1.0,), (1,)),
        ((1.0,), (3,)),
        ((0.7, 2.0), (1, 1)),
        ((1.0, 1.7), (1, -1)),
        ((3.0, 3.0), (1, 1)),
        ((2.5, 6.0), (2, 1)),
        ((1.5, 1.5, 4.0), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2, 0.2])
def test_the_claim_covers_the_exact_loss(scales, shifts, delta):
    losses = [shift**2 / (2 * scale**2) for scale, shift in zip(scales, shifts, strict=True)]
    epsilon = gaussian.gaussian_epsilon(losses, delta)
    assert exact_delta(scales, shifts, epsilon) <= delta


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0.3, 8.0), st.integers(1, 3)), min_size=1, max_size=2),
    st.floats(1e-10, 0.5),
)
def test_the_claim_covers_the_exact_loss_everywhere(cells, delta):
    scales, shifts = zip(*cells, strict=True)
    losses = [shift**2 / (2 * scale**2) for scale, shift in cells]
    epsilon = gaussian.gaussian_epsilon(losses, delta)
    assert exact_delta(scales, shifts, epsilon) <= delta * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (3.0, 1e-6)])
def test_little_is_wasted_on_many_tables_and_five_percent_more_would_be_too_much(epsilon, delta):
    tables = 18

    def exact(rho):
        return discrete_gaussian_profile(math.sqrt(tables / (2 * rho)), tables)(epsilon)

    rho = gaussian.rho_budget(epsilon, delta, 1 / tables)
    assert 0.8 * delta < exact(rho) <= delta < exact(1.05 * rho)


def test_other_accountants_agree_on_tables_of_different_scales():
    from dp_accounting.pld import privacy_loss_distribution as pld

    scales = (12.0, 15.0, 20.0, 30.0, 40.0)
    made = [pld.from_discrete_gaussian_mechanism(s, value_discretization_interval=1e-4) for s in scales]
    composed = made[0]
    for other in made[1:]:
        composed = composed.compose(other)
    theirs = composed.get_epsilon_for_delta(1e-6)  # rounds up
    ours = gaussian.gaussian_epsilon([1 / (2 * s * s) for s in scales], 1e-6)
    assert theirs * 0.99 <= ours <= theirs * 1.01


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("largest", [1.0, 0.05])
def test_a_budget_converts_back_within_epsilon_and_is_used_up(epsilon, delta, largest):
    rho = gaussian.rho_budget(epsilon, delta, largest)

    def cost(rho):
        return gaussian.gaussian_epsilon([largest * rho] * round(1 / largest), delta)

    assert epsilon * (1 - 1e-8) <= cost(rho * (1 - 1e-12)) <= epsilon < cost(rho * (1 + 1e-7))
    for part in (0.999, 0.5, 0.1):
        assert cost(rho * part) <= epsilon


@settings(deadline=None, max_examples=30)
@given(
    st.floats(0.01, 20),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
    st.lists(st.floats(0.01, 100), min_size=1, max_size=8),
    st.sampled_from([1, 2, 8]),
)
def test_scales_of_a_split_budget_convert_back_within_epsilon(epsilon, delta, weights, squared):
    rho = gaussian.rho_budget(epsilon, delta, max(weights) / math.fsum(weights))
    shares = accounting.split(rho, weights)
    charged = [accounting.gaussian_rho(accounting.gaussian_scale(share, squared), squared) for share in shares]
    assert epsilon * (1 - 1e-8) <= gaussian.gaussian_epsilon(charged, delta) <= epsilon


def test_zcdp_is_no_worse_than_in_other_libraries_and_the_comparison_beats_it():
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    orders = [1 + x / 10 for x in range(1, 1000)]
    for rho in (0.001, 0.0244, 0.5, 3.0):
        other, _ = rdp.compute_epsilon(orders, [a * rho for a in orders], 1e-6)
        assert gaussian.zcdp_epsilon(rho, 1e-6) <= other * (1 + 1e-12)
    assert gaussian.zcdp_epsilon(0.02435, 1e-6) <= 1.0 < gaussian.zcdp_epsilon(0.02436, 1e-6)
    assert gaussian.rho_budget(1.0, 1e-6, 0.04) == pytest.approx(0.02797, abs=2e-5)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_zcdp_is_rounded_up(delta):
    """The best order of all, in 40 digits: half of these would fall below it if rounded to the nearest float."""
    for rho in (k / 1000 for k in range(1, 20)):
        with mpmath.workdps(40):
            r, d = mpmath.mpf(rho), mpmath.mpf(delta)

            def slope(a, r=r, d=d):
                return r + (mpmath.log(d) + mpmath.log(a)) / (a - 1) ** 2

            a = mpmath.findroot(slope, gaussian._best_order(rho, delta))
            least = a * r + mpmath.log((a - 1) / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
            assert least <= gaussian.zcdp_epsilon(rho, delta) <= least * (1 + mpmath.mpf("1e-15"))


@pytest.mark.parametrize("rho", [0.001, 0.0244, 0.5, 3.0])
def test_neither_conversion_promises_more_than_the_continuous_gaussian_keeps(rho):
    for epsilon in (gaussian.zcdp_epsilon(rho, 1e-6), gaussian.gaussian_epsilon([rho / 100] * 100, 1e-6)):
        with mpmath.workdps(50):
            mu = mpmath.sqrt(2 * mpmath.mpf(rho))
            delta = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        assert delta <= 1e-6


def test_what_is_not_proved_is_not_claimed():
    rho, delta = 0.0275, 1e-6
    epsilon = gaussian.normal_epsilon(rho, rho, delta)
    k = gaussian._bound(epsilon, rho, rho)[1]
    assert gaussian._proved(epsilon, rho, rho, delta, k)
    assert not gaussian._proved(epsilon * (1 - 1e-9), rho, rho, delta, k)
    for bad in (0.0, -1.0, 0.81 / rho, 1e300):
        assert not gaussian._proved(epsilon, rho, rho, delta, bad)
    assert gaussian._proved(5.0, rho, rho, 0.5, 0.8 / rho)  # far above, but for the premise on k
    assert not gaussian._proved(5.0, rho, rho, 0.5, 0.81 / rho)
    assert not gaussian._proved(60.0, 20.0, 20.0, 0.5, 0.04)  # one table so large that the comparison has no variance
    assert gaussian.normal_epsilon(1e4, 1e4, delta) == math.inf  # zCDP has to serve


def test_no_error_within_the_margin_proves_more(monkeypatch):
    """Every step off by the margin, up or down, in all combinations: the worst of them is what is compared with delta.

    The margin is made large enough to be seen.
    """
    epsilon, rho, largest, k, margin = 1.5, 0.5, 0.02, 2.0, 1e-3
    monkeypatch.setattr(gaussian, "MARGIN", Fraction(1, 1000))

    def bound(signs):
        off = [sign * margin for sign in signs]
        wide = largest * math.log(2.2 / (k * largest)) / math.pi**2 * (1 + off[0])
        grown = rho * (1 + wide / (1 - wide))
        root = math.sqrt(2 * grown)
        away = (epsilon + rho) / root
        ahead = NormalDist().cdf(root - away + off[1] * (1 + root + away)) * (1 + off[2])
        behind = NormalDist().cdf(-away + off[3] * (1 + away)) * (1 + off[4])
        inside = math.exp(grown - rho) * (1 + off[5]) * ahead - math.exp(epsilon) * (1 + off[6]) * behind
        return math.exp(k * rho) * (1 + off[7]) * inside

    worst = max(bound(signs) for signs in itertools.product((-1, 1), repeat=8))
    assert 0 < bound([0] * 8) < 0.98 * worst < 0.5
    assert gaussian._proved(epsilon, rho, largest, worst * (1 + 1e-9), k)
    assert not gaussian._proved(epsilon, rho, largest, worst * (1 - 1e-9), k)


def test_zcdp_is_moved_up_by_the_margin(monkeypatch):
    exact = gaussian.zcdp_epsilon(0.3, 1e-6)
    monkeypatch.setattr(gaussian, "MARGIN", Fraction(1, 1000))
    assert gaussian.zcdp_epsilon(0.3, 1e-6) == pytest.approx(exact + (1 + exact) / 1000, rel=1e-12)


def test_nothing_costs_nothing_and_nothing_costs_less():
    assert gaussian.gaussian_epsilon([], 1e-6) == 0.0
    for rho, delta in ((1e-9, 0.5), (1e-6, 0.1)):  # the formula would give back what was never spent
        order = gaussian._best_order(rho, delta)
        assert order * rho + gaussian._without_rho(order, delta) < 0
        assert gaussian.zcdp_epsilon(rho, delta) == gaussian.gaussian_epsilon([rho], delta) == 0.0


def test_budgets_at_the_far_ends_fall_back_to_zcdp():
    for epsilon, delta, largest in ((1e-12, 1e-12, 1.0), (100.0, 1e-300, 0.03), (1.0, 5e-324, 1.0), (1.0, 1e-6, 1e-9)):
        rho = gaussian.rho_budget(epsilon, delta, largest)
        assert gaussian.zcdp_epsilon(rho * 0.8, delta) <= epsilon
    assert gaussian.rho_budget(1.0, 1e-6, 1e-9) > 0.028  # parts below a thousandth count as a thousandth


def test_what_is_charged_can_be_confirmed_where_the_search_ends_elsewhere():
    losses = [0.001, 0.002, 0.02]
    charged, proved = gaussian.gaussian_epsilon(losses, 1e-6), gaussian.proved_epsilon(losses, 1e-6)
    assert proved * (1 + 1e-12) < charged < proved * (1 + 1e-10)


def test_a_caller_with_a_strict_decimal_context_gets_the_same():
    import decimal

    gaussian.normal_epsilon.cache_clear()
    with decimal.localcontext(decimal.Context(prec=3, traps=[decimal.Inexact, decimal.FloatOperation])):
        strict = gaussian.gaussian_epsilon([0.0123], 1e-6)
    gaussian.normal_epsilon.cache_clear()
    assert strict == gaussian.gaussian_epsilon([0.0123], 1e-6)


def test_losses_beyond_all_reach_have_an_answer_or_a_typed_error():
    assert gaussian.gaussian_epsilon([1e5], 1e-6) > 1e5
    assert accounting.add_up([1.7e308] * 3) == math.inf
    with pytest.raises(PrivacyError):
        gaussian.gaussian_epsilon([1.7e308] * 3, 1e-6)


def test_bad_amounts_are_refused():
    for bad in (0, -1.0, math.nan, math.inf, True, None, "1"):
        with pytest.raises(PrivacyError):
            gaussian.rho_budget(bad, 1e-6)
    for call, delta in itertools.product((gaussian.rho_budget, gaussian.zcdp_epsilon), (0.0, 1.0, -0.1, math.nan)):
        with pytest.raises(PrivacyError):
            call(0.1, delta)
