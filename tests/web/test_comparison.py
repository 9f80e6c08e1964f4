"""The comparison in the page, in a real Chromium: pin, change, read, link, clear, by mouse and by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

import pytest

import dpbn
from dpbn.inference import Inference
from dpbn.release import Release

from .conftest import running
from .hostile import hostile_labels, hostile_release
from .test_accessibility import _complaints
from .test_browser import _settled, _state, _until

Visit = Callable[..., Any]
FOCUSED = "document.activeElement.id"


def _link(address: str, **view: Any) -> str:
    return f"{address}/#{quote(json.dumps({'w': 'off', **view}))}"


def _versus(*evidence: list[str], soft: Any = (), targets: Any = ()) -> dict[str, Any]:
    return {"e": list(evidence), "s": list(soft), "t": list(targets)}


def _table(page: Any, node: str) -> dict[str, list[str]]:
    """What is shown of a compared node: state -> baseline, now, difference, interval."""
    rows = page.get_by_role("table", name=f"{node}: baseline, now and difference").locator("tbody tr").all()
    return {row.locator("th").text_content(): row.locator("td").all_text_contents() for row in rows}


def _numbers(text: str) -> list[float]:
    return [float(number.replace("−", "-").replace("±", "")) for number in re.findall(r"[+−±]?\d+(?:\.\d+)?", text)]


def _compared(page: Any, count: int = 1) -> None:
    _until(page, f"document.querySelectorAll('.contrast').length === {count}")
    _until(page, "![...document.querySelectorAll('.contrast .shift')].some((cell) => cell.textContent === '–')")


def _expect(page: Any, release: Release, node: str, now: Any, baseline: Any, level: float = 0.9) -> None:
    """The page shows the library's comparison, to the digits it shows."""
    expected = Inference(release).compare([node], now, baseline)
    low, high = expected.interval(level)
    shown = _table(page, node)
    assert list(shown) == list(release.network.states(node))
    for i, (before, after, difference, interval) in enumerate(shown.values()):
        sides = (expected.second.values[i], expected.first.values[i])
        for text, value in zip((before, after), sides, strict=True):
            if text not in ("<0.1", ">99.9"):
                assert float(text) == pytest.approx(100 * value, abs=0.051)
        assert _numbers(difference) == pytest.approx([100 * expected.values[i]], abs=0.051)
        ends = _numbers(interval)
        assert [ends[0], ends[-1]] == pytest.approx([100 * low[i], 100 * high[i]], abs=0.051)


