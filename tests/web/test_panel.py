"""The explorer's details: sliders, focus, names that JavaScript objects have, and room for what is shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest

import dpbn
from dpbn.errors import QueryError
from dpbn.inference import Inference
from dpbn.release import Release
from dpbn.web.question import Question
from dpbn.web.service import ANSWERS

from .conftest import PATIENCE, running
from .test_browser import WITHOUT_BARS, _expect_posteriors, _settled, _state, _until

Visit = Callable[..., Any]
FOCUSED = "document.activeElement.getAttribute('aria-label')"


@pytest.fixture(scope="module")
def odd() -> Release:
    """A chain of nodes named as what every object has, and as numbers, with rows that rest on few records."""
    names = ("constructor", "toString", "__proto__", "2", "1")
    schema = dpbn.Schema(tuple(dpbn.Variable(name, ("no", "yes")) for name in names))
    structure = dpbn.Structure(schema, dpbn.Dag(names, {b: (a,) for a, b in pairwise(names)}))
    cpts = {name: [[0.99, 0.01], [0.3, 0.7]] if structure.parents(name) else [0.99, 0.01] for name in names}
    data = dpbn.BayesianNetwork(structure, cpts).sample(1000, seed=0)
    return dpbn.learn(data, structure, epsilon=0.5, method="uniform", noise=dpbn.InsecureNoise(0))


def test_nodes_named_as_what_every_object_has(visit: Visit, odd: Release) -> None:
    assert odd.weak_rows
    with running(odd) as address:
        page = visit(address)
        for name in odd.network.nodes:
            _settled(page, lambda name=name: _state(page, f"{name} no").click())
            _expect_posteriors(page, odd, {name: "no"})
            _until(page, "document.querySelectorAll('#graph .whisker.privacy[d]').length > 0")
            _settled(page, lambda: page.locator("#retract-all").click())
        page.get_by_label("All nodes (MPE)").check()
        page.wait_for_selector("#best-answer .stability")
        assert page.locator("#best-answer th").all_text_contents() == list(odd.network.nodes)
        assert page.locator("#graph .in-best").count() == len(odd.network.nodes)
        assert page.locator("#trouble").is_hidden()
        page.close()


@pytest.mark.parametrize("refused", [False, True])
def test_a_stability_that_takes_its_time_or_fails_says_so(
    visit: Visit, asia: Release, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, compute = ANSWERS["stability"]
    go_on = threading.Event()

    def slow(engine: Inference, question: Question) -> dict[str, Any]:
        assert go_on.wait(PATIENCE)
        if refused:
            raise QueryError("no answer")
        return compute(engine, question)

    monkeypatch.setitem(ANSWERS, "stability", (lane, slow))
    with running(asia) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        page.get_by_label("All nodes (MPE)").check()
        page.get_by_text("Stability is being computed").wait_for()
        go_on.set()
        if refused:
            page.get_by_text("No stability: no answer").wait_for()
        else:
            page.wait_for_selector("#best-answer .stability")
        assert page.get_by_text("Stability is being computed").count() == 0
        page.close()


def test_sliders_do_not_move_each_other(visit: Visit, asia: Release) -> None:
    """Through equal likelihoods, which say nothing, to others."""
    with running(asia) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        page.locator("#graph .header", has_text="smoke").click()
        yes, no = page.get_by_label("Likelihood of yes"), page.get_by_label("Likelihood of no")
        _settled(page, lambda: yes.fill("50"))
        no.focus()
        for _ in range(50):
            page.keyboard.press("ArrowLeft")
        assert page.locator("#evidence-list li").count() == 0
        assert page.locator("#retract-all").is_disabled()
        _until(page, "probability.textContent === '1' && !location.hash.includes('0.5')")
        _expect_posteriors(page, asia, {})
        assert (yes.input_value(), no.input_value()) == ("50", "50")
        for _ in range(20):
            page.keyboard.press("ArrowLeft")
        assert (yes.input_value(), no.input_value()) == ("50", "30")
        _until(page, "decodeURIComponent(location.hash).includes('[0.5,0.3]')")  # 0.32 is on the way
        assert json.loads(unquote(page.url.partition("#")[2]))["s"] == [["smoke", [0.5, 0.3]]]
        _until(page, f"probability.textContent === '{Inference(asia).probability({'smoke': [0.5, 0.3]}):#.3g}'")
        _expect_posteriors(page, asia, {"smoke": [0.5, 0.3]})
        page.close()


def test_soft_evidence_of_a_node_with_more_states_than_sliders(visit: Visit) -> None:
    states = tuple(f"state {i}" for i in range(130))
    structure = dpbn.Structure(dpbn.Schema((dpbn.Variable("many", states),)), dpbn.Dag(("many",), {}))
    network = dpbn.BayesianNetwork(structure, {"many": np.full(130, 1 / 130)})
    release = dpbn.learn(network.sample(3000, seed=0), structure, epsilon=5.0, method="uniform")
    with running(release) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        page.locator("#graph .header").click()
        _settled(page, lambda: page.get_by_label("Likelihood of state 0", exact=True).fill("0"))
        assert page.locator("#trouble").is_hidden()
        assert _state(page, "many state 0").locator(".value").text_content() == "0"
        page.close()


def test_removing_by_keyboard_keeps_the_focus_near(visit: Visit, alarm_address: str) -> None:
    page = visit(f'{alarm_address}/#{{"e":[["BP","LOW"],["HRBP","LOW"],["CVP","LOW"]],"w":"off","b":"map","t":["CO"]}}')
    page.get_by_label("Remove HRBP = LOW").focus()
    _settled(page, lambda: page.keyboard.press("Enter"))
    assert page.evaluate(FOCUSED) == "Remove CVP = LOW"
    _settled(page, lambda: page.keyboard.press("Enter"))
    assert page.evaluate(FOCUSED) == "Remove BP = LOW"
    for name in ("first", "second"):
        page.locator("#save-name").fill(name)
        page.keyboard.press("Enter")
    page.get_by_label("Delete the set first").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "Delete the set second"
    page.get_by_label("Remove BP = LOW").focus()
    _settled(page, lambda: page.keyboard.press("Enter"))
    here = "document.activeElement.getAttribute('aria-labelledby')"
    assert page.evaluate(here) == "evidence-heading"
    page.get_by_label("Remove CO").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(here) == "best-heading"


def test_the_promise_is_shown_as_text(visit: Visit, asia: Release) -> None:
    guarantee = replace(asia.guarantee, unit="patient_id*", max_contributions=4)
    with running(replace(asia, guarantee=guarantee)) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        page.locator("summary").click()
        shown = page.locator("#statement").text_content()
        assert "Who is protected? Every single person, as named by the column “patient_id*”" in shown
        assert "\\" not in shown and "**" not in shown
        page.close()


def test_what_is_shown_has_room(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(f'{alarm_address}/#{{"n":"CATECHOL","b":"mpe"}}')
    page.wait_for_selector("#graph .in-best")
    _until(page, "document.querySelector('.detail').matches('.with-range')")
    for label in page.locator("#graph .in-best").all():
        text, bar = label.locator(".label").bounding_box(), label.locator(".track").bounding_box()
        assert text["x"] + text["width"] <= bar["x"]
    heads = page.locator(".detail thead th").all()
    assert all(head.evaluate("(th) => th.scrollWidth <= th.clientWidth") for head in heads)
    everything = [[node, alarm.network.states(node)[0]] for node in alarm.network.nodes]
    full = visit(f"{alarm_address}/#{quote(json.dumps({'e': everything, 'w': 'off'}))}")
    assert full.locator("#evidence-list li").count() == len(everything)
    assert full.locator("#node-heading").bounding_box()["y"] < 400
    same = "(card) => ['title', 'weak'].map((part) => getComputedStyle(card.querySelector('.' + part)).fill)"
    title, triangle = full.locator("#graph .observed", has=full.locator(".weak")).first.evaluate(same)
    assert title == triangle  # an orange triangle on an orange title would not be seen


@pytest.mark.parametrize(("epsilon", "shown"), [(0.123441, "0.1235"), (0.1, "0.1"), (12345.6, "12350")])
def test_the_budget_shown_is_no_less_than_it_is(visit: Visit, asia: Release, epsilon: float, shown: str) -> None:
    with running(replace(asia, guarantee=replace(asia.guarantee, epsilon=epsilon))) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        assert page.locator("#release-badges li").first.text_content() == f"ε = {shown}"
        page.close()


def test_a_phone_shows_the_budget(visit: Visit, alarm_address: str) -> None:
    page = visit(f"{alarm_address}/{WITHOUT_BARS}", viewport={"width": 390, "height": 844})
    assert page.get_by_text("ε = 3", exact=True).is_visible()
    assert page.locator(".top").bounding_box()["height"] < 80
    assert page.locator("#search").bounding_box()["width"] > 110


def test_a_narrow_window_shows_the_name_before_badges_and_cuts_no_badge(visit: Visit, asia: Release) -> None:
    guarantee = replace(asia.guarantee, unit="number of the patient")
    with running(replace(asia, guarantee=guarantee)) as address:
        page = visit(f"{address}/{WITHOUT_BARS}", viewport={"width": 950, "height": 700})
        assert page.locator("#release-name").evaluate("(name) => name.scrollWidth <= name.clientWidth")
        box = page.locator("#release-badges").bounding_box()
        badges = [badge.bounding_box() for badge in page.locator("#release-badges li").all()]
        seen = [badge for badge in badges if badge["y"] < box["y"] + box["height"]]
        assert 0 < len(seen) < len(badges)
        assert all(badge["x"] + badge["width"] <= box["x"] + box["width"] for badge in seen)
        page.close()


def test_a_public_table_is_marked_where_it_can_be_read(visit: Visit) -> None:
    name = "a node with a rather long name"
    schema = dpbn.Schema((dpbn.Variable(name, ("no", "yes")), dpbn.Variable("b", ("no", "yes"))))
    structure = dpbn.Structure(schema, dpbn.Dag((name, "b"), {"b": (name,)}))
    network = dpbn.BayesianNetwork(structure, {name: [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]})
    rows = network.sample(1000, seed=0)
    public = dpbn.learn(rows, structure, epsilon=1.0, method="uniform", public_cpts={name: [0.5, 0.5]})
    with running(public) as address:
        page = visit(address)
        title, badge = page.locator("#graph .title").first, page.locator("#graph .badge-text")
        ends, begins = title.bounding_box(), badge.bounding_box()
        assert ends["x"] + ends["width"] <= begins["x"], (ends, begins)
        _settled(page, lambda: _state(page, f"{name} no").click())
        fill = "mark => getComputedStyle(mark).fill"
        assert badge.evaluate(fill) == title.evaluate(fill)
        assert "Public table, no budget spent" in page.locator("#panel").inner_text()
        page.close()


def test_long_labels_are_read_and_cut_points_are_told(visit: Visit) -> None:
    name, states = "systolischer_blutdruck_bei_aufnahme_0001", ("nach Hause", "verstorben", "überwiesen")
    stay = dpbn.Variable(name, states, cut_points=(3, 7.5))
    structure = dpbn.Structure(dpbn.Schema([stay]), dpbn.Dag((name,), {}))
    rows = dpbn.BayesianNetwork(structure, {name: [0.5, 0.3, 0.2]}).sample(1000, seed=0)
    with running(dpbn.learn(rows, structure, epsilon=1.0, method="uniform")) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        assert page.locator("#graph .label").all_text_contents() == list(states)
        title = page.locator("#graph .title").text_content()
        assert title.startswith("systolisch") and "…" in title and title.endswith("_0001")
        ends, begins = page.locator("#graph .title").bounding_box(), page.locator("#graph .budget-back").bounding_box()
        assert ends["x"] + ends["width"] <= begins["x"]
        assert page.locator("#release-badges li").last.text_content() == "1 node"
        assert page.locator("#graph").get_attribute("aria-label").startswith("Network of 1 node.")
        page.locator("#graph .header").click()
        assert (
            "nach Hause: below 3, verstorben: 3 to below 7.5, überwiesen: 7.5 or more"
            in page.locator("#node-detail").inner_text()
        )
        assert "3 to below 7.5" in _state(page, f"{name} verstorben").locator("title").text_content()
        _settled(page, lambda: _state(page, f"{name} verstorben").click())
        whole = "(text) => text.scrollWidth <= text.clientWidth"  # which evidence is set can be read
        assert page.locator("#evidence-list .name").evaluate(whole)
        page.close()
