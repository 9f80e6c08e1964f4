"""The boundary under attack: budget, samples, duplicates, bad requests, failures half-way."""

import math
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpbn
from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.errors import PrivacyError
from dpbn.graph import Dag
from dpbn.measure import Curator
from dpbn.measurement import Joint, Ladder, Measurement, Request, total_loss
from dpbn.network import Structure
from dpbn.privacy import accounting
from dpbn.privacy.guarantee import Budget, Neighbors, Sensitivity
from dpbn.privacy.noise import InsecureNoise, SecureNoise

SCHEMA = Schema((Variable("a", ("0", "1")), Variable("b", ("0", "1", "2"))))
STRUCTURE = Structure(SCHEMA, Dag(("a", "b"), {"b": ("a",)}))
ROWS = pd.DataFrame({"a": ["0", "1", "1", "0", "1"], "b": ["0", "2", "2", "1", "0"]})


class CountsOnly:
    """An engine that returns counts and cannot sample rows."""

    can_sample_rows = False

    def __init__(self, source):
        self.counts = source.counts


def curator(epsilon=1.0, delta=0.0, *, counts_only=False, noise=None, sensitivity=None, charge=lambda: None):
    source = open_source(ROWS, STRUCTURE)
    source = CountsOnly(source) if counts_only else source
    return Curator(source, noise or InsecureNoise(0), Budget(epsilon, delta), sensitivity or Sensitivity(), charge)


def test_the_budget_is_a_wall():
    made = curator(1.0)
    made.measure([Request(("a",), 2.0), Request(("b",), 4.0)])
    with pytest.raises(PrivacyError, match="at most"):
        made.measure([Request(("a",), 3.9)])
    made.measure([Request(("a",), 4.0)])
    assert made.spent == 1.0
    with pytest.raises(PrivacyError):
        made.measure([Request(("a",), 1e12)])
    assert len(made.measurements) == 3


def test_every_declared_cell_gets_noise():
    values = curator(0.01).measure([Request(("a", "b"), 100.0)])[0].values
    assert values.shape == (2, 3) and (values != 0).all()


@pytest.mark.parametrize(
    "arguments",
    [(("a",), 0.0), (("a",), -1.0), (("a",), math.nan), (("a",), math.inf), (("a", "a"), 1.0), ("a", 1.0), ((1,), 1.0)],
)
def test_bad_requests_are_refused(arguments):
    with pytest.raises(PrivacyError):
        Request(*arguments)
    with pytest.raises(PrivacyError):
        Request(("a",), 1.0, "uniform")


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(3, 2), Fraction(-1), 0.5])
def test_bad_rates_are_refused(rate):
    with pytest.raises(PrivacyError):
        curator().measure([Request(("a",), 2.0)], rate=rate)


def test_two_calls_with_one_stage_are_two_samples():
    made, rate = curator(5.0), Fraction(1, 2)
    for _ in range(2):
        made.measure([Request(("a",), 1.0)], stage="one", rate=rate)
    groups = {m.sampling.group for m in made.measurements}
    assert len(groups) == 2
    assert made.spent == accounting.add_up([accounting.amplified(1.0, rate)] * 2)


def test_tables_of_one_sample_are_amplified_together():
    made, rate = curator(5.0), Fraction(1, 2)
    made.measure([Request(("a",), 1.0), Request(("b",), 1.0)], rate=rate)
    assert made.spent == accounting.amplified(2.0, rate)


def test_thinned_tables_are_amplified_one_by_one_but_duplicates_share_a_sample():
    rate = Fraction(1, 2)
    apart = curator(5.0, counts_only=True)
    apart.measure([Request(("a",), 1.0), Request(("b",), 1.0)], rate=rate)
    assert apart.spent == accounting.add_up([accounting.amplified(1.0, rate)] * 2)
    twice = curator(5.0, counts_only=True)
    twice.measure([Request(("a",), 1.0), Request(("a",), 1.0)], rate=rate)
    assert twice.spent == accounting.amplified(2.0, rate) > apart.spent


