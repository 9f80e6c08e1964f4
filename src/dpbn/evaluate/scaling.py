"""What learning costs: seconds and memory against nodes and rows, through `dpbn.learn` with secure noise.

Every point runs in a fresh process, so that its peak memory is its own. The clock covers the whole call: reading the
table, counting, exact noise, estimate; the best of up to REPEATS calls counts, so that other work on the machine
disturbs less. Memory is the rise of the process's peak over its size before the calls.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from dpbn.evaluate.synthetic import random_network

METHODS = ("uniform", "optimized")
NODES, ROWS = (10, 30, 100, 300, 1000), (1_000, 10_000, 100_000, 1_000_000)
REPEATS, LONG = 3, 5.0  # a call that takes LONG seconds is not repeated
NODES_ROWS, ROWS_NODES = 10_000, 37  # rows while nodes vary; nodes while rows vary


@dataclass(frozen=True)
class Cost:
    """One timed call."""

    method: str
    nodes: int
    rows: int
    cells: int
    seconds: float
    megabytes: float


def measure_cost(method: str, nodes: int, rows: int) -> Cost:
    """Time one `dpbn.learn` on `rows` records simulated from a random network of `nodes` nodes."""
    import dpbn

    network = random_network(nodes, seed=0)
    data = network.sample(rows, seed=0)
    dpbn.learn(data.head(10), network.structure, 1.0, method=method)  # imports and first compilations
    before = _settled_memory()
    seconds = float("inf")
    for _ in range(REPEATS):
        started = time.perf_counter()
        dpbn.learn(data, network.structure, 1.0, method=method)
        took = time.perf_counter() - started
        seconds = min(seconds, took)
        if took > LONG:
            break
    cells = sum(network.structure.cells(node) for node in network.nodes)
    return Cost(method, nodes, rows, cells, seconds, max(_peak_memory() - before, 0.0))


def cost_curves() -> list[Cost]:
    """Costs while nodes vary (at NODES_ROWS rows) and while rows vary (at ROWS_NODES nodes)."""
    points = {(m, n, NODES_ROWS): None for m in METHODS for n in NODES}
    points |= {(m, ROWS_NODES, r): None for m in METHODS for r in ROWS}
    costs = []
    for point in points:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            costs.append(pool.submit(measure_cost, *point).result())
    return costs


def _settled_memory() -> float:
    """Resident size now, in megabytes; where the system allows, the recorded peak starts again from here."""
    import gc

    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return _peak_memory()


def _peak_memory() -> float:
    try:
        return _status("VmHWM")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return float(line.split()[1]) / 1024
    raise OSError(f"no {field} here")
