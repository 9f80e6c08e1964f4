"""A release file that claims less than its own measurements cost is refused; what `learn` writes is not."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.audit.subjects import APART, ROWS, STRUCTURE, independent
from dpbn.claim import _check_loss
from dpbn.errors import FormatError
from dpbn.measure import Curator
from dpbn.measurement import Measurement, Request
from dpbn.privacy.guarantee import Budget, Sensitivity

MANY = independent(4)[1].assign(who=["p", "p", "q"])
PEOPLE = ROWS.assign(person=["p", "p", "q"])
MADE = {
    "uniform": dpbn.learn(ROWS, STRUCTURE, 1.0, method="uniform"),
    "icml2020": dpbn.learn(ROWS, STRUCTURE, 1.0, method="icml2020"),
    "icml2020 replaced": dpbn.learn(ROWS, STRUCTURE, 1.0, method="icml2020", neighbors="replace"),
    "optimized": dpbn.learn(ROWS, STRUCTURE, 0.1),
    "stages": dpbn.learn(ROWS, APART, 1.0, stage_one=0.5),
    "gaussian": dpbn.learn(independent(4)[1], independent(4)[0], 1.0, 0.1),
    "summed": dpbn.learn(independent(3, 4)[1], independent(3, 4)[0], 1.0, 0.03),
    "people": dpbn.learn(PEOPLE, STRUCTURE, 1.0, unit="person", max_contributions=2, neighbors="replace"),
    "gaussian replaced": dpbn.learn(
        MANY, independent(4)[0], 1.0, 0.1, unit="who", max_contributions=2, neighbors="replace"
    ),
    "summed replaced": dpbn.learn(independent(4)[1], independent(4)[0], 1.0, 0.03, neighbors="replace"),
    "public": dpbn.learn(ROWS, APART, 1.0, public_cpts={"a": [0.5, 0.5], "b": [0.1, 0.9]}),
    "insecure": dpbn.learn(ROWS, STRUCTURE, 1.0, noise=dpbn.InsecureNoise(0)),
    "exact": dpbn.learn(ROWS, STRUCTURE, method="exact"),
}
DELTA = ("gaussian", "gaussian replaced", "summed", "summed replaced")


@pytest.mark.parametrize("name", DELTA)
def test_the_examples_are_what_they_are_called(name):
    assert {m.mechanism for m in MADE[name].measurements} == {name.split()[0]}
    assert ("replaced" in name) == (MADE[name].guarantee.neighbors == "replace")


def edited(name, tmp_path, edit):
    path = MADE[name].save(tmp_path / "x.json")
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("name", MADE)
def test_what_learn_writes_is_read(name, tmp_path):
    assert dpbn.load_release(edited(name, tmp_path, lambda _: None)).id == MADE[name].id


@pytest.mark.parametrize("name", ["uniform", "icml2020", "optimized", "stages", *DELTA, "people", "insecure"])
def test_a_smaller_claim_is_refused_and_a_larger_one_is_not(name, tmp_path):
    claim = MADE[name].guarantee.epsilon
    barely = 1 - (1e-8 if name in DELTA else 1e-15)  # with delta, up to 1e-9 more is charged than is proved
    for factor, fits in ((0.5, False), (barely, False), (1.0, True), (2.0, True)):
        path = edited(name, tmp_path, lambda d, f=factor: d["guarantee"].update(epsilon=claim * f))
        if fits:
            assert dpbn.load_release(path).guarantee.epsilon == claim * factor
        else:
            with pytest.raises(FormatError, match="must claim what its measurements cost"):
                dpbn.load_release(path)


def _less_loss(document):
    document["guarantee"]["epsilon"] *= 0.5
    for measurement in document["measurements"]:
        measurement["loss"] *= 0.25


def _finer(document):
    document["measurements"][0]["scale"] *= 0.5


def _dropped(document):
    document["measurements"] = []


def _one_dropped(document):
    document["measurements"] = [m for m in document["measurements"] if m["names"] != ["a", "b"]]


def _replaced(document):
    document["guarantee"].update(neighbors="replace", epsilon=9.0)
    for measurement in document["measurements"]:
        measurement["loss"] *= 2


def _all_sampled(document):
    document["guarantee"]["epsilon"] = 1e-5
    for measurement in document["measurements"]:
        measurement["sampling"] = {"rate": "1/10000000000", "group": "1"}


EDITS = {
    "losses lowered": ("uniform", _less_loss, "must be what scale"),
    "losses of Gaussian noise lowered": ("gaussian", _less_loss, "must be what scale"),
    "losses of Gaussian noise lowered to one row's": ("gaussian replaced", _less_loss, "must be what scale"),
    "less noise than charged": ("optimized", _finer, "must be what scale"),
    "measurements taken out": ("uniform", _dropped, "behind the CPT"),
    "one measurement taken out": ("uniform", _one_dropped, "behind the CPT"),
    "neighbours exchanged": ("uniform", lambda d: d["guarantee"].update(neighbors="replace"), "must be what scale"),
    "more rows per person": ("people", lambda d: d["guarantee"].update(max_contributions=3), "must be what scale"),
    "sampling credited to replace": (
        "people",
        lambda d: d["measurements"][0].update(sampling={"rate": "1/10", "group": "1"}),
        "sampling must not be credited",
    ),
    "sampling credited to uniform": (
        "uniform",
        lambda d: [m.update(sampling={"rate": "1/1000000", "group": "1"}) for m in d["measurements"]],
        "icml2020 only",
    ),
    "sampling credited to all tables": ("icml2020", _all_sampled, "behind the CPT"),
    "a delta that promises nothing": ("uniform", lambda d: d["guarantee"].update(delta=1.0), "a delta below 1"),
    "sampling credited to a replaced row": ("icml2020", _replaced, "sampling must not be credited"),
    "delta lowered": ("gaussian", lambda d: d["guarantee"].update(delta=1e-9), "must claim what"),
    "delta forgotten": ("gaussian", lambda d: d["guarantee"].update(delta=0.0), "can be accounted for"),
    "Gaussian tables of two stages": ("gaussian", lambda d: d["measurements"][0].update(stage="later"), "of one stage"),
    "losses beyond reach": ("gaussian", lambda d: [m.update(loss=1.7e308) for m in d["measurements"]], "accounted for"),
    "a loss beyond OpenDP's reach": ("gaussian", lambda d: d["measurements"][0].update(loss=1e5), "must claim what"),
    "losses of summed noise lowered": ("summed", _less_loss, "must be what scale"),
    "summed noise of fewer draws": ("summed", lambda d: d["measurements"][0].update(draws=2), "must claim what"),
    "summed noise of no draws": ("summed", lambda d: d["measurements"][0].pop("draws"), "whole number in 2"),
    "draws that are no number": ("summed", lambda d: d["measurements"][0].update(draws=[7]), "whole number in 2"),
    "draws of other noise": ("uniform", lambda d: d["measurements"][0].update(draws=3), "must be 1"),
    "delta of summed noise lowered": ("summed", lambda d: d["guarantee"].update(delta=1e-9), "must claim what"),
    "delta of summed noise forgotten": ("summed", lambda d: d["guarantee"].update(delta=0.0), "accounted for"),
    "summed tables of two stages": ("summed", lambda d: d["measurements"][0].update(stage="later"), "of one stage"),
    "summed called Laplace": ("summed", lambda d: d["measurements"][0].update(mechanism="laplace"), "must be 1"),
    "summed noise for many rows of a person": (
        "summed replaced",
        lambda d: d["guarantee"].update(neighbors="add-remove", max_contributions=2),
        "one record of a person",
    ),
    "losses of summed noise beyond reach": (
        "summed",
        lambda d: [m.update(loss=1.7e308) for m in d["measurements"]],
        "accounted for",
    ),
    "the hash of another structure": ("uniform", lambda d: d.update(structure_sha256="0" * 64), "match its structure"),
    "exact called private": ("exact", lambda d: d.update(private=True), "must have noise"),
    "endless claim called private": (
        "insecure",
        lambda d: (d.update(private=True), d["guarantee"].update(epsilon=None)),
        "must have noise",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_files_are_refused(edit, tmp_path):
    name, change, reason = EDITS[edit]
    with pytest.raises(FormatError, match=reason):
        dpbn.load_release(edited(name, tmp_path, change))


@pytest.mark.parametrize(
    "bad", ["x", None, 0.5, [1.0], [[1.0, 1.0]], [1.0, -1.0], [1.0, 1e300], [True, True], ["1", "1"], {}]
)
def test_a_prior_that_could_not_be_added_to_counts_is_refused(bad, tmp_path):
    """Whoever loads the file learns it then, not when error bars are asked for."""
    path = edited("uniform", tmp_path, lambda d: d.update(prior={"a": [0.5, 0.5]}))
    assert dpbn.load_release(path).prior == {"a": [0.5, 0.5]}
    with pytest.raises(FormatError, match="prior of 'a' must be an array of shape"):
        dpbn.load_release(edited("uniform", tmp_path, lambda d: d.update(prior={"a": bad})))


@settings(deadline=None, max_examples=50)
@given(
    st.floats(1e-6, 1e6),
    st.sampled_from(["laplace", "gaussian"]),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(1, 1000),
)
def test_privacy_maps_never_charge_less_than_the_exact_cost(scale, mechanism, neighbors, contributions):
    sensitivity = Sensitivity(neighbors, contributions)
    curator = Curator(None, dpbn.SecureNoise(), Budget(1.0), sensitivity)
    loss = Fraction(curator.loss(Request(("a",), scale, mechanism)))
    l2_exact = sensitivity.l2_squared / (2 * Fraction(scale) ** 2)
    assert loss >= (sensitivity.l1 / Fraction(scale) if mechanism == "laplace" else l2_exact)
    assert math.isfinite(loss)


def test_a_loss_below_its_cost_by_less_than_a_float_is_refused():
    with pytest.raises(FormatError, match="must be what scale"):
        _check_loss(Measurement(("a",), [0, 0], "laplace", 3.0, 1 / 3), Sensitivity())  # below a third


@pytest.mark.parametrize("name", ["uniform", "stages"])
def test_tables_cannot_be_called_levels_of_one_gradual_release(name, tmp_path):
    """Then all of them would cost what one does."""

    def one_ladder(document):
        for measurement in document["measurements"]:
            measurement["ladder"] = "1/0"
        document["guarantee"]["epsilon"] = max(m["loss"] for m in document["measurements"])

    with pytest.raises(FormatError, match="one table at different scales"):
        dpbn.load_release(edited(name, tmp_path, one_ladder))


def test_a_table_that_two_stages_measured_is_not_two_levels(tmp_path):
    """Its noise was drawn twice, at two scales; `icml2020` without sampling does that to every table."""

    def ladders(document):
        scales = {}
        for measurement in document["measurements"]:
            table = "/".join(measurement["names"])
            measurement["ladder"] = f"{table}{scales.setdefault(table, []).count(measurement['scale'])}"
            scales[table].append(measurement["scale"])
        document["guarantee"]["epsilon"] *= 0.95

    with pytest.raises(FormatError, match="must be of method optimized"):
        dpbn.load_release(edited("icml2020 replaced", tmp_path, ladders))


def test_a_table_shown_twice_is_not_two_levels(tmp_path):
    def twice(document):
        document["measurements"] += [dict(document["measurements"][0]) for _ in range(2)]
        for measurement in document["measurements"][-2:]:
            measurement["ladder"] = "9/0"

    with pytest.raises(FormatError, match="one table at different scales"):
        dpbn.load_release(edited("uniform", tmp_path, twice))


def test_different_tables_at_different_scales_are_not_levels_either(tmp_path):
    def ladder(document):
        for place, measurement in enumerate(document["measurements"]):
            measurement |= {"ladder": "1/0", "scale": measurement["scale"] * (1 + place)}

    with pytest.raises(FormatError, match="one table at different scales"):
        dpbn.load_release(edited("uniform", tmp_path, ladder))


def test_a_gradual_release_has_laplace_noise(tmp_path):
    def ladder(document):
        document["measurements"][0]["ladder"] = "1/0"

    with pytest.raises(FormatError, match="Laplace noise on all records"):
        dpbn.load_release(edited("gaussian", tmp_path, ladder))
