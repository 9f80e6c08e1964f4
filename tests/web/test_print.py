"""A printed report holds what the page holds: nothing folded, nothing cut."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from dpbn.release import Release
from dpbn.report import write_report

PAPER = 717  # pixels of an A4 page between its margins


def test_a_printed_report_is_whole(browser: Any, alarm: Release, tmp_path: Path) -> None:
    write_report(alarm, tmp_path / "report.html")
    page = browser.new_page(viewport={"width": PAPER, "height": 1045})
    page.goto((tmp_path / "report.html").as_uri())
    tables = page.locator("table")
    assert page.locator("details:not([open])").count() > 30
    page.emulate_media(media="print")
    assert tables.count() == len(alarm.network.nodes) + 2
    seen = tables.evaluate_all("(all) => all.map((t) => [t.checkVisibility(), t.getBoundingClientRect().right])")
    assert all(visible and right <= PAPER for visible, right in seen)
    cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    assert page.locator(".scroll, .figure, pre, main").evaluate_all(cut) == 0
    page.close()


def test_a_table_too_wide_for_a_phone_is_shaded_on_the_side_where_there_is_more(
    browser: Any, alarm: Release, tmp_path: Path
) -> None:
    write_report(alarm, tmp_path / "report.html", intervals=False)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((tmp_path / "report.html").as_uri())
    table = page.locator("#nodes .scroll").first
    table.evaluate("(its) => its.scrollIntoView()")

    def edges() -> list[int]:
        """How light it is near the left edge and near the right one, just below the head."""
        picture = Image.open(BytesIO(page.screenshot(clip={**table.bounding_box(), "height": 60}))).convert("L")
        return [picture.getpixel((x, 36)) for x in (3, picture.width - 4)]

    left, right = edges()
    assert right < 225 and left > 250
    table.evaluate("(its) => its.scrollTo(its.scrollWidth, 0)")
    left, right = edges()
    assert left < 225 and right > 250
    page.close()