def test_pin_change_and_read(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(f"{alarm_address}/#%7B%22w%22:%22off%22%7D")
    assert page.locator("#comparison").is_hidden()
    _settled(page, lambda: _state(page, "BP LOW").click())
    page.get_by_role("button", name="Compare with this").click()
    assert page.locator("#baseline-list").text_content() == "BP = LOW"
    page.locator("#graph .header", has_text=re.compile("^CO")).first.click()
    page.get_by_role("button", name="Compare the selected node").click()
    _compared(page)
    assert "The evidence is that of the baseline" in page.locator("#comparison-state").text_content()
    _settled(page, lambda: _state(page, "BP HIGH").click())
    assert page.locator("#baseline-list").text_content() == "BP = LOW"  # stays what it was
    assert page.locator("#evidence-list .name").text_content() == "BP = HIGH"
    _compared(page)
    _until(page, "live.textContent.includes('Against the baseline: CO ')")
    _expect(page, alarm, "CO", {"BP": "HIGH"}, {"BP": "LOW"})
    assert page.locator("#comparison-state").text_content() == ""
    page.locator("#level").select_option("0.5")
    _until(page, "document.getElementById('comparison-key').textContent.includes('50 % interval')")
    _compared(page)
    _expect(page, alarm, "CO", {"BP": "HIGH"}, {"BP": "LOW"}, 0.5)
    _settled(page, lambda: page.locator("#retract-all").click())  # against no evidence
    _compared(page)
    _expect(page, alarm, "CO", {}, {"BP": "LOW"}, 0.5)


def test_the_keyboard_is_enough_to_compare(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(_link(alarm_address, n="HR"))
    page.locator("#pin").focus()
    page.keyboard.press("Enter")  # without evidence: the prior; the selected node is the first to be compared
    assert "no evidence (the prior)" in page.locator("#baseline-list").text_content()
    _compared(page)
    page.keyboard.press("/")
    page.keyboard.type("HRBP")
    page.keyboard.press("Enter")
    _settled(page, lambda: page.keyboard.press("Enter"))
    _compared(page)
    _expect(page, alarm, "HR", {"HRBP": "LOW"}, {})
    page.get_by_role("button", name="Stop comparing HR").focus()
    page.keyboard.press("Enter")
    assert page.locator(".contrast").count() == 0
    assert page.evaluate(FOCUSED) == "comparison"
    page.locator("#unpin").focus()
    page.keyboard.press("Enter")
    assert page.locator("#comparison").is_hidden() and page.evaluate(FOCUSED) == "pin"
    assert "Baseline cleared" in page.locator("#live").text_content()


def test_a_link_holds_the_baseline(visit: Visit, alarm: Release, alarm_address: str) -> None:
    baseline = {"CVP": [0.2, 1.0, 0.5], "BP": "HIGH"}
    versus = _versus(["BP", "HIGH"], soft=[["CVP", baseline["CVP"]]], targets=["HR", "CO"])
    page = visit(_link(alarm_address, e=[["BP", "LOW"]], v=versus))
    _compared(page, 2)
    assert page.locator("#baseline-list .name").all_text_contents() == ["BP = HIGH", "CVP ≈ 20 : 100 : 50"]
    for node in ("HR", "CO"):
        _expect(page, alarm, node, {"BP": "LOW"}, baseline)
    _settled(page, lambda: _state(page, "HRBP LOW").click())
    page.get_by_role("button", name="Stop comparing HR").click()
    page.get_by_role("button", name="Copy link").click()
    other = visit(page.url)
    _compared(other)
    _expect(other, alarm, "CO", {"BP": "LOW", "HRBP": "LOW"}, baseline)
    other.locator("#unpin").click()
    _until(other, "location.hash && !decodeURIComponent(location.hash).includes('\"v\"')")


def test_what_a_release_does_not_have_is_said(visit: Visit, alarm_address: str) -> None:
    page = visit(_link(alarm_address, v=_versus(["NOBODY", "HOME"], targets=["CO", "NOTHING"])))
    assert "does not have: NOBODY = HOME; NOTHING." in page.locator("#trouble").text_content()
    assert page.locator("#comparison").is_hidden()  # the prior would be another baseline
    some = visit(_link(alarm_address, v=_versus(["NOBODY", "HOME"], ["BP", "LOW"], targets=["CO"])))
    _compared(some)
    assert some.locator("#baseline-list").text_content() == "BP = LOW"
    for strange in (3, "x", [], {"e": 3, "t": {}}, None):
        assert visit(_link(alarm_address, v=strange)).locator("#trouble").is_hidden()


def test_an_observed_node_is_not_compared(visit: Visit, alarm_address: str) -> None:
    view = _versus(["BP", "LOW"], ["HR", "LOW"], targets=["BP", "HR", "HRBP", "CO"])
    page = visit(_link(alarm_address, e=[["BP", "HIGH"], ["HRBP", "LOW"]], v=view, n="CVP"))
    _until(page, "document.querySelectorAll('.contrast')[3]?.textContent.includes('.')")
    notes = page.locator("#compared-list > li").all()
    told = [note.locator("p.quiet").last.text_content() for note in notes]
    assert [text.split(":")[0] for text in told[:3]] == [
        "Observed on both sides",
        "Observed in the baseline",
        "Observed now",
    ]
    assert page.locator("#compared-list .scroll:visible").count() == 1
    assert page.locator("#comparison-trouble").text_content() == ""
    assert page.locator("#add-compared").is_enabled()
    _settled(page, lambda: _state(page, "CVP LOW").click())
    assert page.locator("#add-compared").is_disabled()


def _certain(asia: Release) -> Release:
    """Nobody was in Asia."""
    cpts = dict(asia.network.cpts) | {"asia": [1.0, 0.0]}
    return replace(asia, network=dpbn.BayesianNetwork(asia.structure, cpts))


def test_impossible_evidence_on_either_side_is_said(visit: Visit, asia: Release) -> None:
    with running(_certain(asia)) as address:
        page = visit(_link(address, e=[["smoke", "yes"]], v=_versus(["asia", "no"], targets=["lung"])))
        _until(page, "document.getElementById('comparison-trouble').textContent !== ''")
        assert "The baseline cannot happen" in page.locator("#comparison-trouble").text_content()
        assert set(page.locator(".contrast .shift").all_text_contents()) == {"–"}
        assert page.locator("#trouble").is_hidden()  # the evidence itself is answered
        page.locator("#pin").click()
        _compared(page)
        assert page.locator("#comparison-trouble").text_content() == ""
        _settled(page, lambda: _state(page, "asia no").click())
        assert "The evidence now cannot happen" in page.locator("#comparison-state").text_content()
        assert set(page.locator(".contrast .shift").all_text_contents()) == {"–"}
        assert page.locator("#pin").is_disabled()
        page.locator("#unpin").click()
        assert page.evaluate("document.activeElement.getAttribute('aria-labelledby')") == "evidence-heading"
        page.close()


def test_a_release_without_intervals_shows_differences(visit: Visit, asia: Release) -> None:
    bare = Release(asia.network, asia.guarantee, asia.allocation, asia.private, asia.method)
    with running(bare) as address:
        page = visit(_link(address, e=[["smoke", "yes"]], v=_versus(["smoke", "no"], targets=["dysp"])))
        _compared(page)
        assert "nothing to compute intervals from" in page.locator("#comparison-key").text_content()
        assert page.get_by_role("columnheader", name="interval").count() == 0
        expected = 100 * Inference(bare).compare("dysp", {"smoke": "yes"}, {"smoke": "no"}).values
        shown = [_numbers(row[2])[0] for row in _table(page, "dysp").values()]
        assert shown == pytest.approx(list(expected), abs=0.051)
        page.close()


def test_the_comparison_of_an_earlier_question_does_not_stay(visit: Visit, alarm: Release, alarm_address: str) -> None:
    page = visit(_link(alarm_address, e=[["BP", "LOW"]], v=_versus(targets=["CO"])))
    _compared(page)
    held: list[Any] = []
    page.route("**/api/compare", lambda route: held.append(route) if not held else route.continue_())
    posteriors: list[Any] = []
    page.route("**/api/posteriors", lambda route: posteriors.append(route))
    _state(page, "BP NORMAL").click()
    page.get_by_text("BP = NORMAL", exact=True).wait_for()
    assert set(page.locator(".contrast .shift").all_text_contents()) == {"–"}  # before the answer has come
    page.unroute("**/api/posteriors")
    _settled(page, lambda: posteriors[0].continue_())
    assert set(page.locator(".contrast .shift").all_text_contents()) == {"–"}
    page.get_by_text("Being compared").wait_for()
    assert held
    _settled(page, lambda: _state(page, "BP HIGH").click())
    _compared(page)
    held[0].continue_()
    page.wait_for_timeout(500)  # a chance for what must not happen
    _expect(page, alarm, "CO", {"BP": "HIGH"}, {})
    assert page.get_by_text("Being compared").count() == 0


def test_a_comparison_that_fails_says_so(visit: Visit, alarm_address: str) -> None:
    page = visit(_link(alarm_address))
    problem = json.dumps({"type": "urn:dpbn:problem:too-large", "detail": "no room"})
    page.route("**/api/compare", lambda route: route.fulfill(status=422, body=problem))
    page.goto(_link(alarm_address, e=[["BP", "LOW"]], v=_versus(targets=["CO"])))
    page.get_by_text("No comparison: no room").wait_for()
    page.locator("#unpin").click()
    assert page.get_by_text("No comparison: no room").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1366, 1000, 400])
