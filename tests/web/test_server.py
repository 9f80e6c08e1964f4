"""A real server on a socket: it sheds what is slow, too much or not for it, and keeps answering the rest."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import dpbn
from dpbn.errors import InputError
from dpbn.uncertainty import error_bars
from dpbn.web import create_app, serve
from dpbn.web.app import build_app
from dpbn.web.limits import Limits
from dpbn.web.question import Question
from dpbn.web.service import ANSWERS

from .conftest import PATIENCE, make_release, running


def _connect(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def _status(address: str) -> int:
    return httpx.get(f"{address}/api/release", timeout=PATIENCE).status_code


def _comes_back(address: str) -> None:
    """It answers again, as soon as it has seen who has gone; a hasty limit may cut a slow machine's own question."""
    deadline, seen = time.monotonic() + PATIENCE, []
    while 200 not in seen:
        assert time.monotonic() < deadline, seen
        try:
            seen.append(_status(address))
        except httpx.TransportError as error:
            seen.append(repr(error))


def _is_cut(connection: socket.socket) -> bool:
    try:
        return connection.recv(4096) == b""
    except ConnectionResetError:
        return True


def test_slow_heads_and_silent_connections_are_cut(asia: dpbn.Release) -> None:
    with running(asia, limits=Limits(connection_seconds=0.4)) as address:
        silent, slow = _connect(address), _connect(address)
        slow.sendall(b"POST /api/posteriors HTTP/1.1\r\nHost: localhost\r\n")
        assert _is_cut(silent) and _is_cut(slow)
        _comes_back(address)


