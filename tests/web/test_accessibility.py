"""axe-core, the checker of the field, finds nothing to complain about: explorer and report, at rest and in use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpbn.release import Release
from dpbn.report import write_report

from .test_browser import _settled, _state

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")


def _complaints(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response
    assert len(found["passes"]) > 10, "the checker must have looked"
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for rule in found["violations"]
        for node in rule["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_explorer(visit: Callable[..., Any], alarm_address: str, scheme: str) -> None:
    page = visit(alarm_address, color_scheme=scheme)
    assert _complaints(page) == []
    _settled(page, lambda: _state(page, "BP LOW").click())
    page.get_by_label("All nodes (MPE)").check()
    page.wait_for_selector("#best-answer table")
    assert _complaints(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report(browser: Any, alarm: Release, tmp_path: Path, scheme: str) -> None:
    write_report(alarm, tmp_path / "report.html")
    page = browser.new_page(color_scheme=scheme)
    page.goto((tmp_path / "report.html").as_uri())
    assert _complaints(page) == []
    page.evaluate("document.body.append(document.createElement('button'))")
    assert [complaint.split(" ")[0] for complaint in _complaints(page)] == ["button-name"]  # it would have said so
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_graph_of_the_report_stands_out_in_both_schemes(
    browser: Any, alarm: Release, tmp_path: Path, scheme: str
) -> None:
    public = replace(alarm, public_nodes=("HISTORY",))
    write_report(public, tmp_path / "report.html", intervals=False)
    page = browser.new_page(color_scheme=scheme)
    page.goto((tmp_path / "report.html").as_uri())
    found = page.evaluate(
        """() => [...document.querySelectorAll('.figure g')].flatMap(node => {
            const [box, track, share] = node.querySelectorAll('rect'), paper = getComputedStyle(box).fill
            const marks = [getComputedStyle(box).stroke, ...(share ? [getComputedStyle(share).fill] : [])]
            return [...marks, ...[...node.querySelectorAll('text')].map(text => getComputedStyle(text).fill)]
                .map(colour => [colour, paper])
        })"""
    )
    assert len({colour for colour, _ in found}) > 4
    assert {_luminance(paper) > 0.5 for _, paper in found} == {scheme == "light"}
    assert [pair for pair in found if _contrast(*pair) < 3] == []
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)
