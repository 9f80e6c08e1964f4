"""Noise: the exact laws are met, laws 10 % off are rejected, and bad input is refused."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpbn
from dpbn.errors import PrivacyError
from dpbn.privacy.noise import InsecureNoise, SecureNoise
from tests.privacy.laws import discrete_gaussian, discrete_laplace, p_value, summed_laplace

SOURCES = [SecureNoise(), InsecureNoise(7)]
ALARM = 1e-8  # how rarely a true law is rejected; a law that is 10 % off passes as rarely with so many draws
DRAWS = 40_000


@pytest.mark.parametrize("noise", SOURCES, ids=["secure", "insecure"])
@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7])
def test_laplace_law_is_met_and_ten_percent_off_is_rejected(noise, scale):
    draws = noise.laplace(np.full(DRAWS, 5, dtype=np.int64), scale) - 5
    half = max(1, round(4 * scale))
    assert p_value(draws, discrete_laplace(scale, half)) > ALARM
    assert p_value(draws, discrete_laplace(1.1 * scale, half)) < ALARM
    assert p_value(draws, discrete_laplace(scale / 1.1, half)) < ALARM


@pytest.mark.parametrize("noise", SOURCES, ids=["secure", "insecure"])
@pytest.mark.parametrize("scale", [0.5, 1.0, 4.3])
def test_gaussian_law_is_met_and_ten_percent_off_is_rejected(noise, scale):
    draws = noise.gaussian(np.full(DRAWS, -3, dtype=np.int64), scale) + 3
    half = max(1, round(2.5 * scale))
    assert p_value(draws, discrete_gaussian(scale, half)) > ALARM
    assert p_value(draws, discrete_gaussian(1.1 * scale, half)) < ALARM
    assert p_value(draws, discrete_gaussian(scale / 1.1, half)) < ALARM


@pytest.mark.parametrize("noise", SOURCES, ids=["secure", "insecure"])
@pytest.mark.parametrize(("scale", "draws"), [(0.6, 2), (1.0, 5), (3.1, 3)])
def test_summed_law_is_met_and_one_draw_or_ten_percent_off_is_rejected(noise, scale, draws):
    made = noise.summed(np.full((DRAWS // 4, 4), 7, dtype=np.int64), scale, draws) - 7
    assert made.shape == (DRAWS // 4, 4)
    half = max(1, round(2.5 * scale * math.sqrt(draws)))
    assert p_value(made, summed_laplace(scale, draws, half)) > ALARM
    for wrong in ((1.1 * scale, draws), (scale / 1.1, draws), (scale, draws + 1), (scale, draws - 1)):
        assert p_value(made, summed_laplace(*wrong, half)) < ALARM


@pytest.mark.parametrize("noise", SOURCES, ids=["secure", "insecure"])
@pytest.mark.parametrize("draws", [0, -1, 65, 2.0, True, None, "2"])
def test_bad_numbers_of_draws_are_refused(noise, draws):
    with pytest.raises(PrivacyError, match="draws"):
        noise.summed(np.zeros(2, dtype=np.int64), 1.0, draws)


def test_insecure_gaussian_above_the_table_has_the_right_deviation():
    draws = InsecureNoise(1).gaussian(np.zeros(100_000, dtype=np.int64), 5000.0)
    assert draws.std() == pytest.approx(5000, rel=0.02)


def test_rows_made_from_the_same_seed_do_not_decide_whether_they_are_kept():
    data = dpbn.load_network("cancer").sample(5_000, seed=3)
    kept = data[InsecureNoise(3).keep(5_000, Fraction(1, 10))]
    assert stats.binomtest(int((kept["Pollution"] == "high").sum()), len(kept), 0.1).pvalue > 1e-4


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 10), Fraction(5, 8), Fraction(2, 3), Fraction(0.1)])
def test_keep_and_thin_meet_the_rate(rate):
    noise = SecureNoise()
    kept = noise.keep(200_003, rate)
    assert kept.size == 200_003
    assert stats.binomtest(int(kept.sum()), kept.size, float(rate)).pvalue > ALARM
    assert stats.binomtest(int(kept.sum()), kept.size, float(rate) * 0.9).pvalue < ALARM
    counts = np.full((200, 100), 7, dtype=np.int64)
    thinned = noise.thin(counts, rate)
    assert thinned.shape == counts.shape
    law = stats.binom(7, float(rate)).pmf(np.arange(8))
    seen = np.bincount(thinned.ravel(), minlength=8)
    groups = np.minimum(np.arange(8), np.flatnonzero(law * counts.size > 8).max())
    groups = np.maximum(groups, np.flatnonzero(law * counts.size > 8).min())
    expected = np.bincount(groups, law * counts.size)
    observed = np.bincount(groups, seen)
    used = expected > 0
    assert stats.chisquare(observed[used], expected[used] * counts.size / expected.sum()).pvalue > ALARM


def test_thinning_keeps_cells_apart_at_word_edges():
    noise = SecureNoise()
    counts = np.array([0, 1, 63, 64, 65, 0, 128, 1_000_000], dtype=np.int64)
    assert (noise.thin(counts, Fraction(1)) == counts).all()
    assert (noise.thin(counts, Fraction(0)) == 0).all()
    thinned = noise.thin(counts, Fraction(1, 3))
    assert (thinned <= counts).all() and abs(thinned[-1] - 333_333) < 5000
    assert noise.thin(np.zeros((2, 0), dtype=np.int64), Fraction(1, 3)).shape == (2, 0)


def test_only_counts_are_thinned():
    for counts in (np.array([3, -1]), np.array([2.0]), np.array([2], dtype=np.int32)):
        with pytest.raises(PrivacyError):
            SecureNoise().thin(counts, Fraction(1, 2))


def test_thinning_a_cell_larger_than_one_batch():
    count = 3 * 64 * 2**20 + 17
    thinned = int(SecureNoise().thin(np.array([count], dtype=np.int64), Fraction(1, 4))[0])
    assert abs(thinned - count / 4) < 6 * math.sqrt(count * 3 / 16)


def test_keep_pairs_are_independent():
    kept = SecureNoise().keep(64_000, Fraction(1, 2)).reshape(-1, 64).astype(int)
    correlation = np.corrcoef(kept.T)
    assert np.abs(correlation[~np.eye(64, dtype=bool)]).max() < 0.25


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(2, 3), Fraction(0.1)])
def test_few_coins_fall_by_the_same_law(rate):
    """Up to 64 coins come from plain integers, more from arrays: eight states of three coins, by their exact law."""
    draws = np.array([SecureNoise().keep(3, rate) for _ in range(80_000)]) @ [1, 2, 4]
    ones = np.array([bin(state).count("1") for state in range(8)])
    law = float(rate) ** ones * (1 - float(rate)) ** (3 - ones)
    seen = np.bincount(draws, minlength=8)
    assert stats.chisquare(seen, law * draws.size).pvalue > ALARM
    wrong = (0.9 * float(rate)) ** ones * (1 - 0.9 * float(rate)) ** (3 - ones)
    assert stats.chisquare(seen, wrong * draws.size).pvalue < ALARM
    assert SecureNoise().keep(64, Fraction(1)).all() and not SecureNoise().keep(64, Fraction(0)).any()


def test_draws_near_the_end_of_64_bits_clamp_and_do_not_wrap():
    top = np.full(200, 2**63 - 1, dtype=np.int64)
    assert SecureNoise().laplace(top, 10.0).min() > 2**62
    assert SecureNoise().gaussian(-top, 10.0).max() < -(2**62)


@pytest.mark.parametrize("noise", SOURCES, ids=["secure", "insecure"])
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e300, 1e-300, "1", True, None])
def test_bad_scales_are_refused(noise, scale):
    for draw in (noise.laplace, noise.gaussian, lambda counts, scale: noise.summed(counts, scale, 2)):
        with pytest.raises(PrivacyError):
            draw(np.zeros(2, dtype=np.int64), scale)


@pytest.mark.parametrize("noise", SOURCES, ids=["secure", "insecure"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint64, object])
def test_only_int64_counts_are_taken(noise, dtype):
    for draw in (noise.laplace, noise.gaussian, lambda counts, scale: noise.summed(counts, scale, 2)):
        with pytest.raises(PrivacyError):
            draw(np.zeros(2, dtype=dtype), 1.0)


@pytest.mark.parametrize("rate", [0.5, Fraction(3, 2), Fraction(-1, 2), "1/2", math.nan])
def test_bad_rates_are_refused(rate):
    for noise in SOURCES:
        with pytest.raises(PrivacyError):
            noise.keep(10, rate)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 30.0, 1e4])
def test_every_epsilon_draws(epsilon):
    zeros = np.zeros(50, dtype=np.int64)
    for noise in SOURCES:
        assert noise.laplace(zeros, 1 / epsilon).dtype == np.int64
        assert noise.gaussian(zeros, 1 / epsilon).dtype == np.int64


def test_insecure_noise_repeats_and_secure_noise_does_not():
    zeros = np.zeros(40, dtype=np.int64)
    assert (InsecureNoise(3).laplace(zeros, 9.0) == InsecureNoise(3).laplace(zeros, 9.0)).all()
    assert (SecureNoise().laplace(zeros, 9.0) != SecureNoise().laplace(zeros, 9.0)).any()
    with pytest.raises(TypeError):
        SecureNoise(3)  # type: ignore[call-arg]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_do_not_share_noise():
    noise = SecureNoise()
    noise.laplace(np.zeros(4, dtype=np.int64), 1e9)  # warm the parent's generator
    draws = []
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, noise.laplace(np.zeros(4, dtype=np.int64), 1e9).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        draws.append(np.frombuffer(os.read(read, 32), dtype=np.int64))
        os.close(read), os.close(write)
    assert (draws[0] != draws[1]).all()


@pytest.mark.parametrize("power", [20, 40, 61])
def test_uniform_numbers_have_all_their_bits(power):
    drawn = SecureNoise().below(np.full(2000, 2**power + 1))
    assert drawn.min() >= 0 and drawn.max() <= 2**power
    for bit in range(power):
        assert 800 < (drawn >> bit & 1).sum() < 1200, bit
