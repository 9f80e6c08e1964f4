"""The page in a real Chromium: load, click, update, retract, explain, share, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpbn
from dpbn.inference import Inference
from dpbn.release import Release
from dpbn.support import supports
from dpbn.uncertainty.leaning import leanings

from .conftest import PATIENCE, make_release, running
from .hostile import hostile_labels, hostile_release

Visit = Callable[..., Any]
WITHOUT_BARS = "#%7B%22w%22:%22off%22%7D"  # a large network's error bars take long to prepare
LOOK = "document.querySelector('#graph > g').getAttribute('transform')"


def _state(page: Any, text: str) -> Any:
    return page.locator(f'#graph [role="button"][aria-label^="{text}:"]')


def _shown(page: Any) -> dict[str, float]:
    """The percentages the page shows, by "NODE STATE"."""
    rows = page.evaluate(
        """[...document.querySelectorAll('#graph .state')].map(
            (row) => [row.getAttribute('aria-label').split(':')[0], row.querySelector('.value').textContent])"""
    )
    return {name: _number(text) for name, text in rows}


def _number(text: str) -> float:
    return {"<0.1": 0.05, ">99.9": 99.95}.get(text) or float(text)


def _until(page: Any, expression: str, seconds: float = PATIENCE) -> None:
    """Wait for a condition on the page; the page's own policy forbids waiting inside it with eval."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"never became true: {expression}"
        page.wait_for_timeout(20)


def _settled(page: Any, act: Callable[[], Any]) -> None:
    """Do something and wait for the answer to be drawn."""
    before = int(page.evaluate("document.documentElement.dataset.settled"))
    act()
    _until(page, f"Number(document.documentElement.dataset.settled) > {before}")


def _expect_posteriors(page: Any, release: Release, evidence: dict[str, Any]) -> None:
    expected = {
        f"{node} {label}": 100 * float(value)
        for node, values in Inference(release).posteriors(evidence).items()
        for label, value in zip(release.network.states(node), values, strict=True)
    }
    assert _shown(page) == pytest.approx(expected, abs=0.06)


