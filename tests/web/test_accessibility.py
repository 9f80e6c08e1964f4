"""axe-core, the checker of the field, finds nothing to complain about: explorer and report, at rest and in use."""

from __future__ import annotations

from collections.abc import Callable
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
