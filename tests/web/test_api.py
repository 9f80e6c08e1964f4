"""The JSON API alone: answers equal the library's, errors are typed, the description is true."""

from __future__ import annotations

import json
import math
import re
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import jsonschema
import pandas
import pytest
from starlette.testclient import TestClient

import dpbn
from dpbn.errors import MissingExtraError
from dpbn.inference import Inference
from dpbn.support import supports
from dpbn.web import create_app
from dpbn.web.app import SECURITY_HEADERS
from dpbn.web.limits import Limits, Memory
from dpbn.web.service import ANSWERS
from dpbn.web.view import box_size

from .conftest import make_release, release_without_arcs


def _valid(client: TestClient, schema: str, document: Any) -> None:
    components = client.get("/openapi.json").json()["components"]
    jsonschema.validate(document, {"$ref": f"#/components/schemas/{schema}", "components": components})


def test_posteriors_are_the_librarys(client: TestClient, asia: dpbn.Release) -> None:
    question = {"evidence": {"xray": "yes"}, "soft": {"smoke": [0.2, 1.0]}}
    found = client.post("/api/posteriors", json=question).json()
    _valid(client, "Posteriors", found)
    ask, evidence = Inference(asia), {"xray": "yes", "smoke": [0.2, 1.0]}
    assert found["probability"] == pytest.approx(ask.probability(evidence))
    for node, values in ask.posteriors(evidence).items():
        assert found["posteriors"][node] == pytest.approx(list(values))


def test_likelihoods_beyond_every_float_are_answered(client: TestClient) -> None:
    """Their product leaves the range of floats: P(evidence) is then told by its logarithm."""
    question = {"soft": {"smoke": [1e300, 2e300], "asia": [1e300, 1e300]}}
    for kind, schema in (("posteriors", "Posteriors"), ("probability", "Probability")):
        answer = client.post(f"/api/{kind}", json=question)
        assert answer.status_code == 200
        _valid(client, schema, answer.json())
        assert answer.json()["probability"] is None
        assert 600 * math.log(10) < answer.json()["log_probability"] < 600 * math.log(10) + 1


def test_other_questions_are_the_librarys(client: TestClient, asia: dpbn.Release) -> None:
    ask, evidence = Inference(asia), {"dysp": "yes"}
    mpe = client.post("/api/mpe", json={"evidence": evidence}).json()
    _valid(client, "Assignment", mpe)
    assert (mpe["assignment"], mpe["probability"]) == (ask.mpe(evidence)[0], pytest.approx(ask.mpe(evidence)[1]))
    best = client.post("/api/map", json={"evidence": evidence, "targets": ["lung", "bronc"]}).json()
    _valid(client, "Assignment", best)
    assert best["assignment"] == ask.map(["lung", "bronc"], evidence)[0]
    table = client.post("/api/query", json={"evidence": evidence, "targets": ["lung", "bronc"]}).json()
    _valid(client, "Table", table)
    assert table["values"] == [pytest.approx(list(row)) for row in ask.query(["lung", "bronc"], evidence).values]
    probability = client.post("/api/probability", json={"evidence": evidence}).json()
    _valid(client, "Probability", probability)
    assert probability["probability"] == pytest.approx(ask.probability(evidence))


def test_error_bars_are_the_librarys(client: TestClient, asia: dpbn.Release) -> None:
    ask, evidence = Inference(asia), {"dysp": "yes"}
    found = client.post("/api/intervals", json={"evidence": evidence, "level": 0.5}).json()
    _valid(client, "Intervals", found)
    for node, bars in ask.intervals(evidence).items():
        for part in ("total", "privacy", "sampling"):
            low, high = bars.interval(0.5, part)
            assert found["intervals"][node][part] == [pytest.approx(pair) for pair in zip(low, high, strict=True)]
    best = ask.mpe(evidence)[0]
    judged = client.post("/api/stability", json={"evidence": evidence, "assignment": best}).json()
    _valid(client, "Stability", judged)
    assert judged["stability"] == ask.stability(best, evidence)
    assert client.post("/api/stability", json={"evidence": evidence}).status_code == 422  # nothing to judge


