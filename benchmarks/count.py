"""Counting all family tables of a network against other engines, ratios in one run.

    python benchmarks/count.py [--rows 10000000] [--network alarm] [--repeat 3]

Every peer gets the same codes in the form it likes best, and only counting is timed. Each side runs
once to warm up; then all take turns, `--repeat` rounds of one run each, and each side's best counts: a
busy minute meets all alike. From Parquet everything is timed, decoding included, on a file that is in
the page cache.
"""

from __future__ import annotations

import argparse
import gc
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpbn.data import kernel, open_source
from dpbn.data.packing import pack, unpacked
from dpbn.domain import Schema, Variable
from dpbn.errors import TooLargeError
from dpbn.formats import load_network
from dpbn.graph import Dag
from dpbn.network import Structure
from dpbn.sampling import sample_codes

COPY, NUMBA, NUMPY, DECODE = "memcpy of the columns", "dpbn, numba", "dpbn, numpy", "Arrow decode, batches"


@dataclass(frozen=True)
class Race:
    """The shortest run of every contestant in seconds, by the clock and of the processor, and what each returned."""

    clock: dict[str, float]
    processor: dict[str, float]
    results: dict[str, Any]

    def show(self) -> None:
        for name in self.clock:
            print(
                f"  {name:24}{self.clock[name] * 1000:10,.0f} ms {self.processor[name] * 1000:10,.0f} ms of processor"
            )

    def ratios(self, slow: str, fast: str) -> tuple[float, float]:
        return self.clock[slow] / self.clock[fast], self.processor[slow] / self.processor[fast]


def race(jobs: dict[str, Callable[[], Any]], repeat: int) -> Race:
    """Each job once to warm up, then `repeat` rounds in which all take turns."""
    results = {name: job() for name, job in jobs.items()}
    clock, processor = dict.fromkeys(jobs, float("inf")), dict.fromkeys(jobs, float("inf"))
    for _ in range(repeat):
        for name, job in jobs.items():
            gc.collect()
            begin = time.perf_counter(), time.process_time()
            kept = job()  # freed after the clock has stopped
            clock[name] = min(clock[name], time.perf_counter() - begin[0])
            processor[name] = min(processor[name], time.process_time() - begin[1])
            del kept
    return Race(clock, processor, results)


def ours(matrix, structure, sets, name):
    groups = pack(structure.schema, sets)
    tally = kernel.Tally(groups, {node: i for i, node in enumerate(structure.nodes)}, name)
    tally.add(matrix)
    return unpacked(groups, tally.supersets, sets)


def by_mbi(frame, structure, sets):
    import mbi

    dataset = mbi.Dataset(frame, mbi.Domain(structure.nodes, structure.schema.shape(structure.nodes)))
    return lambda: {names: dataset.project(names).datavector(flatten=False) for names in sets}


def by_polars(codes, sets):
    import polars

    lazy = polars.DataFrame(codes).lazy()

    def run():
        return polars.collect_all([lazy.group_by(names).len() for names in sets])

    return run


def by_duckdb(relation_of, sets):
    listed = ", ".join("(" + ", ".join(f'"{name}"' for name in names) + ")" for names in sets)
    columns = ", ".join(f'"{name}"' for name in dict.fromkeys(name for names in sets for name in names))
    grouping = f"SELECT {columns}, count(*) AS rows FROM {relation_of} GROUP BY GROUPING SETS ({listed})"
    return grouping


def in_memory(codes, network, repeat: int) -> None:
    import duckdb
    import pandas as pd

    structure = network.structure
    sets = [family.names for family in structure.dag.families]
    rows = len(next(iter(codes.values())))
    matrix = np.array([codes[node] for node in structure.nodes], dtype=np.uint8)
    held = np.empty_like(matrix)
    connection = duckdb.connect()
    arrow = pa.table({node: codes[node] for node in structure.nodes})  # noqa: F841 - read by DuckDB by its name
    connection.execute("CREATE TABLE held AS SELECT * FROM arrow")
    query = by_duckdb("held", sets)
    jobs = {
        COPY: lambda: np.copyto(held, matrix),
        NUMBA: lambda: ours(matrix, structure, sets, "numba"),
        NUMPY: lambda: ours(matrix, structure, sets, "numpy"),
        "mbi": by_mbi(pd.DataFrame(codes), structure, sets),
        "polars": by_polars(codes, sets),
        "DuckDB": lambda: connection.execute(query).fetchall(),
    }
    ran = race(jobs, repeat)
    results = ran.results
    for names in sets:
        counted = results[NUMBA][names]
        assert np.array_equal(counted, results[NUMPY][names])
        assert np.array_equal(np.asarray(results["mbi"][names]).astype(int).ravel(), counted.ravel())
    print(f"\nin memory, {rows:,} rows of uint8 codes, {len(sets)} tables")
    ran.show()
    for peer in ("mbi", "polars", "DuckDB"):
        (fast, _), (plain, _) = ran.ratios(peer, NUMBA), ran.ratios(peer, NUMPY)
        print(f"  against {peer:16}{fast:8.1f} x with numba (reach: 25) {plain:8.1f} x without (reach: 8)")


