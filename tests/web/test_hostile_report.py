"""The report and the notebook displays in a real Chromium, with 200 hostile labels: nothing runs or is fetched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbn
from dpbn.display import network_html, release_html
from dpbn.inference import Inference
from dpbn.report import write_report

from .conftest import PATIENCE
from .hostile import hostile_labels

LABELS = hostile_labels()
RUNS = "<script>window.hacked=1</script>"
ALERTS = "<img src=x onerror=alert(1)>"
FETCHES = "<img src=https://example.invalid/seen.png>"


class Watched:
    """A page, and everything on it that should not have happened."""

    def __init__(self, context: Any, address: str):
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.trouble: list[str] = []
        self.page.on("dialog", lambda dialog: (self.trouble.append("dialog"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.trouble.append(f"script: {error}"))
        self.page.on("popup", lambda _: self.trouble.append("popup"))
        self.page.on("request", lambda request: request.url == address or self.trouble.append(f"request {request.url}"))
        self.page.goto(address)

    def look_everywhere(self) -> list[str]:
        """Open what is folded, follow what leads within the page, move over it all; then tell what happened."""
        self.page.evaluate("for (const e of document.querySelectorAll('details')) e.open = true")
        for link in self.page.locator("a").all()[:20]:
            link.click()
        self.page.evaluate(
            """for (const kind of ['mouseover', 'focus', 'click'])
                 for (const e of document.querySelectorAll('body *')) e.dispatchEvent(new Event(kind))"""
        )
        self.page.wait_for_timeout(100)
        if self.page.evaluate("window.hacked") is not None:
            self.trouble.append("script ran")
        return self.trouble


@pytest.fixture
def watched(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    contexts = []

    def opened(html: str, *, policy: bool) -> Watched:
        """A file as the custodian opens it; without its own content-security policy only escaping protects."""
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(html, "utf-8")
        contexts.append(browser.new_context(bypass_csp=not policy))
        return Watched(contexts[-1], path.as_uri())

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def release() -> dpbn.Release:
    """40 hostile names, each with five hostile states: few nodes, so that error bars are quick."""
    names, states = LABELS[:40], [LABELS[i : i + 5] for i in range(0, 200, 5)]
    variables = tuple(dpbn.Variable(name, tuple(its)) for name, its in zip(names, states, strict=True))
    parents = {name: (names[i - 1],) for i, name in enumerate(names) if i % 4 == 1}
    structure = dpbn.Structure(dpbn.Schema(variables), dpbn.Dag(tuple(names), parents))
    cpts = {name: np.full(structure.shape(name), 0.2) for name in names}
    data = dpbn.BayesianNetwork(structure, cpts).sample(500, seed=0)
    return dpbn.learn(data, structure, epsilon=40.0, method="uniform")


@pytest.fixture(scope="module")
def report(release: dpbn.Release, tmp_path_factory: pytest.TempPathFactory) -> str:
    page, *_ = write_report(release, tmp_path_factory.mktemp("report") / "report.html", title=LABELS[0])
    return page.read_text("utf-8")


@pytest.mark.parametrize("policy", [True, False], ids=["with its policy", "without any policy"])
def test_two_hundred_hostile_labels_in_a_report(watched: Callable[..., Watched], report: str, policy: bool) -> None:
    seen = watched(report, policy=policy)
    assert seen.look_everywhere() == []
    tags = seen.page.evaluate("[...new Set([...document.querySelectorAll('*')].map((e) => e.localName))]")
    assert not {"script", "img", "iframe", "object", "foreignObject", "math", "template", "base", "link"} & set(tags)
    text = seen.page.evaluate("document.body.textContent")
    assert sum(label in text for label in LABELS[:200]) > 100, "labels are shown as text, but for control characters"


def test_hostile_labels_in_a_notebook(watched: Callable[..., Watched], release: dpbn.Release) -> None:
    answer = Inference(release).query([LABELS[1]], {LABELS[0]: release.network.states(LABELS[0])[0]})
    shown = [network_html(release.network), release_html(release), answer._repr_html_()]
    seen = watched("<!doctype html><meta charset=utf-8>" + "<hr>".join(shown), policy=False)
    assert seen.look_everywhere() == []


@pytest.mark.parametrize("label", [RUNS, ALERTS, FETCHES])
def test_the_watch_sees_what_is_not_escaped(watched: Callable[..., Watched], label: str) -> None:
    seen = watched(f"<!doctype html><body><p>{label}</p>", policy=False)
    deadline = time.monotonic() + PATIENCE
    while not seen.look_everywhere():
        assert time.monotonic() < deadline, "it was not seen"