@pytest.mark.parametrize("sensitivity", [Sensitivity(Neighbors.REPLACE), Sensitivity(max_contributions=2)])
def test_no_amplification_is_claimed_where_it_is_not_proved(sensitivity):
    made = curator(5.0, sensitivity=sensitivity)
    made.measure([Request(("a",), 1.0)], rate=Fraction(1, 10))
    assert made.spent == 2.0
    assert made.measurements[0].sampling is None


def test_laplace_tables_beside_gaussian_ones_cost_their_sum():
    made = curator(5.0, 1e-6)
    made.measure([Request(("a",), 10.0, "gaussian")])
    alone = made.spent
    made.measure([Request(("a",), 10.0)])
    assert made.spent == pytest.approx(alone + 0.1, rel=1e-15) and made.spent >= alone + 0.1
    with pytest.raises(PrivacyError, match="at most epsilon"):
        made.measure([Request(("a",), 0.2)])
    with pytest.raises(PrivacyError, match="mixed"):
        made.measure([Joint((("a",), ("a", "b")), 100.0)])
    with pytest.raises(PrivacyError):
        curator(5.0, 0.0).measure([Request(("a",), 10.0, "gaussian")])
    with pytest.raises(PrivacyError):
        made.measure([Request(("a",), 10.0, "gaussian")], rate=Fraction(1, 2))


def test_gaussian_tables_are_asked_for_in_one_call():
    made = curator(5.0, 1e-6)
    made.measure([Request(("a",), 10.0, "gaussian")])
    with pytest.raises(PrivacyError, match="in one call"):
        made.measure([Request(("b",), 10.0, "gaussian")])
    assert len(made.measurements) == 1
    assert len(curator(5.0, 1e-6).measure(Request((name,), 10.0, "gaussian") for name in "ab")) == 2
    with pytest.raises(PrivacyError, match="at most epsilon"):
        curator(5.0, 1e-6).measure([Request(("a",), 1e-3, "gaussian")])


def test_summed_noise_is_accounted_for_by_itself_in_one_call_and_for_single_records():
    asked = [Request((name,), 4.0, "summed", 3) for name in "ab"]
    made = curator(5.0, 1e-6)
    assert [m.loss for m in made.measure(asked)] == [0.25, 0.25]
    assert {m.variance for m in made.measurements} == {3 * curator(5.0).measure([Request(("a",), 4.0)])[0].variance}
    assert 0.35 < made.spent < 0.5  # what a record costs at most with delta 0
    with pytest.raises(PrivacyError, match="in one call"):
        made.measure(asked[:1])
    with pytest.raises(PrivacyError, match="mixed"):
        curator(5.0, 1e-6).measure([*asked, Request(("a",), 10.0, "gaussian")])
    with pytest.raises(PrivacyError, match="mixed"):
        curator(5.0, 1e-6).measure(asked, rate=Fraction(1, 2))
    with pytest.raises(PrivacyError, match="delta"):
        curator(5.0, 0.0).measure(asked)
    with pytest.raises(PrivacyError, match="one record"):
        curator(5.0, 1e-6, sensitivity=Sensitivity(max_contributions=2)).measure(asked)
    replaced = curator(5.0, 1e-6, sensitivity=Sensitivity(Neighbors.REPLACE))
    assert [m.loss for m in replaced.measure(asked)] == [0.5, 0.5]
    assert made.spent < replaced.spent <= 1.0
    with pytest.raises(PrivacyError, match="at most epsilon"):
        curator(0.37, 1e-6).measure(asked)


@pytest.mark.parametrize(("mechanism", "scale", "draws"), [
    ("summed", 4.0, 1), ("summed", 4.0, 13), ("summed", 4.0, True), ("summed", 4.0, 2.0), ("summed", 1e5, 3),
    ("summed", 0.01, 3), ("laplace", 4.0, 2), ("gaussian", 4.0, 2), ("laplace", 4.0, 0),
])  # fmt: skip
def test_draws_that_are_not_accounted_for_are_refused(mechanism, scale, draws):
    with pytest.raises(PrivacyError, match=r"draws|scale"):
        Request(("a",), scale, mechanism, draws)


