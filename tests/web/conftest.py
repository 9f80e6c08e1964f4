"""Releases, running servers and a real browser for the explorer's tests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

import dpbn
from dpbn.web import create_app
from dpbn.web.app import build_app
from dpbn.web.limits import Limits
from dpbn.web.server import LOOPBACK, configuration

PATIENCE = 240  # seconds that a busy machine may take for what takes one
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def make_release(name: str, *, epsilon: float = 3.0, noise: Any = None) -> dpbn.Release:
    network = dpbn.load_network(name)
    return dpbn.learn(network.sample(5000, seed=1), network.structure, epsilon=epsilon, method="uniform", noise=noise)


@pytest.fixture(scope="session")
def asia() -> dpbn.Release:
    return make_release("asia")


@pytest.fixture(scope="session")
def alarm() -> dpbn.Release:
    return make_release("alarm")


def release_without_arcs(nodes: int) -> dpbn.Release:
    names = tuple(f"v{i}" for i in range(nodes))
    schema = dpbn.Schema([dpbn.Variable(name, ("a", "b")) for name in names])
    structure = dpbn.Structure(schema, dpbn.Dag(names, {}))
    network = dpbn.BayesianNetwork(structure, {name: [0.5, 0.5] for name in names})
    return dpbn.learn(network.sample(100, seed=0), structure, 1.0, method="uniform")


@pytest.fixture(scope="module")
def client(asia: dpbn.Release) -> Iterator[TestClient]:
    with TestClient(create_app(asia, name="asia.release.json"), raise_server_exceptions=False) as opened:
        yield opened


@contextmanager
def running(release: dpbn.Release, *, name: str = "test.release.json", limits: Limits | None = None) -> Iterator[str]:
    """The address of a real server on a free loopback port, in a thread of its own."""
    limits = limits or Limits()
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(configuration(build_app(release, name=name, limits=limits, hosts=LOOPBACK), limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()


@pytest.fixture(scope="session")
def alarm_address(alarm: dpbn.Release) -> Iterator[str]:
    with running(alarm, name="alarm.release.json") as address:
        yield address


@pytest.fixture(scope="session")
def browser(require_system: Callable[[str], str]) -> Iterator[Any]:
    """A real Chromium."""
    playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = require_system("chromium")
    with playwright_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


def _is_error(message: Any) -> bool:
    """A refused question (422) is an answer, though Chromium logs it as an error."""
    return message.type == "error" and "status of 422" not in message.text


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """visit(address) -> a page that has shown its first answer; console errors and exceptions fail the test."""
    contexts, trouble = [], []

    def opened(address: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1366, "height": 768}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda message: trouble.append(message.text) if _is_error(message) else None)
        page.on("dialog", lambda dialog: (trouble.append("a dialog opened"), dialog.dismiss()))
        page.goto(address)
        page.wait_for_selector("html[data-settled]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not trouble, trouble