def test_a_level_next_to_one_is_answered(client: TestClient) -> None:
    assert client.post("/api/intervals", json={"level": 1 - 2**-53}).status_code == 200


def test_a_release_without_noise_has_no_error_bars() -> None:
    network = dpbn.load_network("asia")
    release = dpbn.learn(network.sample(100, seed=0), network.structure, epsilon=1.0, method="exact")
    with TestClient(create_app(release)) as client:
        view = client.get("/api/release").json()
        assert view["offers"] == {"intervals": bool(release.measurements)} == {"intervals": False}
        assert client.post("/api/intervals", json={}).status_code == 422


def test_weak_rows_are_counted(client: TestClient, asia: dpbn.Release) -> None:
    view = client.get("/api/release").json()
    support = supports(asia.structure, asia.measurements)
    assert {node["name"]: node["weak_rows"] for node in view["nodes"]} == {
        node: int(its.below_floor.sum()) for node, its in support.items()
    }


def test_answers_that_lean_on_weak_rows_are_the_librarys() -> None:
    asia = make_release("asia", epsilon=1.0, noise=dpbn.InsecureNoise(1))  # with other noise there may be no weak row
    with TestClient(create_app(asia)) as client:
        _weak_rows_are_the_librarys(client, asia)


def _weak_rows_are_the_librarys(client: TestClient, asia: dpbn.Release) -> None:
    ask, evidence = Inference(asia), {"tub": "yes", "smoke": [0.2, 1.0]}
    found = client.post("/api/weak-rows", json={"evidence": {"tub": "yes"}, "soft": {"smoke": [0.2, 1.0]}}).json()
    _valid(client, "WeakRows", found)
    assert found["behind"], "tuberculosis is rare"
    for node in set(asia.network.nodes) - {"tub"}:
        expected = [(row.node, row.parents, pytest.approx(row.weight)) for row in ask.weak_rows([node], evidence)]
        behind = found["behind"].get(node, {"rows": [], "share": 0.0})
        rows = [found["rows"][place] for place in behind["rows"]]
        assert [(row["node"], row["parents"], row["weight"]) for row in rows] == expected
        totals = [sum(row["weight"] for row in rows if row["node"] == name) for name in asia.network.nodes]
        assert behind["share"] == pytest.approx(max(totals))
    assert "tub" not in found["behind"]
    assert client.post("/api/weak-rows", json={"evidence": {"nobody": "yes"}}).status_code == 422