def test_the_ledger_is_charged_once_before_any_noise_and_not_for_a_refusal():
    events = []

    class Watched(InsecureNoise):
        def laplace(self, counts, scale):
            events.append("noise")
            return super().laplace(counts, scale)

    made = curator(1.0, noise=Watched(0), charge=lambda: events.append("charge"))
    with pytest.raises(PrivacyError):
        made.measure([Request(("a",), 0.5)])
    assert events == []
    made.measure([Request(("a",), 2.0)])
    made.measure([Request(("a",), 2.0)])
    assert events == ["charge", "noise", "noise"]


def test_a_refused_charge_draws_nothing():
    def refuse():
        raise PrivacyError("no budget left")

    made = curator(1.0, charge=refuse)
    for _ in range(2):  # not remembered as charged
        with pytest.raises(PrivacyError, match="left"):
            made.measure([Request(("a",), 2.0)])
    assert made.measurements == () and made.spent == 0.0


def test_a_failure_half_way_has_spent_its_share_and_shows_nothing():
    class Failing(InsecureNoise):
        def laplace(self, counts, scale):
            raise KeyboardInterrupt

    made = curator(1.0, noise=Failing(0))
    with pytest.raises(KeyboardInterrupt):
        made.measure([Request(("a",), 1.0)])
    assert made.spent == 1.0 and made.measurements == ()


@pytest.mark.parametrize(
    ("mechanism", "scale", "reason"), [("laplace", 1.0, "at most"), ("gaussian", 10.0, "one call")]
)
def test_what_a_failed_call_has_spent_is_not_there_for_the_next(mechanism, scale, reason):
    noise = InsecureNoise(0)
    noise.laplace = noise.gaussian = lambda counts, scale: 1 / 0
    made = curator(1.0, 1e-6 if mechanism == "gaussian" else 0.0, noise=noise)
    with pytest.raises(ZeroDivisionError):
        made.measure([Request(("a",), scale, mechanism)])
    with pytest.raises(PrivacyError, match=reason):
        made.measure([Request(("a",), 10 * scale, mechanism)])


