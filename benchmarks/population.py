"""Does it hold on networks that nobody looked at: random networks against Private-PGM, equal budgets and no privacy.

    python benchmarks/population.py [--networks 12] [--runs 3] [--rows 1000 10000] [--epsilon 1] [--processes 2]

--first is the seed of the first network: those from 100 on had no part in any choice of the learner.

A network has 12 to 40 nodes of two to five states and up to three parents among the eight nodes before; its CPT rows
come from Dirichlet distributions with parameters from .1 to .3 (sharp), 1 to 3 (even), or .1 to 3, one per node
(mixed). A ratio is that of a network's mean errors, or of its excesses over no privacy; the table has the geometric
mean over networks with its standard error, and the largest. A ratio below .001, where the default errs no more than no
privacy does, counts as .001.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import tempfile
from collections.abc import Sequence

import numpy as np

from dpbn import BayesianNetwork, write_network
from dpbn.domain import Schema, Variable
from dpbn.evaluate.experiments import Grid, run
from dpbn.evaluate.results import Row
from dpbn.graph import Dag
from dpbn.network import Structure

MEASURES = ("row", "weighted", "joint_kl", "query")
PARAMETERS = {"sharp": (0.1, 0.3), "even": (1.0, 3.0), "mixed": (0.1, 3.0)}
NEAR = 8  # how far back parents may be


def network(kind: str, seed: int) -> BayesianNetwork:
    generator = np.random.default_rng([seed, *kind.encode()])
    names = [f"x{i}" for i in range(int(generator.integers(12, 41)))]
    states = [tuple(f"s{k}" for k in range(int(generator.integers(2, 6)))) for _ in names]
    parents = {}
    for i, name in enumerate(names):
        before = names[max(0, i - NEAR) : i]
        count = min(len(before), int(generator.integers(0, 4)))
        parents[name] = tuple(str(parent) for parent in generator.choice(before, count, replace=False)) if count else ()
    schema = Schema(tuple(map(Variable, names, states)))
    structure = Structure(schema, Dag(tuple(names), parents))
    cpts = {}
    for name in names:
        parameter = math.exp(generator.uniform(*np.log(PARAMETERS[kind])))
        cpts[name] = generator.dirichlet(np.full(schema[name].size, parameter), structure.shape(name)[:-1])
    return BayesianNetwork(structure, cpts)


def ratios(found: Sequence[Row], epsilon: float) -> dict[str, list[float]]:
    """Of one network, per comparison one ratio for every measure."""

    def means(method: str, budget: float) -> np.ndarray:
        rows = [row for row in found if (row["method"], row["epsilon"]) == (method, budget)]
        return np.array([[float(row[measure]) for measure in MEASURES] for row in rows]).mean(axis=0)

    mine, exact = means("optimized", epsilon), means("exact", epsilon)
    return {
        "D-Ind at 3": list(mine / means("uniform", 3 * epsilon)),
        "D-Ind at 5": list(mine / means("uniform", 5 * epsilon)),
        "excess / Private-PGM's": list((mine - exact) / (means("private-pgm", epsilon) - exact)),
    }


def summary(values: Sequence[float]) -> str:
    logs = np.log(np.maximum(values, 1e-3))
    mean, error = math.exp(logs.mean()), logs.std(ddof=1) / math.sqrt(len(logs))
    return f"{mean:.2f} ± {mean * error:.2f}, {max(values):.2f}"


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(PARAMETERS), default=list(PARAMETERS))
    parser.add_argument("--networks", type=int, default=12)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    print("| CPTs | rows | compared with | " + " | ".join(MEASURES) + " |\n|" + "---|" * (3 + len(MEASURES)))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # seeds are derived from the files' names
        for kind in chosen.kinds:
            seeds = range(chosen.first, chosen.first + chosen.networks)
            paths = [f"{kind}-{seed}.bif" for seed in seeds]
            for seed, path in zip(seeds, paths, strict=True):
                write_network(network(kind, seed), path)
            for rows in chosen.rows:
                shared = {"networks": tuple(paths), "rows": (rows,), "runs": chosen.runs, "queries": 40}
                budgets = {"exact": (1,), "optimized": (1,), "private-pgm": (1,), "uniform": (3, 5)}
                grids = [
                    Grid(methods=(name,), epsilons=tuple(times * chosen.epsilon for times in factors), **shared)
                    for name, factors in budgets.items()
                ]
                found = run(grids, None, processes=chosen.processes)
                each = [ratios([row for row in found if row["network"] == path], chosen.epsilon) for path in paths]
                for against in each[0]:
                    cells = [summary([one[against][index] for one in each]) for index in range(len(MEASURES))]
                    print(f"| {kind} | {rows:,} | {against} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
