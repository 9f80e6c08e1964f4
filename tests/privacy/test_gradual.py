"""Gradual release: every level has the exact law, the step between levels too, and a wrong q is seen."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpbn.errors import PrivacyError
from dpbn.privacy import gradual
from dpbn.privacy.noise import InsecureNoise, SecureNoise
from tests.privacy.laws import discrete_laplace, p_value

ALARM = 1e-8
SOURCES = [SecureNoise(), InsecureNoise(11)]
names = pytest.mark.parametrize("noise", SOURCES, ids=["secure", "insecure"])


def exact_q(fine: float, coarse: float) -> float:
    p2, p1 = math.exp(-1 / fine), math.exp(-1 / coarse)
    return (p2 / p1) * (1 - p1) ** 2 / (1 - p2) ** 2


@names
@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(1), Fraction(12, 5), Fraction(0), Fraction(400)])
def test_bernoulli_exp(noise, exponent):
    bits = gradual.bernoulli_exp(60_000, exponent, noise)
    assert stats.binomtest(int(bits.sum()), bits.size, math.exp(-exponent)).pvalue > ALARM


@names
@pytest.mark.parametrize(("small", "large"), [(2.0, 3.0), (0.1, 0.7), (0.001, 0.0013), (1e-6, 3e-6)])
def test_bernoulli_complements(noise, small, large):
    bits = gradual.bernoulli_complements(60_000, Fraction(small), Fraction(large), noise)
    assert stats.binomtest(int(bits.sum()), bits.size, math.expm1(-small) / math.expm1(-large)).pvalue > ALARM


@names
@pytest.mark.parametrize(("fine", "coarse"), [(1.0, 3.0), (3.0, 4.0), (0.4, 2.2)])
def test_levels_and_the_step_between_them_have_the_exact_laws(noise, fine, coarse):
    draws = noise.laplace(np.zeros(60_000, dtype=np.int64), fine)
    coarser = gradual.coarsen(draws, fine, coarse, noise)
    half = round(4 * coarse)
    assert p_value(coarser, discrete_laplace(coarse, half)) > ALARM
    assert p_value(coarser, discrete_laplace(coarse * 1.1, half)) < ALARM
    assert p_value(draws, discrete_laplace(fine, max(1, round(4 * fine)))) > ALARM
    q = exact_q(fine, coarse)
    step = (1 - q) * discrete_laplace(coarse, half)
    step[half] += q
    assert p_value(coarser - draws, step) > ALARM
    for sign in (-1, 1):  # the step does not look at where the fine value lies
        assert p_value((coarser - draws)[np.sign(draws) == sign], step) > ALARM


@pytest.mark.parametrize("factor", [1.1, 0.9, 0.0])
def test_a_broken_q_is_rejected(factor, monkeypatch):
    noise, fine, coarse = InsecureNoise(1), 3.0, 4.0
    broken = Fraction(exact_q(fine, coarse) * factor)
    monkeypatch.setattr(gradual, "unchanged", lambda size, *_: noise.keep(size, broken))
    coarser = gradual.coarsen(noise.laplace(np.zeros(250_000, dtype=np.int64), fine), fine, coarse, noise)
    assert p_value(coarser, discrete_laplace(coarse, 16)) < ALARM


def test_every_level_of_a_ladder_has_its_law():
    noise, scales = SecureNoise(), (5.0, 4.0, 2.5, 2.4, 1.0)
    levels = gradual.ladder(noise.laplace(np.zeros((300, 200), dtype=np.int64), 1.0), scales, noise)
    assert len(levels) == len(scales)
    for level, scale in zip(levels, scales, strict=True):
        assert level.shape == (300, 200)
        assert p_value(level, discrete_laplace(scale, round(4 * scale))) > ALARM


def test_bad_ladders_are_refused():
    for scales in ((), (1.0, 1.0), (1.0, 2.0), (2.0, 0.0), (math.inf, 1.0), (math.nan,)):
        with pytest.raises(PrivacyError):
            gradual.check_ladder(scales)
        with pytest.raises(PrivacyError):
            gradual.ladder(np.zeros(3, dtype=np.int64), scales, InsecureNoise(1))