def refusal() -> None:
    """How long it takes to refuse a table that is too large."""
    variables = [Variable(f"v{i}", tuple(map(str, range(100)))) for i in range(40)]
    names = tuple(variable.name for variable in variables)
    empty = pa.table({name: pa.array([], pa.string()) for name in names})
    structure = Structure(Schema(tuple(variables)), Dag(names, {name: names[:i] for i, name in enumerate(names)}))
    begin = time.perf_counter()
    try:
        open_source(empty, structure).counts([family.names for family in structure.dag.families])
    except TooLargeError as refused:
        print(f"\nrefused in {(time.perf_counter() - begin) * 1000:.1f} ms (reach: 100): {refused}")


def write_parquet(codes, network, path: Path) -> None:
    columns = {
        node: pa.DictionaryArray.from_arrays(pa.array(codes[node]), pa.array(network.states(node)))
        for node in network.nodes
    }
    schema = pa.schema([(node, pa.dictionary(pa.int32(), pa.string())) for node in network.nodes])
    pq.write_table(pa.table(columns).cast(schema), path)


def from_parquet(path: Path, network, repeat: int) -> None:
    import duckdb

    structure = network.structure
    sets = [family.names for family in structure.dag.families]

    def decode():
        return sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches(1 << 17))

    def table():
        return pq.read_table(path).num_rows

    def count():
        return open_source(path, structure).counts(sets)

    def count_without_numba():
        has, kernel.has_numba = kernel.has_numba, lambda: False
        compiled = sys.modules.pop("dpbn.data.kernel_numba", None)
        counted = count()
        kernel.has_numba = has
        if compiled is not None:
            sys.modules["dpbn.data.kernel_numba"] = compiled
        return counted

    query = by_duckdb(f"read_parquet('{path}')", sets)
    jobs = {
        DECODE: decode,
        "Arrow decode, one table": table,
        NUMBA: count,
        NUMPY: count_without_numba,
        "DuckDB": lambda: duckdb.connect().execute(query).fetchall(),
    }
    ran = race(jobs, repeat)
    results = ran.results
    rows = results[DECODE]
    for names in sets:
        assert np.array_equal(results[NUMBA][names], results[NUMPY][names])
    print(f"\nfrom Parquet, {rows:,} rows, {path.stat().st_size / 2**20:,.0f} MiB")
    ran.show()
    of_decode, over_duckdb = ran.ratios(NUMBA, DECODE), ran.ratios("DuckDB", NUMBA)
    print(f"  of Arrow's own decode   {of_decode[0]:8.2f} x (reach: at most 1.6), of processor {of_decode[1]:.2f} x")
    print(f"  against DuckDB          {over_duckdb[0]:8.1f} x (reach: 2), of processor {over_duckdb[1]:.1f} x")


PEAK = """
import sys
from pathlib import Path
from dpbn.data import open_source
from dpbn.formats import load_network
structure = load_network(sys.argv[2]).structure
open_source(sys.argv[1], structure).counts([family.names for family in structure.dag.families])
status = Path("/proc/self/status").read_text().splitlines()  # getrusage would count the parent before exec
print(int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024)
"""


def peak_memory(path: Path, network_name: str) -> int:
    """Largest resident size in MiB of a process that only counts `path`."""
    run = subprocess.run([sys.executable, "-c", PEAK, path, network_name], check=True, capture_output=True, text=True)
    return int(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--network", default="alarm")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=("memory", "parquet"))
    given = parser.parse_args()
    refusal()
    network = load_network(given.network)
    codes = sample_codes(network, given.rows, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large.parquet"), Path(folder, "small.parquet")
        if given.only != "memory":
            write_parquet(codes, network, large)
            write_parquet({node: code[: given.rows // 5] for node, code in codes.items()}, network, small)
        if given.only != "parquet":
            in_memory(codes, network, given.repeat)
        del codes
        if given.only != "memory":
            from_parquet(large, network, given.repeat)
            fifth, whole = peak_memory(small, given.network), peak_memory(large, given.network)
            print(f"  peak memory             {whole:8,} MiB, of a fifth of the rows {fifth:,} MiB")
    print(f"\n{kernel.threads()} threads, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB in all")


if __name__ == "__main__":
    main()
