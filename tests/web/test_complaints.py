"""What the explorer says when it cannot answer, and that it shows nothing else as if it were an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dpbn
from dpbn.release import Release

from .conftest import PATIENCE, running
from .test_browser import WITHOUT_BARS, _settled, _state, _until

Visit = Callable[..., Any]
ASKING_ONCE = '{"w":"off"}'


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ('{"e":[["NOBODY","HOME"],["BP","LOW"]],"w":"off"}', "does not have: NOBODY = HOME."),
        ('{"e":[["BP","ABSENT"]],"s":[["CVP",[1]]],"w":"off"}', "does not have: BP = ABSENT; CVP."),
        ('{"e":[[{"toString":1},null]],"w":"off"}', 'does not have: {"toString":1} = null.'),
        ("{broken", "cannot be read"),
        ("[1]", "cannot be read"),
    ],
)
def test_a_complaint_about_a_link_stays_until_the_user_acts(
    visit: Visit, alarm_address: str, link: str, complaint: str
) -> None:
    page = visit(f"{alarm_address}/#{link}")
    page.wait_for_timeout(300)
    assert page.locator("#trouble").is_visible()
    assert complaint in page.locator("#trouble").text_content()
    _settled(page, lambda: _state(page, "BP HIGH").click())
    assert page.locator("#trouble").is_hidden()


def _assert_no_answer(page: Any, prior: float) -> None:
    """Dashes, empty bars, and the prior named as what it is."""
    assert set(page.locator("#graph .value").all_text_contents()) == {"–"}
    assert {float(bar.get_attribute("width")) for bar in page.locator("#graph .bar").all()} == {0.0}
    shown = _state(page, "xray yes").get_attribute("aria-label")
    assert shown == f"xray yes: no answer, prior {100 * prior:.1f} %"
    page.locator("#graph .header", has_text="xray").click()
    assert set(page.locator("#node-detail .number:not(.range)").all_text_contents()) == {"–"}


def test_impossible_evidence_has_no_answers(visit: Visit, asia: Release) -> None:
    cpts = dict(asia.network.cpts) | {"asia": [1.0, 0.0]}
    network = dpbn.BayesianNetwork(asia.structure, cpts)
    certain = Release(network, asia.guarantee, asia.allocation, asia.private, asia.method)
    with running(certain) as address:
        page = visit(address)
        assert _state(page, "xray yes").locator(".value").text_content() != "–"
        _settled(page, lambda: _state(page, "asia no").click())
        _assert_no_answer(page, float(dpbn.Inference(network).query(["xray"]).values[0]))
        _settled(page, lambda: page.locator("#retract-all").click())
        assert "–" not in page.locator("#graph .value").all_text_contents()
        page.close()


def test_a_server_that_has_stopped(browser: Any, asia: Release) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    with running(asia) as address:
        page.goto(f"{address}/#{ASKING_ONCE}")
        page.wait_for_selector("html[data-settled]", state="attached")
    _settled(page, lambda: _state(page, "smoke yes").click())
    assert page.locator("#trouble").text_content() == "The server does not answer: is dpbn serve still running?"
    assert page.locator("#probability").text_content() == "–"
    _assert_no_answer(page, float(dpbn.Inference(asia).query(["xray"]).values[0]))
    page.close()


def test_a_search_without_a_match_says_so(visit: Visit, alarm_address: str) -> None:
    page = visit(alarm_address)
    page.keyboard.press("/")
    page.keyboard.type("zzz")
    page.keyboard.press("Enter")
    assert page.get_by_text("No node matches “zzz”").is_visible()
    page.keyboard.press("Backspace")
    assert page.locator("#no-match").is_hidden()
    page.locator("#search").fill("hrbp")
    page.keyboard.press("Enter")
    _until(page, "document.activeElement.getAttribute('aria-label')?.startsWith('HRBP LOW:')")
    assert page.locator("#no-match").is_hidden()


def test_a_search_prefers_names_that_begin_with_what_is_typed(visit: Visit, alarm_address: str) -> None:
    page = visit(alarm_address)
    page.locator("#search").fill("sa")
    page.keyboard.press("Enter")
    _until(page, "document.activeElement.getAttribute('aria-label')?.startsWith('SAO2 ')")  # not HRSAT


def test_what_is_found_does_not_lie_below_the_buttons(visit: Visit, alarm_address: str) -> None:
    page = visit(f"{alarm_address}/{WITHOUT_BARS}", viewport={"width": 390, "height": 844})
    page.locator("#search").fill("hrbp")
    page.keyboard.press("Enter")
    _until(page, "document.activeElement.getAttribute('aria-label')?.startsWith('HRBP LOW:')")
    card = page.get_by_role("group", name="HRBP, 3 states").bounding_box()
    buttons = page.get_by_role("group", name="Zoom").bounding_box()
    assert card["y"] + card["height"] <= buttons["y"] or card["x"] >= buttons["x"] + buttons["width"]


def test_a_complaint_has_the_width_of_a_phone(visit: Visit, alarm_address: str) -> None:
    page = visit(f"{alarm_address}/#" + '{"e":[["NOBODY","HOME"]],"w":"off"}')
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_timeout(300)
    box = page.locator("#trouble").bounding_box()
    assert box["width"] > 250 and abs(box["x"] + box["width"] / 2 - 180) < 2
