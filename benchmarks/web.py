"""Load on the explorer: many clients ask a real server for posteriors over loopback, without pause.

Every client keeps one connection and sends the next question as soon as the last is answered. Questions are drawn
from a pool of random evidence sets, so that some repeat and most do not. Prints latencies, errors, refusals and the
growth of the server's memory; then offers more connections than the server takes and counts what it answers.
Clients and server share this machine's cores: the figures are an upper bound on what a client elsewhere would see.

    python benchmarks/web.py --seconds 60 --clients 50
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dpbn

SOURCE = Path(dpbn.__file__).parents[1]


@dataclass
class Tally:
    """What the clients saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    milliseconds: list[float] = field(default_factory=list)

    def summary(self, seconds: float) -> dict[str, Any]:
        times = np.array(self.milliseconds or [float("nan")])
        return {
            "requests": sum(self.statuses.values()),
            "per_second": round(sum(self.statuses.values()) / seconds, 1),
            "p50_ms": round(float(np.percentile(times, 50)), 1),
            "p99_ms": round(float(np.percentile(times, 99)), 1),
            "max_ms": round(float(times.max()), 1),
            "statuses": dict(sorted(self.statuses.items())),
            "broken_connections": self.broken,
        }


def questions(network: dpbn.BayesianNetwork, count: int, seed: int) -> list[bytes]:
    """HTTP requests with evidence on one to four nodes, taken from sampled rows so that it can happen."""
    generator = np.random.default_rng(seed)
    rows = network.sample(count, seed=seed).astype(str).to_dict("records")
    found = []
    for row in rows:
        names = generator.choice(list(network.nodes), size=generator.integers(1, 5), replace=False)
        found.append(_post("posteriors", {"evidence": {name: row[name] for name in names}}))
    return found


def _post(kind: str, question: dict[str, Any]) -> bytes:
    body = json.dumps(question).encode()
    head = f"POST /api/{kind} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """Send one request, read the whole answer, return its status."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head.split(b" ", 2)[1])


async def client(port: int, requests: list[bytes], seed: int, end: float, tally: Tally) -> None:
    generator = np.random.default_rng(seed)
    while time.monotonic() < end:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while time.monotonic() < end:
                request = requests[generator.integers(len(requests))]
                start = time.perf_counter()
                status = await ask(reader, writer, request)
                tally.statuses[status] += 1
                if status == 200:
                    tally.milliseconds.append(1000 * (time.perf_counter() - start))
                if status == 503:
                    await asyncio.sleep(0.1)
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            tally.broken += 1
            await asyncio.sleep(0.1)


async def load(port: int, requests: list[bytes], clients: int, seconds: float, tally: Tally | None = None) -> Tally:
    tally = Tally() if tally is None else tally
    end = time.monotonic() + seconds
    await asyncio.gather(*(client(port, requests, seed, end, tally) for seed in range(clients)))
    return tally


async def burst(port: int, requests: list[bytes], connections: int) -> Tally:
    """One question on each of many connections, all opened before the first is asked."""
    tally = Tally()
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
        try:
            tally.statuses[await ask(reader, writer, request)] += 1
        except (OSError, asyncio.IncompleteReadError):
            tally.broken += 1
        writer.close()

    await asyncio.gather(*(one(*pair, requests[i % len(requests)]) for i, pair in enumerate(opened)))
    return tally


def resident_kilobytes(process: int) -> int:
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1])  # type: ignore[index]


def processor_seconds(process: int) -> float:
    """User and system time a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _warm_up(port: int, requests: list[bytes], clients: int, seconds: float) -> int:
    """Ask until the server's memory of answers is full, so that growth measured after it is growth."""
    done, end = 0, time.monotonic() + min(30.0, seconds)
    while done < 6000 and time.monotonic() < end:
        done += sum(asyncio.run(load(port, requests, clients, min(2.0, seconds))).statuses.values())
    return done


def run(network_name: str, clients: int, seconds: float, connections: int) -> dict[str, Any]:
    """Start a server on a free port, load it, stop it."""
    network = dpbn.load_network(network_name)
    release = dpbn.learn(network.sample(10_000, seed=0), network.structure, epsilon=1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = release.save(Path(folder) / f"{network_name}.release.json")
        command = [sys.executable, "-c", "from dpbn.cli import main; main()", "serve", str(path), "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert server.stdout is not None
            port = int(re.search(r":(\d+)/", server.stdout.readline())[1])  # type: ignore[index]
            asyncio.run(
                load(port, [_post("intervals", {})], 1, 0.001)
            )  # error bars are prepared once, before it counts
            requests = questions(network, 20_000, seed=1)
            warmed = _warm_up(port, requests, clients, seconds)
            resident, used, tally = [resident_kilobytes(server.pid)], processor_seconds(server.pid), Tally()
            for _ in range(2):
                asyncio.run(load(port, requests, clients, seconds / 2, tally))
                resident.append(resident_kilobytes(server.pid))
            used = processor_seconds(server.pid) - used
            crowd = asyncio.run(burst(port, requests, connections))
            again = asyncio.run(load(port, requests, 1, 0.5))
        finally:
            server.terminate()
            server.wait(20)
    return {
        "network": network_name,
        "clients": clients,
        "seconds": seconds,
        "load": tally.summary(seconds),
        "server_processor_ms_per_request": round(1000 * used / max(sum(tally.statuses.values()), 1), 2),
        "warm_up_requests": warmed,
        "resident_megabytes_at_start_half_end": [round(kilobytes / 1024, 1) for kilobytes in resident],
        "memory_growth_percent_in_second_half": round(100 * (resident[2] / resident[1] - 1), 2),
        "burst_of_connections": {"offered": connections, **crowd.summary(1.0)["statuses"], "broken": crowd.broken},
        "after_the_burst": dict(again.statuses),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="alarm")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=700, help="offered at once in the burst")
    chosen = parser.parse_args()
    result = run(chosen.network, chosen.clients, chosen.seconds, chosen.connections)
    print(json.dumps(result, indent=2))
    print(f"cores: {os.cpu_count()}, load of the machine: {os.getloadavg()[0]:.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
