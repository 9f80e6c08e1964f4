"""Budget saving: exact on a curve known in closed form, honest beyond its ends."""

import math

import numpy as np
import pytest

from dpbn.evaluate.saving import equivalent_epsilon, savings


def _rows(method, epsilon, error, runs=6, spread=0.0):
    return [
        {
            "network": "asia",
            "rows": 100,
            "method": method,
            "epsilon": epsilon,
            "run": run,
            "refusal": "",
            "row": error * (1 + spread * (-1) ** run),
        }
        for run in range(runs)
    ]


CURVE = [row for e in (0.5, 1.0, 2.0, 4.0, 8.0) for row in _rows("uniform", e, 0.3 / e, spread=0.1)]


def test_a_method_three_times_as_good_saves_three_times_the_budget():
    found = savings([*CURVE, *_rows("optimized", 1.0, 0.1, spread=0.1)], ["row"])
    saving = next(s for s in found if s.method == "optimized")
    assert saving.factor == pytest.approx(3.0, rel=1e-6)
    assert saving.low == pytest.approx(3.0) == saving.high  # the same runs vary together, so their ratio does not
    assert saving.bound == ""


def test_the_baseline_saves_nothing_on_itself():
    assert {round(s.factor, 6) for s in savings(CURVE, ["row"])} == {1.0}


def test_independent_noise_widens_the_interval():
    rows = _rows("optimized", 1.0, 0.1)
    for row, factor in zip(rows, (0.8, 1.3, 0.9, 1.2, 0.7, 1.1), strict=True):
        row["row"] *= factor
    saving = next(s for s in savings([*CURVE, *rows], ["row"]) if s.method == "optimized")
    assert saving.low < saving.factor < saving.high


def test_a_method_with_fewer_runs_is_compared_on_those_runs():
    later = [{**row, "run": row["run"] + 100, "row": row["row"] * 50} for row in CURVE]
    found = savings([*CURVE, *later, *_rows("optimized", 1.0, 0.1, spread=0.1)], ["row"])
    assert next(s for s in found if s.method == "optimized").factor == pytest.approx(3.0, rel=1e-6)


def test_beyond_the_curve_only_a_bound_is_given():
    found = savings([*CURVE, *_rows("optimized", 1.0, 0.001), *_rows("icml2020", 1.0, 9.0)], ["row"])
    by = {s.method: s for s in found if s.method != "uniform"}
    assert (by["optimized"].bound, by["optimized"].factor) == (">", pytest.approx(8.0))
    assert (by["icml2020"].bound, by["icml2020"].factor) == ("<", pytest.approx(0.5))
    assert str(by["optimized"]) == ">8.00"


def test_refusals_and_lonely_baselines_are_left_out():
    refused = [{**row, "refusal": "too large", "row": math.nan} for row in _rows("mwem", 1.0, 1.0)]
    assert all(s.method != "mwem" for s in savings([*CURVE, *refused], ["row"]))
    assert savings(_rows("uniform", 1.0, 0.3), ["row"]) == []


def test_a_curve_that_is_not_monotone_is_made_so():
    epsilons, curve = np.array([1.0, 2.0, 4.0]), np.array([0.4, 0.1, 0.2])
    assert equivalent_epsilon(epsilons, curve, 0.1) == pytest.approx(2.0, rel=1e-6)
    assert equivalent_epsilon(epsilons, curve, 0.2) == pytest.approx(math.sqrt(2.0), rel=1e-6)


def test_a_single_run_has_no_interval_to_print():
    alone = savings([*CURVE, *_rows("optimized", 1.0, 0.1, runs=1)], ["row"])
    assert str(next(s for s in alone if s.method == "optimized")) == "3.30"
    apart = [{**row, "run": 100} for row in _rows("optimized", 1.0, 0.1, runs=1)]
    assert str(next(s for s in savings([*CURVE, *apart], ["row"]) if s.method == "optimized")) == "–"