def test_threads_cannot_both_take_the_last_of_it():
    made, refused = curator(1.0), []

    def take():
        try:
            made.measure([Request(("a",), 4.0)])
        except PrivacyError:
            refused.append(1)

    threads = [threading.Thread(target=take) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 8 and made.spent == 1.0


def test_budget_and_record_cannot_be_reassigned():
    made = curator(1.0)
    for name in ("budget", "sensitivity", "measurements", "spent"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)
    measurement = made.measure([Request(("a",), 2.0)])[0]
    with pytest.raises(ValueError, match="read-only"):
        measurement.values[0] = 3


def test_only_the_librarys_own_secure_noise_counts_as_private():
    class Claims(InsecureNoise):
        private = True

    class Child(SecureNoise):
        def laplace(self, counts, scale):
            return counts

    asia = dpbn.load_network("asia")
    rows = asia.sample(20, seed=0)
    assert dpbn.learn(rows, asia, noise=SecureNoise()).private
    assert not any(dpbn.learn(rows, asia, noise=noise).private for noise in (InsecureNoise(0), Claims(0), Child()))


def test_wild_counts_are_clipped_before_the_noise():
    class Wild:
        can_sample_rows = True

        def counts(self, sets):
            return {names: np.array([-5, 2**63 - 1], dtype=np.int64) for names in sets}

    made = Curator(Wild(), SecureNoise(), Budget(1.0), Sensitivity())
    low, high = made.measure([Request(("a",), 1.0)])[0].values
    assert abs(low) < 100 and abs(high - 2**62) < 100


def test_losses_that_are_no_numbers_are_refused():
    for loss in (math.nan, math.inf, -1.0):
        with pytest.raises(PrivacyError):
            total_loss([Measurement(("a",), np.zeros(2), "laplace", 1.0, loss)])


LADDERS = [Ladder(("a",), (10.0, 4.0, 2.0, 1.0)), Ladder(("b",), (10.0, 2.0))]


def test_refining_costs_the_finest_level_only():
    made = curator(1.0, noise=SecureNoise())
    shown = made.gradual(LADDERS, stage="coarse")
    assert [m.scale for m in shown.measurements] == [10.0, 10.0]
    assert made.spent == accounting.add_up([0.1, 0.1])
    shown.refine({("a",): 1})
    assert made.spent == accounting.add_up([0.25, 0.1])
    (finer,) = shown.refine({("a",): 2}, stage="fine")
    assert finer.scale == 2.0 and finer.stage == "fine" and made.spent == accounting.add_up([0.5, 0.1])
    shown.refine({("b",): 1})
    assert made.spent == 1.0
    assert [m.scale for m in shown.measurements] == [2.0, 2.0]
    assert len(made.measurements) == 5 and total_loss(made.measurements) == 1.0


def test_refining_beyond_the_budget_shows_nothing():
    made = curator(0.7)
    shown = made.gradual(LADDERS)
    with pytest.raises(PrivacyError, match="at most"):
        shown.refine({("a",): 2, ("b",): 1})
    assert made.spent == accounting.add_up([0.1, 0.1]) and len(made.measurements) == 2
    shown.refine({("a",): 2})
    with pytest.raises(PrivacyError, match="at most"):
        shown.refine({("a",): 3})


def test_levels_must_be_finer_and_on_the_ladder():
    shown = curator(9.0).gradual(LADDERS)
    shown.refine({("a",): 1})
    for level in (0, 1, 4, -1, True):
        with pytest.raises(PrivacyError, match="level"):
            shown.refine({("a",): level})
    with pytest.raises(PrivacyError, match="must be in this"):
        shown.refine({("a", "b"): 1})
    with pytest.raises(PrivacyError, match="distinct"):
        curator(9.0).gradual([LADDERS[0], LADDERS[0]])


def test_ladders_of_two_calls_are_two_ladders():
    made = curator(9.0)
    made.gradual(LADDERS)
    made.gradual(LADDERS)
    assert made.spent == accounting.add_up([0.1] * 4)


def test_levels_are_one_noise_not_two():
    """Two independent draws at scales 3 and 2 would be further apart than levels of one ladder."""
    made = curator(4000.0, noise=SecureNoise())
    gaps = []
    for _ in range(300):
        shown = made.gradual([Ladder(("a", "b"), (3.0, 2.9))])
        coarse = shown.measurements[0].values
        gaps.append(np.mean(shown.refine({("a", "b"): 1})[0].values != coarse))
    assert np.mean(gaps) < 0.2


@pytest.mark.parametrize("sensitivity", [Sensitivity(Neighbors.REPLACE), Sensitivity(max_contributions=2)])
def test_every_level_is_charged_for_all_that_a_person_can_change(sensitivity):
    made = curator(5.0, sensitivity=sensitivity)
    shown = made.gradual(LADDERS)
    assert made.spent == accounting.add_up([0.2, 0.2])
    shown.refine({("a",): 1})
    assert made.spent == accounting.add_up([0.5, 0.2])


def test_levels_have_the_noise_of_their_scales():
    """At scale 0.01 there is none, but for one draw in 10^43."""
    shown = curator(1000.0, noise=SecureNoise()).gradual([Ladder(("a", "b"), (1000.0, 0.01))])
    assert (np.abs(shown.measurements[0].values) > 10).any()
    (fine,) = shown.refine({("a", "b"): 1})
    assert fine.values.tolist() == [[1, 1, 0], [1, 0, 2]]


@pytest.mark.parametrize("counts_only", [False, True])
def test_what_is_called_a_sample_is_one(counts_only):
    source = open_source(pd.concat([ROWS] * 2000), STRUCTURE)
    made = Curator(CountsOnly(source) if counts_only else source, SecureNoise(), Budget(1000.0), Sensitivity())
    (table,) = made.measure([Request(("a",), 0.01)], rate=Fraction(1, 4))
    assert abs(table.values[0] - 1000) < 200 and abs(table.values[1] - 1500) < 250  # of 4000 and 6000
