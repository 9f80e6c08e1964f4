"""Seconds and memory of hostile megabytes and of structures too large to hold: `python benchmarks/limits.py`."""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]


def main() -> None:
    import pandas

    import dpbn
    from benchmarks.figures import record
    from dpbn.errors import TooLargeError
    from tests.trust.readers import READERS, SEEDS_OF_A_MEGABYTE, attempt
    from tests.trust.test_readers import grid_network, huge_structure

    small = dpbn.load_network("cancer")
    dpbn.learn(small.sample(5, seed=0), small, 1.0)  # so that imports are not timed
    dpbn.plan(small, 1.0, 10, simulations=1)
    slowest, name_of = 0.0, ""
    for name, texts in SEEDS_OF_A_MEGABYTE.items():
        for text in texts:
            start = time.process_time()
            attempt(READERS[name], text)
            took = time.process_time() - start
            if took > slowest:
                slowest, name_of = took, name
    structure = huge_structure(30, 10)
    frame = pandas.DataFrame({name: ["0"] for name in structure.nodes})
    calls: dict[str, Callable[[], object]] = {
        **{f"learn {m}": lambda m=m: dpbn.learn(frame, structure, 1.0, method=m) for m in ("uniform", "optimized")},  # type: ignore[misc]
        "plan": lambda: dpbn.plan(structure, 1.0, 1000),
    }
    refusals = {}
    for name, call in calls.items():
        tracemalloc.start()
        start = time.process_time()
        try:
            call()
        except TooLargeError:
            refusals[name] = {
                "cpu_milliseconds": round(1000 * (time.process_time() - start), 1),
                "megabytes": round(tracemalloc.get_traced_memory()[1] / 2**20, 2),
            }
        tracemalloc.stop()
    grid = grid_network(60)
    start = time.process_time()
    try:
        dpbn.Inference(grid).posteriors()
    except TooLargeError:
        refusals["posteriors of a 60 x 60 grid"] = {
            "cpu_milliseconds": round(1000 * (time.process_time() - start)),
            "megabytes": None,
        }
    inputs = sum(len(texts) for texts in SEEDS_OF_A_MEGABYTE.values())
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    figures = {"megabyte_inputs": inputs, "slowest_cpu_seconds": round(slowest, 2), "slowest_reader": name_of}
    record("limits", {**figures, "process_peak_mb": peak, "refusals_of_10^31_cells": refusals})


if __name__ == "__main__":
    main()
