"""The audit itself: a short run holds on the clean path, catches broken ones, and sees every kind of output."""

import math

import numpy as np
import pytest

from dpbn.audit import audit, audit_profile
from dpbn.audit.blackbox import clopper_pearson, discrete_gaussian_profile
from dpbn.audit.subjects import ONE_MORE, ROWS, broken_subjects, clean_subjects, gaussian_draws
from dpbn.audit.suite import Line, whole_learn
from dpbn.errors import InputError

BROKEN = broken_subjects(seed=5)
CLEAN = clean_subjects()


@pytest.mark.parametrize("subject", BROKEN, ids=[subject.name for subject in BROKEN])
def test_broken_mechanisms_are_caught(subject):
    verdict = audit(
        subject.draws, ROWS, subject.neighbour, epsilon=subject.epsilon, runs=200_000, pilot=20_000, many=True
    )
    assert verdict.caught, verdict


@pytest.mark.parametrize("subject", CLEAN, ids=[subject.name for subject in CLEAN])
def test_clean_paths_hold(subject):
    verdict = audit(subject.draws, ROWS, subject.neighbour, epsilon=subject.epsilon, runs=400, pilot=200, many=True)
    assert not verdict.caught, verdict


def test_the_single_family_is_audited_tightly():
    subject = CLEAN[0]
    verdict = audit(subject.draws, ROWS, subject.neighbour, epsilon=1.0, runs=6_000, pilot=1_000, many=True)
    assert not verdict.caught and verdict.tightness > 0.75, verdict


def test_gaussian_noise_stays_within_its_exact_profile_and_a_smaller_scale_does_not():
    profile = discrete_gaussian_profile(1.5)
    options = {"epsilon": 0.2, "profile": profile, "runs": 4_000, "pilot": 500, "many": True}
    verdict = audit_profile(gaussian_draws(1.5), ROWS, ONE_MORE, **options)
    assert not verdict.caught and verdict.tightness > 0.3, verdict
    assert audit_profile(gaussian_draws(0.75), ROWS, ONE_MORE, **options).caught


def test_the_profile_is_a_profile():
    profile = discrete_gaussian_profile(2.0)
    deltas = [profile(x / 10) for x in range(30)]
    assert deltas == sorted(deltas, reverse=True) and 0 < deltas[-1] < deltas[0] < 1
    support = np.arange(-60, 61)  # by definition: sum of the positive part of P - e^epsilon P'
    law = np.exp(-(support**2) / 8) / np.exp(-(support**2) / 8).sum()
    moved = np.exp(-((support - 1) ** 2) / 8) / np.exp(-(support**2) / 8).sum()
    assert profile(0.3) == pytest.approx(np.maximum(moved - math.exp(0.3) * law, 0).sum(), rel=1e-9)


def test_the_whole_of_learn_holds():
    verdict = audit(whole_learn("uniform"), ROWS, ONE_MORE, epsilon=1.0, runs=150, pilot=60)
    assert not verdict.caught, verdict


@pytest.mark.parametrize(
    "leak",
    [
        lambda table: len(table),
        lambda table: "x" * len(table),
        lambda table: np.zeros(len(table)),
        lambda table: {f"rows {len(table)}": 1.0},
        lambda table: [None] * len(table),
        lambda table: (1.0, 2.0)[len(table) == 3],
        lambda table: 1 / (len(table) - 3),
    ],
    ids=["number", "text", "shape", "label", "length", "constant", "error"],
)
def test_every_kind_of_output_counts(leak):
    assert audit(leak, ROWS, ONE_MORE, epsilon=1.0, runs=2000, pilot=100).caught


def test_a_constant_release_is_no_breach():
    assert not audit(lambda _: "always", ROWS, ONE_MORE, epsilon=0.01, runs=200, pilot=50).caught


def test_clopper_pearson_by_its_definition():
    from scipy import stats

    low, high = clopper_pearson(30, 30, 100, 0.02)
    assert stats.binom(100, low).sf(29) == pytest.approx(0.01)
    assert stats.binom(100, high).cdf(30) == pytest.approx(0.01)
    assert clopper_pearson(0, 100, 100, 0.01) == (0.0, 1.0)


def test_bad_numbers_of_runs_are_refused():
    for options in ({"runs": 0}, {"pilot": 0}, {"alpha": 0.0}):
        with pytest.raises(InputError):
            audit(lambda _: 0, ROWS, ONE_MORE, epsilon=1.0, **options)


def test_a_line_that_is_not_as_it_must_be_says_so():
    verdict = audit(lambda _: 0, ROWS, ONE_MORE, epsilon=1.0, runs=100, pilot=50)
    assert Line("constant", verdict, "holds").passed
    line = Line("constant", verdict, "caught")
    assert not line.passed and "**must be caught**" in line.row