def test_the_release_as_the_page_sees_it(client: TestClient, asia: dpbn.Release) -> None:
    view = client.get("/api/release").json()
    _valid(client, "Release", view)
    assert [node["name"] for node in view["nodes"]] == list(asia.network.nodes)
    assert view["private"] is True and view["id"] == asia.id
    assert {node["name"]: node["epsilon"] for node in view["nodes"]} == pytest.approx(dict(asia.allocation))


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"evidence": {"nothing": "yes"}}, 422, "wrong-question"),
        ({"evidence": {"smoke": "perhaps"}}, 422, "wrong-question"),
        ({"evidence": {"smoke": 1}}, 422, "wrong-question"),
        ({"evidence": ["smoke"]}, 422, "wrong-question"),
        ({"soft": {"smoke": [1]}}, 422, "wrong-question"),
        ({"soft": {"smoke": [1, -1]}}, 422, "wrong-question"),
        ({"soft": {"smoke": [1e-308, 1e300], "xray": [1e-308, 1e300]}}, 422, "wrong-question"),
        ({"soft": {"smoke": "yes"}}, 422, "wrong-question"),
        ({"soft": {"smoke": [0, 0]}}, 422, "impossible-evidence"),
        ({"soft": {"smoke": [1, 2]}, "evidence": {"smoke": "yes"}}, 422, "wrong-question"),
        ({"level": 2}, 422, "wrong-question"),
        ({"surprise": 1}, 422, "wrong-question"),
        ([], 422, "wrong-question"),
    ],
)
def test_wrong_questions_become_problems(client: TestClient, body: Any, status: int, kind: str) -> None:
    answer = client.post("/api/posteriors", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    _valid(client, "Problem", answer.json())
    assert answer.json()["type"] == f"urn:dpbn:problem:{kind}"
    assert answer.json()["detail"]


def test_impossible_evidence_is_said_to_be() -> None:
    network = dpbn.load_network("asia")
    cpts = dict(network.cpts) | {"asia": [1.0, 0.0]}
    release = dpbn.Release(
        dpbn.BayesianNetwork(network.structure, cpts),
        dpbn.learn(network.sample(10, seed=0), network.structure, epsilon=1.0, method="exact").guarantee,
        {},
        False,
        "exact",
    )
    body = {"evidence": {"asia": network.states("asia")[1]}}
    with TestClient(create_app(release)) as client:
        answer = client.post("/api/posteriors", json=body)
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:dpbn:problem:impossible-evidence")
        assert client.post("/api/probability", json=body).json() == {"probability": 0.0, "log_probability": None}


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b'{"level": NaN}', b"[" * 100_000, b'{"level": ' + b"9" * 6000 + b"}", b'{"a": "\\ud800"}']
)
def test_broken_bodies_are_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/posteriors", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_bodies_are_limited(client: TestClient) -> None:
    big = b'{"evidence": {"' + b"a" * 300_000 + b'": "yes"}}'
    kind = {"Content-Type": "application/json"}
    assert client.post("/api/posteriors", content=big, headers=kind).status_code == 413
    in_pieces = (big[i : i + 65536] for i in range(0, len(big), 65536))  # no Content-Length
    assert client.post("/api/posteriors", content=in_pieces, headers=kind).status_code == 413
    assert client.post("/api/posteriors", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.post("/api/posteriors", content=b"{}").status_code == 415


def test_every_answer_carries_the_security_headers(client: TestClient) -> None:
    answers = [
        client.get("/"),
        client.get("/assets/explorer.js"),
        client.get("/assets/style.css"),
        client.get("/api/release"),
        client.get("/openapi.json"),
        client.get("/nowhere"),
        client.get("/api/posteriors"),
        client.get("/assets/%2e%2e/app.py"),
        client.post("/api/posteriors", json={"evidence": {"nothing": "yes"}}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 200, 404, 405, 404, 422]
    for answer in answers:
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_assets_are_sent_once(client: TestClient) -> None:
    first = client.get("/assets/explorer.js")
    again = client.get("/assets/explorer.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_no_page_loads_anything_from_elsewhere(client: TestClient) -> None:
    for name in ("", "assets/explorer.js", "assets/graph.js", "assets/panel.js", "assets/style.css"):
        text = client.get(f"/{name}").text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text and "innerHTML" not in text


def test_foreign_host_names_are_refused(asia: dpbn.Release) -> None:
    with TestClient(create_app(asia, hosts=("127.0.0.1", "localhost", "::1"))) as client:
        statuses = {
            host: client.get("/api/release", headers={"Host": host}).status_code
            for host in ("localhost", "127.0.0.1:8321", "[::1]:8321", "evil.example", "evil.example:8321", "")
        }
    assert statuses == {
        "localhost": 200,
        "127.0.0.1:8321": 200,
        "[::1]:8321": 200,
        "evil.example": 421,
        "evil.example:8321": 421,
        "": 421,
    }


def test_the_description_names_every_route(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {"/api/release", *(f"/api/{kind}" for kind in ANSWERS)}
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    references = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
    assert references <= set(document["components"]["schemas"])


def test_answers_are_remembered(asia: dpbn.Release) -> None:
    with TestClient(create_app(asia, limits=Limits(remembered_bytes=1400))) as client:
        for state in ("yes", "no", "yes"):
            for node in ("smoke", "asia", "xray"):  # three questions, two remembered: the oldest is forgotten
                one = client.post("/api/posteriors", json={"evidence": {node: state}})
                two = client.post("/api/posteriors", json={"evidence": {node: state}})
                assert one.content == two.content
                assert one.json()["posteriors"][node][0] == pytest.approx(float(state == "yes"))


def test_long_questions_and_large_answers_do_not_fill_the_memory(asia: dpbn.Release) -> None:
    with TestClient(create_app(asia)) as client:
        client.post("/api/posteriors", json={})
        tracemalloc.start()
        for number in range(20):  # fields that the question does not use
            assignment = {f"{number} {place}": "x" for place in range(15_000)}
            assert client.post("/api/posteriors", json={"assignment": assignment}).status_code == 200
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert kept < 5_000_000
    memory = Memory(10_000)
    for number in range(100):
        memory.store(number, bytes(2000))
    memory.store(99, bytes(2000))
    assert [number for number in range(100) if memory.recall(number)] == [96, 97, 98, 99]
    memory.store("huge", bytes(20_000))
    assert memory.recall("huge") is None


def test_a_target_named_thirty_thousand_times_is_refused_at_once(client: TestClient) -> None:
    start = time.process_time()
    answer = client.post("/api/query", json={"targets": ["asia"] * 30_000})
    assert answer.status_code == 422 and answer.json()["detail"] == "targets must be distinct, got ['asia'] twice"
    assert time.process_time() - start < 2


def test_a_joint_table_too_large_to_send_is_refused() -> None:
    release = release_without_arcs(17)
    nodes = list(release.structure.nodes)
    with TestClient(create_app(release)) as client:
        assert client.post("/api/query", json={"targets": nodes[:16]}).status_code == 200
        refused = client.post("/api/query", json={"targets": nodes})
        assert refused.status_code == 422 and refused.json()["type"].endswith("too-large")
        assert "at most 100,000 cells, got 131,072" in refused.json()["detail"]


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, asia: dpbn.Release) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"dpbn\[web\]"):
        create_app(asia)


def test_the_documentation_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explorer.md").read_text()
    for kind in ANSWERS:
        assert f"/api/{kind}" in text
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/explorer.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[0.")


def test_evidence_by_number_is_that_of_the_state_that_holds_it() -> None:
    schema = dpbn.Schema([dpbn.Variable("age", ["young", "old"], cut_points=[50]), dpbn.Variable("ill", ["no", "yes"])])
    structure = dpbn.Structure(schema, dpbn.Dag(schema.names, {"ill": ["age"]}))
    rows = {"age": [20] * 150 + [70] * 2, "ill": ["no"] * 140 + ["yes"] * 12}
    release = dpbn.learn(pandas.DataFrame(rows), structure, 0.5, noise=dpbn.InsecureNoise(1))
    with TestClient(create_app(release, name="ill.release.json")) as client:
        for kind in ("posteriors", "probability", "mpe", "intervals", "weak-rows"):
            asked = [{"evidence": {"age": given}} for given in (71.5, 50, "old")]
            _valid(client, "Question", asked[0])
            answers = [client.post(f"/api/{kind}", json=question).json() for question in asked]
            assert answers[0] == answers[1] == answers[2], kind
            if kind == "weak-rows":
                assert answers[0]["rows"][0]["parents"] == {"age": "old"}
        assert client.post("/api/posteriors", json={"evidence": {"age": True}}).status_code == 422
        assert "a number (young is below 50" in client.post("/api/posteriors", json={"evidence": {"age": "x"}}).text
        assert client.post("/api/stability", json={"assignment": {"age": 50}}).status_code == 422


def test_a_card_has_room_for_its_widest_letters() -> None:
    """Widths as a browser measures them at the size of the labels."""
    for word, wide in (("unknown", 54.6), ("went home", 67.4), ("medium", 49.4)):
        assert box_size("x", [word])[0] - 106 >= wide, word