def test_a_connection_is_not_cut_while_its_answer_is_computed(
    asia: dpbn.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Error bars of a large network take longer than a connection may idle."""
    lane, compute = ANSWERS["intervals"]

    def slow(engine: dpbn.Inference, question: Question) -> dict[str, Any]:
        time.sleep(1.5)
        return compute(engine, question)

    monkeypatch.setitem(ANSWERS, "intervals", (lane, slow))
    with running(asia, limits=Limits(connection_seconds=0.4)) as address:
        answer = httpx.post(f"{address}/api/intervals", json={}, timeout=PATIENCE)
        assert answer.status_code == 200


def test_networks_behind_error_bars_and_stability_are_drawn_before_anyone_asks(
    asia: dpbn.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {name: threading.Event() for name in ("plausible_truths", "as_released")}
    for name, event in drawn.items():
        draw = getattr(error_bars, name)
        monkeypatch.setattr(error_bars, name, lambda *given, draw=draw, event=event: (event.set(), draw(*given))[1])
    with TestClient(build_app(asia, prepare=True)):
        assert all(event.wait(PATIENCE) for event in drawn.values())


def test_slow_bodies_are_refused(asia: dpbn.Release) -> None:
    with running(asia, limits=Limits(body_seconds=0.3)) as address, _connect(address) as slow:
        slow.sendall(
            b"POST /api/posteriors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        head = slow.recv(4096)
        assert head.startswith(b"HTTP/1.1 408") and b"connection: close" in head.lower()
        assert _status(address) == 200


def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error_of_the_server(asia: dpbn.Release) -> None:
    """Every such client left a traceback on the terminal."""
    coming = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return coming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    head = {"type": "http", "method": "POST", "path": "/api/posteriors", "query_string": b""}
    answer = create_app(asia)(head | {"headers": [(b"content-type", b"application/json")]}, receive, send)
    with ThreadPoolExecutor(1) as elsewhere:  # the browser's tests leave a loop in this thread
        elsewhere.submit(asyncio.run, answer).result()
    assert sent[0]["status"] == 400


def test_oversized_bodies_are_refused_before_they_arrive(asia: dpbn.Release) -> None:
    with running(asia) as address, _connect(address) as greedy:
        greedy.sendall(
            b"POST /api/posteriors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000000000\r\n\r\n{"
        )
        assert greedy.recv(4096).startswith(b"HTTP/1.1 413")


def test_broken_http_is_refused(asia: dpbn.Release) -> None:
    with running(asia) as address:
        for garbage in (b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 20_000, b"GET\r\n\r\n"):
            with _connect(address) as broken:
                broken.sendall(garbage)
                broken.shutdown(socket.SHUT_WR)
                assert broken.recv(64).startswith(b"HTTP/1.1 400")
        assert _status(address) == 200


# httpx closes idle connections beyond a number and an age, among them one that another thread has just been given
KEEP_ALL = httpx.Limits(max_keepalive_connections=None, keepalive_expiry=None)


def test_overload_is_answered_with_503() -> None:
    """One waiting place, many questions at once: each is answered or told to come back; later all is well."""
    alarm = make_release("alarm", noise=dpbn.InsecureNoise(1))  # other noise may make a rare finding impossible: 422
    with (
        running(alarm, limits=Limits(waiting=1, at_once_seconds=0)) as address,
        httpx.Client(base_url=address, timeout=PATIENCE, limits=KEEP_ALL) as client,
    ):
        nodes = alarm.network.nodes

        def post(i: int) -> httpx.Response:
            node = nodes[i % len(nodes)]
            evidence = {node: alarm.network.states(node)[i % 2]}
            return client.post("/api/posteriors", json={"evidence": evidence})

        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(post, range(240)))
        statuses = {answer.status_code for answer in answers}
        assert statuses <= {200, 503} and 200 in statuses and 503 in statuses
        refused = next(answer for answer in answers if answer.status_code == 503)
        assert refused.json()["type"] == "urn:dpbn:problem:overloaded" and refused.headers["retry-after"] == "1"
        assert post(0).status_code == 200


def test_too_many_connections_are_answered_with_503(asia: dpbn.Release) -> None:
    with running(asia, limits=Limits(connections=4)) as address:
        held = [_connect(address) for _ in range(6)]  # taken in this order
        assert _status(address) == 503
        held[0].sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert held[0].recv(64).startswith(b"HTTP/1.1 200")  # who came first is still served
        held[5].sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert held[5].recv(64).startswith(b"HTTP/1.1 503")
        for connection in held:
            connection.close()
        _comes_back(address)


def test_far_too_many_connections_are_cut_at_once(asia: dpbn.Release) -> None:
    """Each would hold a descriptor: without any left, asyncio writes megabytes a second to standard error."""
    with running(asia, limits=Limits(connections=4)) as address:
        held = [_connect(address) for _ in range(20)]
        assert all(_is_cut(connection) for connection in held[8:])
        held[0].sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert held[0].recv(64).startswith(b"HTTP/1.1 200")
        for connection in held:
            connection.close()
        _comes_back(address)


def test_the_command_serves_a_release(asia: dpbn.Release, tmp_path: Path) -> None:
    path = asia.save(tmp_path / "asia.release.json")
    source = str(Path(dpbn.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", "from dpbn.cli import main; main()", "serve", str(path), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line
        view = httpx.get(f"{found[0]}api/release", timeout=PATIENCE).json()
        assert (view["name"], view["id"]) == ("asia.release.json", asia.id)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert process.stderr is not None and "Traceback" not in process.stderr.read()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()


def test_only_releases_are_served(tmp_path: Path) -> None:
    table = tmp_path / "private.csv"
    table.write_text("asia,smoke\nyes,canary-value\n")
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"format": "something"}))
    for path in (table, other):
        done = subprocess.run(
            [sys.executable, "-c", "from dpbn.cli import main; main()", "serve", str(path), "--port", "0"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1])},
            check=False,
        )
        assert done.returncode == 1 and "canary" not in done.stdout + done.stderr


def test_a_port_in_use_is_said(asia: dpbn.Release) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="port 0 takes a free one"):
        serve(asia, port=taken.getsockname()[1])


def test_the_web_never_imports_the_data_layer(asia: dpbn.Release, tmp_path: Path) -> None:
    """Load a release, answer every kind of question, and look at what was imported."""
    code = """
import sys
from starlette.testclient import TestClient
from dpbn.release import load_release
from dpbn.web import create_app
import dpbn.web.server
with TestClient(create_app(load_release(sys.argv[1]))) as client:
    assert client.get("/api/release").status_code == 200
    for kind in ("posteriors", "mpe", "intervals"):
        assert client.post(f"/api/{kind}", json={"evidence": {"smoke": "yes"}}).status_code == 200
bad = [name for name in sys.modules if name == "dpbn.data" or name.startswith("dpbn.data.")]
sys.exit(repr(bad) if bad else 0)
"""
    path = asia.save(tmp_path / "asia.release.json")
    source = str(Path(dpbn.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=PATIENCE, env=environment)


def test_a_short_load_has_no_errors() -> None:
    """The benchmark itself, for two seconds: no figure is asserted, only that nothing fails and a crowd is told."""
    folder = Path(__file__).parents[2] / "benchmarks"
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import web; print(json.dumps(web.run('asia', 8, 2.0, 300)))"
    )
    source = str(Path(dpbn.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": source},
        check=True,
    )
    result = json.loads(done.stdout)
    assert set(result["load"]["statuses"]) == {"200"} and result["load"]["broken_connections"] == 0
    burst = result["burst_of_connections"]
    assert burst["broken"] == 0 and burst["200"] > 0 and burst["503"] > 0
    assert set(result["after_the_burst"]) == {"200"}


def test_ctrl_c_stops_the_command_without_a_word_of_alarm(tmp_path: Path) -> None:
    """Also while error bars are being computed for a client: it is told, and the command ends well."""
    network = dpbn.load_network("alarm")
    release = dpbn.learn(network.sample(500, seed=0), network, 1.0, method="uniform")
    release.save(tmp_path / "r.json")
    line = [sys.executable, "-m", "dpbn", "serve", "r.json", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        line, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().split(" at ")[1].split()[0]
    assert httpx.get(f"{address}api/release", timeout=PATIENCE).status_code == 200
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(httpx.post, f"{address}api/intervals", json={}, timeout=PATIENCE)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", "")
    assert asked.exception() is not None or asked.result().status_code in (200, 503)
