"""Many clients on the explorer for minutes, loopback only: `python benchmarks/soak.py [seconds] [clients]`.

The server runs in a process of its own. Clients ask every kind of question; beside them some are slow, some send
bodies far too large, some break HTTP. Good requests must all be answered 200 (or 503 with Retry-After when shed),
with every security header, and the server's memory must not grow after its first quarter.
"""

from __future__ import annotations

import collections
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]


def resident(process: int) -> int:
    """Bytes of memory the process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Client(threading.Thread):
    """Asks until told to stop; counts statuses, errors and missing headers."""

    def __init__(self, address: str, release: object, seed: int, stop: threading.Event):
        super().__init__(daemon=True)
        self.address, self.release, self.stop, self.dice = address, release, stop, random.Random(seed)
        self.seen: collections.Counter[str] = collections.Counter()

    def question(self) -> tuple[str, dict[str, object]]:
        network, dice = self.release.network, self.dice  # type: ignore[attr-defined]
        nodes = dice.sample(network.nodes, 3)
        evidence = {node: dice.choice(network.states(node)) for node in nodes[: dice.randrange(3)]}
        kind = dice.choice(["posteriors", "posteriors", "probability", "mpe", "map", "query"])
        asked: dict[str, object] = {"evidence": evidence}
        if kind in ("map", "query"):
            asked["targets"] = [nodes[-1]]
        return kind, asked

    def run(self) -> None:
        import httpx

        from dpbn.web.app import SECURITY_HEADERS

        with httpx.Client(base_url=self.address, timeout=60) as client:
            while not self.stop.is_set():
                kind, asked = self.question()
                try:
                    answer = client.post(f"/api/{kind}", json=asked)
                except httpx.HTTPError as error:
                    self.seen[f"error {type(error).__name__}"] += 1
                    continue
                impossible = answer.status_code == 422 and "impossible" in answer.text
                self.seen["422 impossible evidence" if impossible else str(answer.status_code)] += 1
                if any(answer.headers.get(name) != value for name, value in SECURITY_HEADERS.items()):
                    self.seen["missing header"] += 1
                time.sleep(self.dice.random() * 0.05)


def attack(address: str, stop: threading.Event, shed: collections.Counter[str]) -> None:
    """Slow heads, oversized bodies, broken HTTP, one after the other."""
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    head = b"POST /api/posteriors HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    while not stop.is_set():
        for name, data in (
            ("oversized", head + b"Content-Length: 1000000000\r\n\r\n{"),
            ("broken", b"\x16\x03\x01\x02\x00\x01 nonsense\r\n\r\n"),
            ("slow", head + b"Content-Length: 100\r\n\r\n{"),
        ):
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(data)
                try:
                    got = connection.recv(4096)
                except OSError:
                    got = b""
                shed[f"{name}: {got[9:12].decode('latin-1') or 'closed'}"] += 1


def main(seconds: int, clients: int) -> None:
    import dpbn
    from benchmarks.figures import record

    network = dpbn.load_network("alarm")
    release = dpbn.learn(network.sample(5000, seed=1), network, 3.0, method="uniform")
    with tempfile.TemporaryDirectory() as folder:
        path = release.save(Path(folder) / "alarm.release.json")
        code = "from dpbn.cli import main; main()"
        server = subprocess.Popen(
            [sys.executable, "-c", code, "serve", str(path), "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert server.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
            assert found
            figures = soak(found[0], release, server.pid, seconds, clients)
        finally:
            server.terminate()
            server.wait(30)
    record("soak", figures)
    good = not figures["errors"] and figures["memory_growth_percent"] < 5
    sys.exit(0 if good else 1)


def soak(address: str, release: object, process: int, seconds: int, clients: int) -> dict[str, object]:
    stop, shed = threading.Event(), collections.Counter[str]()
    workers = [Client(address, release, number, stop) for number in range(clients)]
    enemy = threading.Thread(target=attack, args=(address, stop, shed), daemon=True)
    for worker in (*workers, enemy):
        worker.start()
    memory = []
    for _ in range(seconds):
        time.sleep(1)
        memory.append(resident(process))
    stop.set()
    for worker in workers:
        worker.join(60)
    seen = sum((worker.seen for worker in workers), collections.Counter[str]())
    fine = ("200", "503", "422 impossible evidence")
    settled = memory[len(memory) // 2 - 5 : len(memory) // 2 + 5]
    late = memory[-10:]
    before, after = sum(settled) / len(settled), sum(late) / len(late)
    return {
        "seconds": seconds, "clients": clients, "requests": sum(n for kind, n in seen.items() if kind[:1].isdigit()),
        "answers": dict(seen), "errors": sum(n for kind, n in seen.items() if kind not in fine), "shed": dict(shed),
        "memory_mb_start": round(memory[0] / 2**20, 1), "memory_mb_half": round(before / 2**20, 1),
        "memory_mb_end": round(after / 2**20, 1), "memory_growth_percent": round(100 * (after / before - 1), 2),
    }  # fmt: skip


if __name__ == "__main__":
    main(*(int(word) for word in (sys.argv[1:3] or ("600", "50"))))
