"""Two sets of evidence compared, through the API: the library's difference and interval, typed problems, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas
import pytest
from starlette.testclient import TestClient

import dpbn
from dpbn.inference import Inference
from dpbn.web import create_app, service

from .conftest import release_without_arcs
from .test_api import _valid

SMOKER, OTHER = {"smoke": "yes"}, {"smoke": "no"}


def _compare(client: TestClient, targets: list[str], evidence: Any, other: Any, **more: Any) -> Any:
    answer = client.post("/api/compare", json={"targets": targets, "evidence": evidence, "other": other, **more})
    assert answer.status_code == 200, answer.text
    _valid(client, "Comparison", answer.json())
    return answer.json()


def test_a_comparison_is_the_librarys(client: TestClient, asia: dpbn.Release) -> None:
    sides = {"evidence": OTHER, "soft": {"xray": [0.3, 1.0]}}
    found = _compare(client, ["lung", "dysp"], SMOKER, sides, level=0.5)
    expected = Inference(asia).compare(["lung", "dysp"], SMOKER, {**OTHER, "xray": [0.3, 1.0]})
    assert (found["variables"], found["level"]) == (["lung", "dysp"], 0.5)
    assert found["first"]["evidence"] == SMOKER and found["second"]["evidence"] == {**OTHER, "xray": [0.3, 1.0]}
    for key, values in (
        ("first", expected.first.values),
        ("second", expected.second.values),
        ("difference", expected.values),
    ):
        told = found[key] if key == "difference" else found[key]["values"]
        assert np.array(told) == pytest.approx(values), key
    for part in ("total", "privacy", "sampling"):
        ends = np.stack(expected.interval(0.5, part), axis=-1)
        assert np.array(found["intervals"][part]) == pytest.approx(ends), part
    weak = [(row.node, row.parents, pytest.approx(row.weight)) for row in expected.weak_rows]
    assert [(row["node"], row["parents"], row["weight"]) for row in found["weak_rows"]] == weak


def test_the_interval_is_that_of_the_difference(client: TestClient) -> None:
    """Errors that both answers share cancel: of the same evidence there is nothing left."""
    found = _compare(client, ["dysp"], SMOKER, {"evidence": SMOKER})
    assert found["difference"] == [0, 0] and found["intervals"]["total"] == [[0, 0], [0, 0]]
    alone = client.post("/api/intervals", json={"evidence": SMOKER}).json()["intervals"]["dysp"]["total"]
    assert all(high - low > 0.001 for low, high in alone)


def test_what_is_left_out_is_no_evidence(client: TestClient) -> None:
    whole = _compare(client, ["lung"], SMOKER, {})
    short = client.post("/api/compare", json={"targets": ["lung"], "evidence": SMOKER}).json()
    assert short == whole and whole["second"]["evidence"] == {}
    assert _compare(client, ["lung"], SMOKER, {"evidence": OTHER}) != whole  # `other` is part of what is remembered


def test_other_evidence_may_be_a_number() -> None:
    schema = dpbn.Schema([dpbn.Variable("age", ["young", "old"], cut_points=[50]), dpbn.Variable("ill", ["no", "yes"])])
    structure = dpbn.Structure(schema, dpbn.Dag(schema.names, {"ill": ["age"]}))
    rows = {"age": [20] * 150 + [70] * 50, "ill": ["no"] * 140 + ["yes"] * 60}
    release = dpbn.learn(pandas.DataFrame(rows), structure, 1.0, noise=dpbn.InsecureNoise(1))
    with TestClient(create_app(release)) as client:
        by_number = _compare(client, ["ill"], {"age": 20}, {"evidence": {"age": 71.5}})
        assert by_number == _compare(client, ["ill"], {"age": "young"}, {"evidence": {"age": "old"}})


def test_a_public_table_has_no_error() -> None:
    network = dpbn.load_network("asia")
    rows = network.sample(2000, seed=1)
    public = dpbn.learn(rows, network.structure, 1.0, method="uniform", public_cpts={"lung": network.cpt("lung")})
    with TestClient(create_app(public)) as client:
        found = _compare(client, ["lung"], SMOKER, {"evidence": OTHER})
    assert found["difference"] == pytest.approx([0.09, -0.09])
    assert np.array(found["intervals"]["total"]) == pytest.approx(np.array([[0.09, 0.09], [-0.09, -0.09]]), abs=1e-6)


def test_a_release_without_noise_has_no_interval() -> None:
    network = dpbn.load_network("asia")
    exact = dpbn.learn(network.sample(500, seed=0), network.structure, epsilon=1.0, method="exact")
    with TestClient(create_app(exact)) as client:
        found = _compare(client, ["dysp"], SMOKER, {"evidence": OTHER})
    assert found["intervals"] is None and found["weak_rows"] == []
    assert found["difference"] == pytest.approx(Inference(exact).compare("dysp", SMOKER, OTHER).values)


@pytest.mark.parametrize(
    ("question", "kind", "detail"),
    [
        ({"evidence": SMOKER, "targets": []}, "wrong-question", "targets must name at least one node"),
        ({"evidence": SMOKER, "targets": ["smoke"]}, "wrong-question", "not be evidence as well, got ['smoke']"),
        ({"other": {"evidence": {"lung": "no"}}, "targets": ["lung"]}, "wrong-question", "evidence as well"),
        ({"other": {"evidence": {"nobody": "no"}}, "targets": ["lung"]}, "wrong-question", "got 'nobody'"),
        ({"other": {"evidence": {"smoke": "maybe"}}, "targets": ["lung"]}, "wrong-question", "got 'maybe'"),
        ({"other": {"targets": ["lung"]}, "targets": ["lung"]}, "wrong-question", "other must only have the fields"),
        ({"other": ["smoke"], "targets": ["lung"]}, "wrong-question", "other must be an object"),
        ({"other": {"evidence": SMOKER, "soft": {"smoke": [1, 2]}}, "targets": ["lung"]}, "wrong-question", "both"),
        ({"soft": {"smoke": [0, 0]}, "targets": ["lung"]}, "impossible-evidence", "evidence must be possible"),
        ({"other": {"soft": {"smoke": [0, 0]}}, "targets": ["lung"]}, "impossible-evidence", "other must be possible"),
        ({"targets": ["asia"] * 30_000}, "wrong-question", "targets must be distinct"),
    ],
)
def test_wrong_comparisons_become_problems(client: TestClient, question: Any, kind: str, detail: str) -> None:
    answer = client.post("/api/compare", json=question)
    assert (answer.status_code, answer.json()["type"]) == (422, f"urn:dpbn:problem:{kind}")
    _valid(client, "Problem", answer.json())
    assert detail in answer.json()["detail"]


def test_comparisons_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the cells of the answer, and by those met on the way to it, before anything is drawn."""
    release = release_without_arcs(20)
    monkeypatch.setattr("dpbn.uncertainty.error_bars.ErrorBars", None)
    with TestClient(create_app(release), raise_server_exceptions=False) as client:
        for count, told in (
            (14, "at most 10,000 cells, got 16,384"),
            (20, "way to a comparison must have at most 500,000 cells"),
        ):
            refused = client.post("/api/compare", json={"targets": list(release.structure.nodes[:count])})
            assert (refused.status_code, refused.json()["type"]) == (422, "urn:dpbn:problem:too-large")
            assert told in refused.json()["detail"]


def test_one_node_is_compared_whatever_it_takes(monkeypatch: pytest.MonkeyPatch, asia: dpbn.Release) -> None:
    """Its error bars are shown, so is its difference."""
    monkeypatch.setattr(service, "COMPARED_WORK", 1)
    with TestClient(create_app(replace(asia))) as client:
        _compare(client, ["lung"], SMOKER, {})
        assert client.post("/api/compare", json={"targets": ["lung", "tub"]}).status_code == 422
