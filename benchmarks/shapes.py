"""Where does the promise hold: graphs of plain shapes with sharp and with even CPTs, against equal budgets.

    python benchmarks/shapes.py [--shapes chain grid] [--runs 20] [--processes 2]

Sharp CPTs have rows from a Dirichlet distribution with parameter 0.3, even ones with 2. The default at epsilon over
D-Ind at 3 epsilon, and joint_kl over D-Ind at 5 epsilon too; ratios of means over the same samples of data.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Mapping

import numpy as np

from dpbn import BayesianNetwork, write_network
from dpbn.domain import Schema, Variable
from dpbn.evaluate.experiments import Grid, run
from dpbn.graph import Dag
from dpbn.network import Structure

MEASURES = ("row", "weighted", "joint_kl", "query")
SETTINGS = ((1_000, 1.0), (10_000, 0.3), (10_000, 1.0), (10_000, 3.0), (100_000, 1.0))
PARAMETERS = {"sharp": 0.3, "even": 2.0}
Shape = Mapping[str, tuple[int, tuple[str, ...]]]  # states and parents of every node, parents first


def shapes() -> dict[str, Shape]:
    """Plain shapes of up to 40 nodes, none of them looked at when a constant of the learner was chosen."""
    hidden = {f"h{i}": (4, (f"h{i - 1}",) if i else ()) for i in range(15)}
    cells = [(row, column) for row in range(5) for column in range(5)]
    near = {(r, c): ([f"g{r - 1}{c}"] if r else []) + ([f"g{r}{c - 1}"] if c else []) for r, c in cells}
    return {
        "one node": {"a": (6, ())},
        "two nodes": {"a": (2, ()), "b": (2, ("a",))},
        "independent": {f"x{i}": (2 if i % 2 else 5, ()) for i in range(40)},
        "naive Bayes, 2 states": {"c": (3, ())} | {f"f{i}": (2, ("c",)) for i in range(20)},
        "naive Bayes, 4 states": {"c": (3, ())} | {f"f{i}": (4, ("c",)) for i in range(20)},
        "tree below a class": {"c": (2, ()), "f0": (3, ("c",))}
        | {f"f{i}": (3, ("c", f"f{(i - 1) // 2}")) for i in range(1, 20)},
        "chain": {f"x{i}": (3, (f"x{i - 1}",) if i else ()) for i in range(30)},
        "hidden chain": hidden | {f"o{i}": (3, (f"h{i}",)) for i in range(15)},
        "grid": {f"g{r}{c}": (2, tuple(near[r, c])) for r, c in cells},
        "causes and signs": {f"d{i}": (2, ()) for i in range(10)}
        | {f"s{i}": (2, tuple(f"d{(3 * i + k) % 10}" for k in range(3))) for i in range(20)},
        "seven causes": {f"p{i}": (2, ()) for i in range(7)} | {"c": (2, tuple(f"p{i}" for i in range(7)))},
        "all arcs": {f"x{i}": (2 + i % 2, tuple(f"x{j}" for j in range(i))) for i in range(6)},
        "many states": {"a": (20, ()), "b": (15, ("a",)), "c": (10, ("b",)), "d": (8, ("a", "c")), "e": (30, ("d",))},
    }


def network(shape: Shape, parameter: float, seed: int) -> BayesianNetwork:
    generator = np.random.default_rng(seed)
    schema = Schema(tuple(Variable(n, tuple(f"s{k}" for k in range(size))) for n, (size, _) in shape.items()))
    structure = Structure(schema, Dag(tuple(shape), {name: parents for name, (_, parents) in shape.items()}))
    rows = {n: generator.dirichlet(np.full(size, parameter), schema.shape(above)) for n, (size, above) in shape.items()}
    return BayesianNetwork(structure, rows)


def ratios(path: str, rows: int, epsilon: float, runs: int, processes: int) -> str:
    shared = {"networks": (path,), "rows": (rows,), "runs": runs, "queries": 40}
    grids = [
        Grid(methods=("optimized",), epsilons=(epsilon,), **shared),
        Grid(methods=("uniform",), epsilons=(3 * epsilon, 5 * epsilon), **shared),
    ]
    found = run(grids, None, processes=processes)

    def values(method: str, budget: float, measure: str) -> np.ndarray:
        mine = [r for r in found if (r["method"], r["epsilon"]) == (method, budget)]
        return np.array([r[measure] for r in sorted(mine, key=lambda r: r["run"])], dtype=float)

    cells = []
    for times, measure in [*((3, m) for m in MEASURES), (5, "joint_kl")]:
        ours, theirs = values("optimized", epsilon, measure), values("uniform", times * epsilon, measure)
        ratio = ours.mean() / theirs.mean()
        error = (ours - ratio * theirs).std(ddof=1) / np.sqrt(runs) / theirs.mean()
        cells.append(f"{ratio:.2f} ± {error:.2f}")
    return " | ".join(cells)


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    known = shapes()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=list(known), default=list(known))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    print("| shape, CPTs, rows, epsilon | " + " | ".join(MEASURES) + " | joint_kl at 5 |\n|" + "---|" * 6)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # seeds are derived from the file's name
        for name in chosen.shapes:
            for kind, parameter in PARAMETERS.items():
                path = f"{name}, {kind}.bif"
                write_network(network(known[name], parameter, list(known).index(name)), path)
                for rows, epsilon in SETTINGS:
                    line = ratios(path, rows, epsilon, chosen.runs, chosen.processes)
                    print(f"| {name}, {kind}, {rows:,}, {epsilon:g} | {line} |", flush=True)


if __name__ == "__main__":
    main()
