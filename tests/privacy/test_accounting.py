"""Accounting: every rounding goes to the private side, and little is wasted."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn.errors import PrivacyError
from dpbn.privacy import accounting
from dpbn.privacy import opendp_bridge as bridge

losses = st.floats(1e-9, 1e4)
rates = st.fractions(Fraction(1, 1000), 1, max_denominator=1 << 20)
quick = settings(deadline=None, max_examples=50)


@quick
@given(st.lists(losses, max_size=30))
def test_sums_are_the_smallest_float_not_below(values):
    total, exact = accounting.add_up(values), sum(map(Fraction, values), Fraction(0))
    assert Fraction(total) >= exact
    assert not values or Fraction(math.nextafter(total, 0)) < exact


@quick
@given(losses, st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30))
def test_split_never_exceeds_and_wastes_nothing(total, weights):
    shares = accounting.split(total, weights)
    assert accounting.add_up(shares) <= total
    assert sum(shares) >= total * (1 - 1e-12)
    assert shares[0] / total == pytest.approx(weights[0] / math.fsum(weights), rel=1e-9)


@quick
@given(st.floats(1e-6, 1e4), st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.sampled_from([1, 2, 3, 14]))
def test_the_maps_of_split_scales_stay_within_epsilon(epsilon, weights, sensitivity):
    charged = [
        bridge.laplace_epsilon(accounting.laplace_scale(share, sensitivity), sensitivity)
        for share in accounting.split(epsilon, weights)
    ]
    assert accounting.add_up(charged) <= epsilon
    assert accounting.add_up(charged) >= epsilon * (1 - 1e-9)


@quick
@given(st.floats(1e-6, 1e4), st.integers(1, 1000))
def test_laplace_scale_is_the_smallest(epsilon, sensitivity):
    scale = accounting.laplace_scale(epsilon, sensitivity)
    assert bridge.laplace_epsilon(scale, sensitivity) <= epsilon
    assert bridge.laplace_epsilon(math.nextafter(scale, 0), sensitivity) > epsilon
    assert Fraction(sensitivity) / Fraction(scale) <= Fraction(epsilon)  # the map itself is honest


@quick
@given(st.floats(1e-8, 1e3), st.sampled_from([1, 2, 4, 8, 9, 18]))
def test_gaussian_scale_is_the_smallest(rho, squared):
    scale = accounting.gaussian_scale(rho, squared)
    assert accounting.gaussian_rho(scale, squared) <= rho
    assert accounting.gaussian_rho(math.nextafter(scale, 0), squared) > rho
    assert Fraction(squared) / (2 * Fraction(scale) ** 2) <= Fraction(rho)


def exactly_amplified(epsilon: float, rate: Fraction) -> mpmath.mpf:
    with mpmath.workdps(80):
        share = mpmath.mpf(rate.numerator) / rate.denominator
        return mpmath.log1p(share * mpmath.expm1(mpmath.mpf(epsilon)))


@quick
@given(st.floats(1e-9, 500), rates)
def test_amplification_rounds_up_and_its_inverse_down(epsilon, rate):
    loss = accounting.amplified(epsilon, rate)
    exact = exactly_amplified(epsilon, rate)
    assert exact * (1 - mpmath.mpf(10) ** -60) <= loss <= epsilon
    assert loss <= exact * (1 + 1e-15)
    before = accounting.before_sampling(epsilon, rate)
    assert accounting.amplified(before, rate) <= epsilon
    assert exactly_amplified(before, rate) >= epsilon * (1 - 1e-14)


def test_paper_figures_of_amplification():
    assert accounting.before_sampling(0.1, Fraction(1, 10)) == pytest.approx(math.log((math.exp(0.1) - 1) / 0.1 + 1))
    assert accounting.amplified(1.0, Fraction(1, 2)) == pytest.approx(math.log((math.e + 1) / 2))


def test_thinning_per_table_composes_better_than_one_shared_sample():
    rate, tables, epsilon = Fraction(1, 10), 20, 0.1
    shared = accounting.before_sampling(epsilon, rate)
    single = tables * accounting.before_sampling(epsilon / tables, rate)
    assert single >= shared


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, True, None, "1"])
def test_bad_amounts_are_refused(bad):
    for call in (
        lambda: accounting.laplace_scale(bad, 1),
        lambda: accounting.gaussian_scale(bad, 1),
        lambda: accounting.split(bad, [1.0]),
    ):
        with pytest.raises(PrivacyError):
            call()


def test_bad_weights_and_rates_are_refused():
    for weights in ([], [0.0], [1.0, -1.0], [math.nan], [1.0, math.inf]):
        with pytest.raises(PrivacyError):
            accounting.split(1.0, weights)
    for rate in (Fraction(0), Fraction(2), Fraction(-1, 2)):
        with pytest.raises(PrivacyError):
            accounting.amplified(1.0, rate)
    with pytest.raises(PrivacyError, match="every share"):
        accounting.split(5e-324, [1.0, 1.0])


@pytest.mark.parametrize(
    ("epsilon", "rate"), [(1e-21, Fraction(1, 2)), (1e7, Fraction(1, 2)), (1.0, Fraction(1, 10**11))]
)
def test_sampling_is_not_credited_where_its_digits_are_not_proved(epsilon, rate):
    for call in (accounting.amplified, accounting.before_sampling):
        with pytest.raises(PrivacyError, match="account"):
            call(epsilon, rate)
