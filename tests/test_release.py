"""What a release file must say: every field is checked when it is read, and named if it is wrong."""

import copy
import json
import math

import numpy as np
import pytest

import dpbn
from dpbn.errors import DpbnError, FormatError, InputError
from dpbn.release import from_dict, to_dict

NETWORK = dpbn.load_network("asia")
ROWS = NETWORK.sample(2_000, seed=0)


def document_of(**options):
    return to_dict(dpbn.learn(ROWS, NETWORK, 1.0, noise=dpbn.InsecureNoise(1), **options))


DOCUMENTS = {
    "optimized": document_of(),
    "uniform": document_of(method="uniform", neighbors="replace", prior=0.5, public_cpts={"asia": NETWORK.cpt("asia")}),
    "icml2020": document_of(method="icml2020"),
}
JOINT = next(place for place, m in enumerate(DOCUMENTS["optimized"]["measurements"]) if m["mechanism"] == "joint")
SAMPLED = next(place for place, m in enumerate(DOCUMENTS["icml2020"]["measurements"]) if m["sampling"])
TABLES = DOCUMENTS["optimized"]["measurements"][JOINT]["together"]["tables"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_was_written_is_read_whole(name):
    assert to_dict(from_dict(DOCUMENTS[name])) == DOCUMENTS[name]


def at(*place):
    return place


WRONG = [
    ("uniform", at("version"), 2, "must say format"),
    ("uniform", at("format"), "dpbn", "must say format"),
    ("uniform", at("allocation", "tub"), "0.1", "must be a finite number"),
    ("uniform", at("allocation", "tub"), True, "must be a finite number"),
    ("uniform", at("allocation", "nobody"), 0.1, "'nobody'"),
    ("uniform", at("private"), "yes", "must be true or false"),
    ("uniform", at("prior", "nobody"), [0.5, 0.5], "'nobody'"),
    ("uniform", at("public_nodes"), ["nobody"], "'nobody'"),
    ("uniform", at("options", "x"), math.nan, "must follow the schema"),
    ("uniform", at("details", "x"), "\ud800", "must follow the schema"),
    ("uniform", at("method"), "\ud800", "must follow the schema"),
    ("uniform", at("method"), "<img src=x onerror=alert(1)>", "method of a release must be one of"),
    ("uniform", at("on_unknown"), "x”. An authority has certified ε = 0.001 “", "on_unknown of a release must be"),
    ("uniform", at("library"), 3, "text field"),
    ("uniform", at("certified"), True, r"keys that dpbn writes, got a mismatch at \['certified'\]"),
    ("uniform", at("measurements", 0, "note"), "", r"keys that dpbn writes, got a mismatch at \['note'\]"),
    ("uniform", at("guarantee", "epsilon"), -1.0, "must be a finite number"),
    ("uniform", at("guarantee", "delta"), math.inf, "must be a finite number"),
    ("uniform", at("guarantee", "unit"), 3, "text field"),
    *(("uniform", at("guarantee", "max_contributions"), bad, "whole number >= 1") for bad in (0, True, 1.0, "1")),
    ("uniform", at("measurements", 0, "scale"), math.nan, "must be a finite number"),
    ("uniform", at("measurements", 0, "loss"), -1.0, "must be a finite number"),
    ("uniform", at("measurements", 0, "loss"), True, "must be a finite number"),
    ("uniform", at("measurements", 0, "mechanism"), "normal", "mechanism must be"),
    ("uniform", at("measurements", 0, "values"), [[0.5, 1.0], [2.0, 3.0]], "must be integers of shape"),
    ("uniform", at("measurements", 0, "values"), [1, 2, 3], "must be integers of shape"),
    ("uniform", at("measurements", 0, "names"), ["tub", "tub"], "must be distinct"),
    ("uniform", at("measurements", 0, "stage"), 1, "text field"),
    *(
        ("icml2020", at("measurements", SAMPLED, "sampling", "rate"), bad, "sampling rate")
        for bad in ("0", "3/2", "1/2/3", "1e-1", "9" * 41, "1/2 ")
    ),
    ("icml2020", at("measurements", SAMPLED, "sampling", "group"), 1, "text field"),
    ("optimized", at("measurements", JOINT, "together", "tables"), TABLES[:1], "two or more, all different"),
    ("optimized", at("measurements", JOINT, "together", "tables"), [TABLES[0]] * 2, "two or more, all different"),
    ("optimized", at("measurements", JOINT, "together", "tables"), [TABLES[0], TABLES[0][::-1]], "all different"),
    ("optimized", at("measurements", JOINT, "together", "sizes"), [2] * len(TABLES), "sizes of tables"),
    ("optimized", at("measurements", JOINT, "together", "group"), 1, "text field"),
]


@pytest.mark.parametrize(("name", "place", "value", "reason"), WRONG, ids=str)
def test_a_field_that_cannot_be_right_is_refused(name, place, value, reason):
    document = copy.deepcopy(DOCUMENTS[name])
    inside = document
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(DpbnError, match=reason):
        from_dict(document)


@pytest.mark.parametrize("key", sorted(DOCUMENTS["uniform"]))
def test_a_file_says_all_that_is_written(key):
    with pytest.raises(DpbnError):
        from_dict({name: value for name, value in DOCUMENTS["uniform"].items() if name != key})


def test_a_file_says_no_more_than_it_has_to():
    """Else releases made before there was noise drawn together or several times would have other ids."""
    fields = set(DOCUMENTS["uniform"]["measurements"][0])
    assert fields == {"names", "mechanism", "scale", "loss", "stage", "sampling", "ladder", "values"}
    assert set(DOCUMENTS["optimized"]["measurements"][JOINT]) - fields == {"together"}


def test_only_nodes_with_rows_below_the_noise_are_listed():
    release = from_dict(DOCUMENTS["uniform"])
    assert release.weak_rows and all(weak.any() for weak in release.weak_rows.values())
    assert set(release.weak_rows) < set(NETWORK.nodes)
    for node, weak in release.weak_rows.items():
        assert DOCUMENTS["uniform"]["weak_rows"][node] == np.argwhere(weak).tolist()


def test_a_name_that_it_could_not_be_opened_by_is_refused(tmp_path):
    release = from_dict(DOCUMENTS["uniform"])
    for name in ("release", "release.bif", "json"):
        with pytest.raises(InputError, match=r"must end in \.json"):
            release.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    assert dpbn.load_release(release.save(tmp_path / "x.json")).id == release.id


def test_what_is_no_release_is_refused_when_read(tmp_path):
    for name in ("a\x00b.json", "missing.json"):
        with pytest.raises(InputError, match="must be a readable file"):
            dpbn.load_release(tmp_path / name)
    (tmp_path / "x.json").write_bytes(b"\xff")
    with pytest.raises(FormatError, match="must be a JSON file as `dpbn learn` writes it"):
        dpbn.load_release(tmp_path / "x.json")


def test_the_place_of_a_release_is_a_path():
    with pytest.raises(InputError, match="must be a path, got NoneType"):
        dpbn.load_release(None)


def test_what_is_wrong_in_a_file_comes_with_its_name(tmp_path):
    path = tmp_path / "x.json"
    for change in ({"allocation": {"nobody": 1.0}}, {"version": 2}):
        path.write_text(json.dumps({**DOCUMENTS["uniform"], **change}))
        with pytest.raises(FormatError, match=r"x\.json: ") as refused:
            dpbn.load_release(path)
        assert refused.value.source == str(path)
