"""How long counting takes where an engine counts by itself, with and without a bound on each unit's records.

    python benchmarks/engines.py duckdb [--rows 1000000]
    python benchmarks/engines.py spark [--rows 1000000]

The 37 family tables of ALARM from one Parquet file that also holds a unit column: three records per unit, scattered,
of which two are kept. Seconds by the clock of the first run and of the second, and of the processor in this process
(DuckDB's own threads are part of it, Spark's are not). Spark runs on this machine, two workers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpbn.data import open_source
from dpbn.formats import load_network
from dpbn.sampling import sample_codes


def write(path: Path, network: Any, rows: int) -> None:
    codes = sample_codes(network, rows, seed=0)
    columns = {
        node: pa.DictionaryArray.from_arrays(pa.array(codes[node]), pa.array(network.states(node))).cast(pa.string())
        for node in network.nodes
    }
    columns["unit"] = pa.array(np.random.default_rng(0).permutation(rows) // 3)
    pq.write_table(pa.table(columns), path)


def opened(engine: str, path: Path) -> Any:
    """A lazy table of the file in `engine`."""
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().read_parquet(str(path))
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session.read.parquet(str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=("duckdb", "spark"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--without-unit", action="store_true", help="leave the unit bound out")
    given = parser.parse_args()
    network = load_network("alarm")
    sets = [family.names for family in network.structure.dag.families]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "alarm.parquet")
        write(path, network, given.rows)
        table = opened(given.engine, path)
        cases: dict[str, dict[str, Any]] = {"no unit": {}, "unit, at most 2": {"unit": "unit", "max_contributions": 2}}
        for name, options in list(cases.items())[: 1 if given.without_unit else 2]:
            spent = []
            for _ in range(2):
                begin = time.perf_counter(), time.process_time()
                tables = open_source(table, network.structure, **options).counts(sets)
                spent.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
            counted = int(tables[sets[0]].sum())
            shown = " and ".join(f"{clock:.1f} s (processor {processor:.1f})" for clock, processor in spent)
            print(f"{given.engine}, {given.rows:,} rows, {name}: {shown}, {counted:,} records counted", flush=True)


if __name__ == "__main__":
    main()
