"""One noisy number about several tables: what it is, what a record can move, what it costs."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpbn
from dpbn.errors import DpbnError, FormatError, PrivacyError
from dpbn.measure import Curator
from dpbn.measurement import Look, Looked, Measurement, Request, total_loss
from dpbn.privacy.guarantee import Budget, Neighbors, Sensitivity
from dpbn.privacy.noise import LARGEST_COUNT, InsecureNoise, SecureNoise
from tests.learners.test_looks import STRUCTURE, network
from tests.privacy.test_curator import ROWS, curator

TABLES = (("a", "b"), ("b",), ("a",))


class Counted:
    """Counts that are given: two tables of six and two cells."""

    can_sample_rows = False

    def __init__(self, counts):
        self._counts = counts

    def counts(self, sets):
        return {names: self._counts[names] for names in sets}


def seen(counts, look, noise=None, sensitivity=None, epsilon=1e12):
    holder = Curator(Counted(counts), noise or InsecureNoise(0), Budget(epsilon), sensitivity or Sensitivity())
    return holder.look(look)


def test_the_number_is_the_records_beyond_the_caps():
    looked = curator(1e9).look(Look(TABLES, (1, 1, 2), 1e-8))
    # (a, b): (1, 2) twice, others once or never; b: 2, 1, 2; a: 2, 3
    assert looked.value == 1 + 2 + 1
    assert looked.records == pytest.approx(4 / 3)


CELLS = st.lists(st.integers(0, 6), min_size=6, max_size=6)


@given(CELLS, st.integers(0, 2), st.integers(0, 1), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_a_record_moves_it_by_at_most_the_number_of_tables(cells, b, a, caps):
    before = np.array(cells).reshape(2, 3)
    after = before.copy()
    after[a, b] += 1
    sums = [
        seen({("a", "b"): t, ("a",): t.sum(axis=1)}, Look((("a", "b"), ("a",)), caps, 1e-9)).value
        for t in (before, after)
    ]
    assert 0 <= sums[1] - sums[0] <= 2


@given(CELLS.filter(any), st.integers(0, 5), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_a_record_that_takes_anothers_place_moves_it_no_further(cells, to, caps):
    before = np.array(cells)
    after = before.copy()
    after[np.flatnonzero(before)[0]] -= 1
    after[to] += 1
    look = Look((("a", "b"), ("a",)), caps, 1e-9)
    sums = [
        seen({("a", "b"): t.reshape(2, 3), ("a",): t.reshape(2, 3).sum(axis=1)}, look).value for t in (before, after)
    ]
    assert abs(sums[1] - sums[0]) <= 2


def test_it_costs_what_the_number_of_tables_and_of_records_says():
    look = Look(TABLES, (1, 1, 1), 6.0)
    for sensitivity, records in (
        (Sensitivity(), 1),
        (Sensitivity(Neighbors.REPLACE), 1),
        (Sensitivity("replace", 5), 5),
    ):
        made = curator(100.0, sensitivity=sensitivity)
        assert made.loss(look) == made.look(look).loss == pytest.approx(3 * records / 6.0)
        assert made.spent == made.looks[0].loss


def test_looks_are_all_kept():
    made = curator(1e6)
    assert tuple(made.look(Look((("a",),), (cap,), 1.0)) for cap in (1, 2)) == made.looks


def test_the_law_of_its_noise():
    """Discrete Laplace at the scale asked for: 10 % more or less is told apart."""
    look, runs = Look((("a",),), (2,), 5.0), 7000
    counts = {("a",): np.array([7, 1])}
    noise = SecureNoise()
    values = np.array([seen(counts, look, noise).value - 5 for _ in range(runs)])

    def surprise(scale):
        p = math.exp(-1 / scale)
        tail = [(1 - p) / (1 + p) * p ** abs(k) for k in range(-12, 13)]
        expected = runs * np.array([*tail, 1 - sum(tail)])
        inside = np.abs(values) <= 12
        found = np.array([*np.bincount(values[inside] + 12, minlength=25), (~inside).sum()])
        return ((found - expected) ** 2 / expected).sum()  # chi-square with 25 degrees of freedom

    assert surprise(5.0) < 60 < min(surprise(4.3), surprise(5.8))


def test_the_budget_is_charged_before_and_refused_in_time():
    charges = []
    made = curator(1.0, charge=lambda: charges.append(1))
    with pytest.raises(PrivacyError, match="at most"):
        made.look(Look(TABLES, (1, 1, 1), 2.9))
    assert not charges and made.looks == () and made.spent == 0
    made.look(Look(TABLES, (1, 1, 1), 6.0))
    made.measure([Request(("a",), 2.0)])
    assert charges == [1] and made.spent == 1.0 and len(made.measurements) == 1
    with pytest.raises(PrivacyError, match="at most"):
        made.look(Look(TABLES, (1, 1, 1), 1e9))


def test_a_look_whose_noise_fails_stays_paid():
    class Broken(InsecureNoise):
        def laplace(self, counts, scale):
            raise OSError("no randomness")

    made = curator(1.0, noise=Broken(0))
    with pytest.raises(OSError, match="no randomness"):
        made.look(Look((("a",),), (1,), 1.0))
    assert made.spent == 1.0 and made.looks == ()
    with pytest.raises(PrivacyError, match="at most"):
        made.look(Look((("a",),), (1,), 100.0))


def test_what_was_asked_for_cannot_be_changed_afterwards():
    tables, caps = [["a", "b"], ["a"]], [1, 2]
    looked = curator(1e6).look(Look(tables, caps, 1.0))
    caps[0], tables[1] = 100, ["b"]
    assert looked.look == Look((("a", "b"), ("a",)), (1, 2), 1.0) and hash(looked)


@pytest.mark.parametrize(
    ("tables", "caps", "scale"),
    [
        ((), (), 1.0),
        ((("a",),), (), 1.0),
        ((("a",),), (0,), 1.0),
        ((("a",),), (True,), 1.0),
        ((("a",),), (1.5,), 1.0),
        ((("a",),), (LARGEST_COUNT + 1,), 1.0),
        ((("a", "a"),), (1,), 1.0),
        (("ab",), (1,), 1.0),
        ((("a",),), (1,), 0.0),
        ((("a",),), (1,), math.nan),
    ],
)
def test_bad_looks_are_refused(tables, caps, scale):
    with pytest.raises(PrivacyError):
        Look(tables, caps, scale)


def test_counts_beyond_every_table_do_not_overflow():
    counts = {("a",): np.full(4, 2**62), ("b",): np.full(4, 2**63 - 1)}
    assert seen(counts, Look((("a",), ("b",)), (LARGEST_COUNT, 1), 1e-9)).value == LARGEST_COUNT
    assert seen(counts, Look((("a",), ("b",)), (1, 1), 1e-9)).value == LARGEST_COUNT


def test_losses_of_looks_add_up_also_with_delta():
    looked = Looked(Look((("a",),), (1,), 4.0), 0.25, 3)
    assert total_loss((), looks=(looked, looked)) == 0.5
    gaussian = Measurement(("a",), np.zeros(2), "gaussian", 5.0, 0.02)
    count = Measurement((), np.zeros(()), "laplace", 100.0, 0.01)
    alone = total_loss((gaussian,), 1e-6)
    assert total_loss((count, gaussian), 1e-6, looks=(looked,)) == pytest.approx(alone + 0.26, rel=1e-15)
    with pytest.raises(PrivacyError, match="finite"):
        total_loss((), looks=(Looked(looked.look, math.inf, 3),))


@pytest.fixture(scope="module")
def document():
    made = dpbn.learn(network(5.0).sample(400, seed=1), STRUCTURE, 1.0, noise=InsecureNoise(0))
    from dpbn.release import to_dict

    return json.dumps(to_dict(made))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda look: look.update(loss=look["loss"] / 2), "loss of a look must be what scale"),
        (lambda look: look.update(scale=look["scale"] / 2), "loss of a look must be what scale"),
        (lambda look: look["tables"].append(look["tables"][0]), "loss of a look must be what scale"),
        (lambda look: look.update(loss=look["loss"] * 2), "a release must claim what its measurements cost"),
        (lambda look: look.update(tables=[]), "a look must have tables"),
        (lambda look: look["tables"][0].update(cap=0), "a whole cap"),
        (lambda look: look["tables"][0].update(cap=1.0), "a whole cap"),
        (lambda look: look["tables"][0].update(names=["nobody"]), "nobody"),
        (lambda look: look["tables"][0].update(names=["c0", "c0"]), "distinct"),
        (lambda look: look["tables"][0].pop("cap"), "follow the schema"),
        (lambda look: look.update(value=1.5), "whole number"),
        (lambda look: look.update(value=None), "whole number"),
        (lambda look: look.update(value=True), "whole number"),
        (lambda look: look.update(value=2**63), "whole number"),
        (lambda look: look.update(scale="1"), "finite number"),
    ],
)
def test_edited_files_are_refused(document, edit, message, tmp_path):
    edited = json.loads(document)
    edit(edited["looks"][0])
    path = tmp_path / "x.json"
    path.write_text(json.dumps(edited))
    with pytest.raises(DpbnError, match=message):
        dpbn.load_release(path)


def test_a_look_of_another_method_is_refused(document, tmp_path):
    made = json.loads(
        dpbn.learn(ROWS, curator_structure(), 1.0, method="uniform").save(tmp_path / "u.json").read_text()
    )
    made["looks"] = [{"tables": [{"names": ["a"], "cap": 1}], "scale": 1e9, "loss": 1e-9, "value": 0}]
    made["guarantee"]["epsilon"] = 2.0
    path = tmp_path / "x.json"
    path.write_text(json.dumps(made))
    with pytest.raises(FormatError, match="must be of method optimized"):
        dpbn.load_release(path)
    made["looks"] = 5
    path.write_text(json.dumps(made))
    with pytest.raises(FormatError, match="schema"):
        dpbn.load_release(path)


def curator_structure():
    from tests.privacy.test_curator import STRUCTURE as SMALL

    return SMALL