def test_load_click_update_retract(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    assert page.locator("#graph .node").count() == 37
    assert page.locator("#graph .arc").count() == 46
    assert page.locator("#banner").is_hidden()
    assert page.locator("#probability").text_content() == "1"
    _expect_posteriors(page, alarm, {})
    _settled(page, lambda: _state(page, "BP LOW").click())
    assert _state(page, "BP LOW").get_attribute("aria-pressed") == "true"
    _expect_posteriors(page, alarm, {"BP": "LOW"})
    _settled(page, lambda: _state(page, "BP HIGH").click())  # another state of the same node replaces it
    _expect_posteriors(page, alarm, {"BP": "HIGH"})
    assert float(page.locator("#probability").text_content()) == pytest.approx(
        Inference(alarm).probability({"BP": "HIGH"}), rel=0.01
    )
    assert "BP = HIGH" in page.locator("#live").text_content()
    _settled(page, lambda: _state(page, "BP HIGH").click())
    assert page.locator("#evidence-list li").count() == 0
    _expect_posteriors(page, alarm, {})


def test_the_shift_from_the_prior_is_drawn(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    _settled(page, lambda: _state(page, "BP LOW").click())
    prior, now = Inference(alarm).posteriors({})["TPR"], Inference(alarm).posteriors({"BP": "LOW"})["TPR"]
    for label, before, after in zip(alarm.network.states("TPR"), prior, now, strict=True):
        row = _state(page, f"TPR {label}")
        gain, loss = (float(row.locator(f".{kind}").get_attribute("width")) for kind in ("gain", "loss"))
        assert gain == pytest.approx(56 * max(after - before, 0), abs=0.01)
        assert loss == pytest.approx(56 * max(before - after, 0), abs=0.01)


def test_soft_evidence_by_slider(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    page.locator("#graph .header", has_text="HRBP").click()
    slider = page.get_by_label("Likelihood of LOW")
    _settled(page, lambda: slider.fill("20"))
    _expect_posteriors(page, alarm, {"HRBP": [0.2, 1.0, 1.0]})
    assert page.locator("#evidence-list li.soft").count() == 1
    _settled(page, lambda: slider.fill("100"))  # equal likelihoods say nothing
    assert page.locator("#evidence-list li").count() == 0


def test_most_probable_explanations(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    _settled(page, lambda: _state(page, "BP LOW").click())
    page.get_by_label("All nodes (MPE)").check()
    page.wait_for_selector("#best-answer table")
    rows = dict(zip(*(page.locator(f"#best-answer {cell}").all_text_contents() for cell in ("th", "td")), strict=True))
    assert rows == Inference(alarm).mpe({"BP": "LOW"})[0]
    assert page.locator("#graph .in-best").count() == 36
    page.get_by_label("Chosen (MAP)").check()
    page.locator("#graph .header", has_text=re.compile("^CO")).first.click()
    page.get_by_role("button", name="Add the selected node").click()
    _until(page, "document.querySelectorAll('#best-answer th').length === 1")
    best = Inference(alarm).map(["CO"], {"BP": "LOW"})[0]
    assert page.locator("#best-answer td").text_content() == best["CO"]


def test_error_bars_follow_the_answer(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    _settled(page, lambda: _state(page, "BP LOW").click())
    _until(page, "document.querySelectorAll('#graph .whisker.privacy[d]').length > 0")
    bars = Inference(alarm).intervals({"BP": "LOW"})
    low, high = bars["TPR"].interval(0.9)
    for label, bottom, top in zip(alarm.network.states("TPR"), low, high, strict=True):
        text = _state(page, f"TPR {label}").get_attribute("aria-label")
        ends = re.search(r"interval (\S+) to (\S+),", text)
        assert [_number(end) for end in ends.groups()] == pytest.approx([100 * bottom, 100 * top], abs=0.06)
    drawn = "#graph .whisker.{}[d]"
    assert page.locator(drawn.format("privacy")).count() == page.locator(drawn.format("sampling")).count() == 102
    assert page.locator(drawn.format("total")).count() == 0
    page.get_by_label("Total", exact=True).check()
    assert page.locator(drawn.format("total")).count() == 102
    page.get_by_label("No error bars").check()
    assert page.locator("#graph .whisker[d]").count() == 0
    weak = sum(support.below_floor.any() for support in supports(alarm.structure, alarm.measurements).values())
    assert page.locator("#graph .weak").count() == weak > 0


def test_error_bars_of_an_earlier_question_do_not_stay(visit: Visit, alarm: Release, alarm_address: str) -> None:
    """They arrive after the next click and before its answer."""
    page = visit(alarm_address)
    holding, held = {"intervals"}, {}

    def pass_or_hold(route: Any) -> None:
        kind = route.request.url.rpartition("/")[2]
        if kind in holding:
            held[kind] = route
        else:
            route.continue_()

    def until_held(kind: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while kind not in held:
            assert time.monotonic() < deadline, f"never asked: {kind}"
            page.wait_for_timeout(20)
        holding.remove(kind)

    page.route("**/api/*", pass_or_hold)
    _settled(page, lambda: _state(page, "BP LOW").click())
    until_held("intervals")
    holding.add("posteriors")
    _state(page, "BP HIGH").click()
    until_held("posteriors")
    held["intervals"].continue_()
    page.wait_for_timeout(1000)  # a chance for what must not happen
    _settled(page, lambda: held["posteriors"].continue_())
    _until(page, "document.querySelectorAll('#graph .whisker.privacy[d]').length > 0")
    low, high = Inference(alarm).intervals({"BP": "HIGH"})["TPR"].interval(0.9)
    for label, bottom, top in zip(alarm.network.states("TPR"), low, high, strict=True):
        ends = re.search(r"interval (\S+) to (\S+),", _state(page, f"TPR {label}").get_attribute("aria-label"))
        assert [_number(end) for end in ends.groups()] == pytest.approx([100 * bottom, 100 * top], abs=0.06)


def test_answers_that_lean_on_weak_rows_are_marked(visit: Visit, alarm: Release, alarm_address: str) -> None:
    """Visible, said to screen readers, and gone with the evidence that caused it."""
    page = visit(f"{alarm_address}/{WITHOUT_BARS}")
    _settled(page, lambda: _state(page, "INTUBATION ONESIDED").click())  # 3 in 100 records
    evidence = {"INTUBATION": "ONESIDED"}
    expected = {node: its for node, its in leanings(Inference(alarm), evidence).items() if its.share >= 0.1}
    assert 0 < len(expected) < 36
    _until(page, f"document.querySelectorAll('#graph .leans').length === {len(expected)}")
    assert f"{len(expected)} of 37 answers lean on few records" in page.locator("#live").text_content()
    for node in alarm.network.nodes:
        card = page.locator(
            "#graph .node", has=page.locator(f'[aria-label^="{node} {alarm.network.states(node)[0]}:"]')
        )
        drawn = card.locator(".leaning").evaluate("(edge) => getComputedStyle(edge).visibility")
        assert (drawn == "visible") == (node in expected)
        spoken = card.locator(".state").first.get_attribute("aria-label")
        assert ("leans on few records" in spoken) == (node in expected), spoken
    node = next(iter(expected))
    share = re.search(
        r"leans on few records \((\S+) %\)",
        _state(page, f"{node} {alarm.network.states(node)[0]}").get_attribute("aria-label"),
    )
    assert _number(share[1]) == pytest.approx(100 * expected[node].share, abs=0.06)
    page.locator("#search").fill(node)
    page.locator("#search").press("Enter")
    assert (
        str(expected[node].rows[0]).split("|")[0].strip() in page.locator("#node-detail .doubt.marked").text_content()
    )
    _settled(page, lambda: page.locator("#retract-all").click())
    calm = sum(its.share >= 0.1 for its in leanings(Inference(alarm), {}).values())
    _until(page, f"document.querySelectorAll('#graph .leans').length === {calm}")


def test_explanations_carry_their_stability(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    _settled(page, lambda: _state(page, "BP LOW").click())
    page.get_by_label("All nodes (MPE)").check()
    page.wait_for_selector("#best-answer .stability")
    ask = Inference(alarm)
    share = ask.stability(ask.mpe({"BP": "LOW"})[0], {"BP": "LOW"})
    shown = page.locator("#best-answer .stability b").text_content().removesuffix(" %")
    assert _number(shown) == pytest.approx(100 * share, abs=0.06)


def test_a_link_reproduces_the_view(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    _settled(page, lambda: _state(page, "BP LOW").click())
    page.locator("#graph .header", has_text="HRBP").click()
    _settled(page, lambda: page.get_by_label("Likelihood of LOW").fill("40"))
    page.get_by_label("All nodes (MPE)").check()
    page.locator("#zoom-in").click()
    page.wait_for_selector("#best-answer .stability")
    page.get_by_role("button", name="Copy link").click()
    other = visit(page.url)
    other.wait_for_selector("#best-answer .stability")  # comes after the table
    _expect_posteriors(other, alarm, {"BP": "LOW", "HRBP": [0.4, 1.0, 1.0]})
    one, two = ([float(number) for number in re.findall(r"[-\d.]+", tab.evaluate(LOOK))] for tab in (page, other))
    assert two == pytest.approx(one, abs=0.02)
    assert other.locator("#node-heading").text_content() == "HRBP"
    assert other.locator("#best-answer").text_content() == page.locator("#best-answer").text_content()


def test_a_strange_link_is_said_to_be(visit: Visit, alarm_address: str) -> None:
    page = visit(f'{alarm_address}/#{{"e":[["NOBODY","HOME"],["BP","LOW"]]}}')
    assert page.locator("#evidence-list li").count() == 1
    visit(f"{alarm_address}/#%%%")


def test_evidence_sets_are_saved(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    _settled(page, lambda: _state(page, "BP LOW").click())
    page.locator("#save-name").fill("low pressure")
    page.get_by_role("button", name="Save").click()
    _settled(page, lambda: page.locator("#retract-all").click())
    page.goto("about:blank")
    page.goto(alarm_address)
    page.wait_for_selector("html[data-settled]", state="attached")
    _settled(page, lambda: page.get_by_role("button", name="low pressure", exact=True).click())
    _expect_posteriors(page, alarm, {"BP": "LOW"})
    page.get_by_role("button", name="Delete the set low pressure").click()
    assert page.locator("#saved-list li").count() == 0


def test_the_keyboard_is_enough(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(alarm_address)
    page.keyboard.press("/")
    page.keyboard.type("HRBP")
    page.keyboard.press("Enter")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused).startswith("HRBP LOW:")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused).startswith("HRBP NORMAL:")
    _settled(page, lambda: page.keyboard.press("Enter"))
    _expect_posteriors(page, alarm, {"HRBP": "NORMAL"})
    _settled(page, lambda: page.keyboard.press("Delete"))
    _expect_posteriors(page, alarm, {})
    visited = set()
    for key in ["ArrowUp"] * 25 + ["ArrowRight", "ArrowLeft", "ArrowDown"] * 8:
        page.keyboard.press(key)
        visited.add(page.evaluate(focused).split(" ")[0])
    assert len(visited) > 6
    assert page.locator('#graph [tabindex="0"]').count() == 1  # one tab stop: the next one leaves the network
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "zoom-in"


def test_everything_has_a_name(visit: Visit, alarm_address: str) -> None:
    page = visit(alarm_address)
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, input, select, [role=button], [role=group]')].filter(
            (e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map((e) => e.id)"""
    )
    assert nameless == []
    assert page.locator("#graph .node").first.get_attribute("aria-label").startswith("HISTORY, 2 states, parents")


def test_a_laptop_shows_all_of_alarm(visit: Visit, alarm_address: str) -> None:
    page = visit(alarm_address, viewport={"width": 1366, "height": 768})
    canvas = page.locator("#graph").bounding_box()
    for box in (node.bounding_box() for node in page.locator("#graph .node").all()):
        assert box["x"] >= canvas["x"] and box["x"] + box["width"] <= canvas["x"] + canvas["width"]
        assert box["y"] >= canvas["y"] and box["y"] + box["height"] <= canvas["y"] + canvas["height"] + 1
    text = page.locator("#graph .label").first.bounding_box()
    assert text["height"] >= 9  # pixels: small, but read without zooming


def test_seventy_six_nodes_with_zoom_and_pan(visit: Visit) -> None:
    names = tuple(f"n{i}" for i in range(76))
    parents = {names[i]: tuple({names[(i * 7) % i], names[(i * 5) % i]}) for i in range(1, 76)}
    schema = dpbn.Schema(tuple(dpbn.Variable(name, ("no", "yes")) for name in names))
    structure = dpbn.Structure(schema, dpbn.Dag(names, parents))
    generator = np.random.default_rng(0)
    cpts = {n: generator.dirichlet((1, 1), structure.shape(n)[:-1]) for n in names}
    data = dpbn.BayesianNetwork(structure, cpts).sample(2000, seed=0)
    noise = dpbn.InsecureNoise(0)  # other noise may make the finding below impossible
    release = dpbn.learn(data, structure, epsilon=5.0, method="uniform", noise=noise)
    with running(release) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        assert page.locator("#graph .node").count() == 76
        fit = page.evaluate(LOOK)
        page.mouse.move(500, 400)
        page.mouse.wheel(0, -600)
        _until(page, f"{LOOK} !== {json.dumps(fit)}")
        near = page.evaluate(LOOK)
        scale = [float(re.search(r"scale\(([\d.]+)\)", text)[1]) for text in (fit, near)]
        assert scale[1] > 2 * scale[0]
        page.mouse.down()
        page.mouse.move(420, 350, steps=4)
        page.mouse.up()
        _until(page, f"{LOOK} !== {json.dumps(near)}")
        assert page.locator("#evidence-list li").count() == 0  # dragging across states sets nothing
        page.locator("#zoom-fit").click()
        _until(page, f"{LOOK} === {json.dumps(fit)}")
        _settled(page, lambda: _state(page, "n75 yes").click())
        _expect_posteriors(page, release, {"n75": "yes"})
        page.close()


def test_odd_networks_are_shown(visit: Visit) -> None:
    """A node with one state, one with 300, one without arcs."""
    many = tuple(f"state {i}" for i in range(300))
    variables = (dpbn.Variable("one", ("only",)), dpbn.Variable("many", many), dpbn.Variable("alone", ("a", "b")))
    structure = dpbn.Structure(dpbn.Schema(variables), dpbn.Dag(("one", "many", "alone"), {"many": ("one",)}))
    cpts = {"one": [1.0], "many": np.full((1, 300), 1 / 300), "alone": [0.5, 0.5]}
    data = dpbn.BayesianNetwork(structure, cpts).sample(3000, seed=0)
    noise = dpbn.InsecureNoise(
        0
    )  # other noise may make state 100 rarer than 0.001, which is written with a power of ten
    release = dpbn.learn(data, structure, epsilon=5.0, method="uniform", noise=noise)
    with running(release) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        assert page.locator("#graph .state").count() == 1 + 11 + 2
        page.get_by_text("and 289 more").click()
        assert page.locator("#node-detail tbody tr").count() == 120
        _settled(page, lambda: page.get_by_role("button", name="state 100", exact=True).click())
        assert page.locator("#evidence-list").text_content().startswith("many = state 100")
        assert float(page.locator("#probability").text_content()) == pytest.approx(
            Inference(release).probability({"many": "state 100"}), rel=0.01
        )
        page.close()


def test_a_release_that_is_not_private_says_so(visit: Visit) -> None:
    with running(make_release("asia", noise=dpbn.InsecureNoise(1))) as address:
        page = visit(address)
        assert page.locator("#banner").is_visible()
        assert "NOT PRIVATE" in page.locator("#banner").text_content()
        red, green, _ = map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(banner).backgroundColor"))[:3])
        assert red > 150 and green < 60
        page.close()


def test_impossible_evidence_is_explained(visit: Visit, asia: Release) -> None:
    cpts = dict(asia.network.cpts) | {"asia": [1.0, 0.0]}
    certain = Release(
        dpbn.BayesianNetwork(asia.structure, cpts), asia.guarantee, asia.allocation, asia.private, asia.method
    )
    with running(certain) as address:
        page = visit(address)
        _settled(page, lambda: _state(page, f"asia {asia.network.states('asia')[1]}").click())
        assert "cannot happen" in page.locator("#trouble").text_content()
        assert page.locator("#probability").text_content() == "0"
        _settled(page, lambda: _state(page, f"asia {asia.network.states('asia')[0]}").click())
        assert page.locator("#trouble").is_hidden()
        page.close()


def test_two_hundred_hostile_labels_stay_text(visit: Visit) -> None:
    """Every label as a node's name and as a state, set as evidence, saved, linked, explained: nothing runs."""
    labels = hostile_labels()
    assert len(labels) >= 200
    with running(hostile_release(labels), name=labels[0]) as address:
        page = visit(f"{address}/{WITHOUT_BARS}")
        assert page.locator("#graph .node").count() == len(labels)
        rows = page.locator('#graph [role="button"]')
        for index in (0, 3, 7):
            _settled(page, lambda i=index: rows.nth(i).dispatch_event("click"))
            page.locator("#save-name").fill(labels[index][:60] or "x")
            page.locator("#save-form button").click()
        page.get_by_label("All nodes (MPE)").check()
        page.wait_for_selector("#best-answer table")
        page.locator("#add-target").evaluate("(button) => button.disabled || button.click()")
        tags = page.evaluate("[...new Set([...document.querySelectorAll('body *')].map((e) => e.localName))]")
        assert not {"script", "img", "iframe", "object", "style", "foreignObject", "math", "template"} & set(tags)
        assert page.evaluate("window.hacked") is None
        for element in ("script", "img", "iframe", "a[href^='javascript']", "[onerror]", "[onload]", "[onclick]"):
            assert page.locator(f"body {element}").count() == 0
        again = visit(page.url)
        assert again.evaluate("window.hacked") is None
        assert again.locator("#evidence-list li").count() == page.locator("#evidence-list li").count()
        again.close()
        page.close()