def test_it_can_be_read_by_everybody(visit: Visit, alarm_address: str, scheme: str, width: int) -> None:
    view = _versus(["BP", "LOW"], soft=[["CVP", [0.2, 1, 0.5]]], targets=["CO", "EXPCO2", "BP"])
    link = _link(alarm_address, e=[["BP", "HIGH"]], v=view, n="CO")
    page = visit(link, color_scheme=scheme, viewport={"width": width, "height": 800})
    _until(page, "document.querySelectorAll('.contrast')[1]?.textContent.includes('.')")
    cells = "[...document.querySelectorAll('.scroll:not([hidden]) .contrast :is(th, td)')]"
    _until(page, f"!{cells}.some((cell) => cell.textContent === '–')")
    cut = page.evaluate(f"{cells}.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)")
    assert cut == []
    assert page.evaluate("document.getElementById('panel').scrollWidth <= document.getElementById('panel').clientWidth")
    assert _complaints(page) == []


def test_hostile_names_are_compared_as_text(visit: Visit) -> None:
    labels = hostile_labels()
    release = hostile_release(labels)
    nodes = release.network.nodes
    evidence = [[nodes[0], release.network.states(nodes[0])[0]]]
    kept = [nodes[i] for i in range(1, len(nodes), 25)] + [next(node for node in nodes if len(node) > 4000)]
    with running(release) as address:
        page = visit(_link(address, v=_versus(*evidence, targets=kept), n=nodes[1]))
        _compared(page, len(set(kept)))
        assert page.evaluate("window.hacked") is None
        assert page.locator("#comparison script, #comparison img, #comparison svg").count() == 0
        panel = "(() => { const its = document.getElementById('panel'); return its.scrollWidth <= its.clientWidth; })()"
        assert page.evaluate(panel)
        assert unquote(page.url.partition("#")[2]).count('"v"') == 1
        page.close()
