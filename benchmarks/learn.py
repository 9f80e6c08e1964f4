"""How good and how fast is the default learner: against equal budgets, Private-PGM, and itself with parts removed.

    python benchmarks/learn.py                  the four networks of the paper at epsilon 1, with Private-PGM
    python benchmarks/learn.py --relations      other epsilons, other numbers of rows, against equal budgets only
    python benchmarks/learn.py --peers          the same against Private-PGM, its best setting, and OpenDP
    python benchmarks/learn.py --ablation       what each part contributes
    python benchmarks/learn.py --workload       ten questions around one node of ALARM, with and without saying so
    python benchmarks/learn.py --stages         a split that depends on the data against the public split
    python benchmarks/learn.py --seconds        time from counts to CPTs
    options: --runs 20 --networks asia alarm hailfinder /path/to/some.bif --processes 2

Networks that are not bundled are looked for among the BIF files that come with pgmpy.
All methods see the same data and the same questions in a run. Figures are means over runs ± standard errors.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from unittest import mock

import numpy as np

from dpbn import BayesianNetwork, Inference, load_network
from dpbn.evaluate.baselines.common import experiment_curator
from dpbn.evaluate.experiments import Grid, run
from dpbn.evaluate.metrics import Reference
from dpbn.evaluate.questions import derived_seed, draw_questions
from dpbn.formats import BUNDLED
from dpbn.learners import agreement, estimate, evenness, groups, shrinkage, strategy
from dpbn.learners.optimized import learn_optimized
from dpbn.learners.stein import Rows
from dpbn.privacy import accounting
from dpbn.sampling import sample_codes
from dpbn.uncertainty.simulate import SimulatedSource
from dpbn.workload import Query, Workload

MEASURES = ("row", "weighted", "joint_kl", "query")
PAPER = ("asia", "sachs", "child", "alarm")


def figures(found: Sequence[dict], /, **chosen: object) -> dict[str, tuple[float, float]]:
    """Mean and standard error of every measure over the rows that match."""
    matching = [row for row in found if all(row[name] == value for name, value in chosen.items())]
    if refused := {f"{row['method']}: {row['refusal']}" for row in matching if row["refusal"]}:
        raise SystemExit("\n".join(sorted(refused)))
    result = {}
    for measure in (*MEASURES, "map_accuracy", "seconds"):
        values = np.array([row[measure] for row in matching], dtype=float)
        result[measure] = (float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))))
    return result


def line(label: str, found: dict[str, tuple[float, float]]) -> str:
    cells = "  ".join(f"{found[m][0]:8.4f} ±{found[m][1]:.4f}" for m in (*MEASURES, "map_accuracy"))
    return f"{label:34s}{cells}  {found['seconds'][0]:7.3f} s"


def header(title: str) -> str:
    return f"\n{title}\n{'':34s}" + "".join(f"{m:>18s}" for m in (*MEASURES, "map_accuracy")) + f"{'time':>11s}"


def compare(
    networks: Sequence[str],
    runs: int,
    processes: int,
    *,
    rows: int,
    epsilon: float,
    times: Sequence[float],
    pgm: bool,
    output: str | None,
) -> None:
    others = tuple(factor * epsilon for factor in times)
    shared = {"networks": tuple(networks), "rows": (rows,), "runs": runs, "queries": 40}
    grids = [
        Grid(methods=("exact", "uniform", "optimized"), epsilons=(epsilon,), **shared),
        Grid(methods=("uniform",), epsilons=others, **shared),
        Grid(methods=("optimized-delta",), epsilons=(epsilon,), **shared),
    ]
    if pgm:
        grids.append(Grid(methods=("private-pgm",), epsilons=(epsilon,), **shared))
    found = run(grids, output, processes=processes)
    for network in networks:
        print(header(f"{network}, {rows} rows, {runs} runs"))
        settings = [("exact", epsilon), ("uniform", epsilon), *(("uniform", other) for other in others)]
        settings += [("private-pgm", epsilon)] if pgm else []
        settings += [("optimized", epsilon), ("optimized-delta", epsilon)]
        by = {s: figures(found, network=network, method=s[0], epsilon=s[1]) for s in settings}
        for setting, measured in by.items():
            print(line(f"{setting[0]} epsilon={setting[1]:g}", measured))
        mine, exact = by["optimized", epsilon], by["exact", epsilon]
        for other in others:
            ratios = "  ".join(f"{m} {mine[m][0] / by['uniform', other][m][0]:.2f}" for m in MEASURES)
            print(f"  optimized / D-Ind at {other:g}: {ratios}")
        if pgm:
            theirs = by["private-pgm", epsilon]
            excess = {m: (mine[m][0] - exact[m][0]) / (theirs[m][0] - exact[m][0]) for m in MEASURES}
            print("  excess over no privacy / Private-PGM's: " + "  ".join(f"{m} {x:.2f}" for m, x in excess.items()))


def peers(networks: Sequence[str], runs: int, processes: int, *, rows: int, epsilon: float, output: str | None) -> None:
    """The excess over no privacy as a part of that of Private-PGM, all families and our tables, and of OpenDP."""
    others = ("private-pgm", "private-pgm-tables", "opendp")
    grid = Grid(
        networks=tuple(networks),
        methods=("exact", "optimized", *others),
        epsilons=(epsilon,),
        rows=(rows,),
        runs=runs,
        queries=40,
    )
    found = run(grid, output, processes=processes)
    for network in networks:
        print(header(f"{network}, epsilon {epsilon:g}, {rows} rows, {runs} runs"))
        by = {
            method: figures(found, network=network, method=method, epsilon=epsilon, rows=rows)
            for method in grid.methods
        }
        for method, measured in by.items():
            print(line(method, measured))
        for other in others:
            excess = {
                m: (by["optimized"][m][0] - by["exact"][m][0]) / (by[other][m][0] - by["exact"][m][0]) for m in MEASURES
            }
            print(f"  excess / {other}'s: " + "  ".join(f"{m} {x:.2f}" for m, x in excess.items()), flush=True)


def _even_prior(table: np.ndarray, deviation: float, total: np.ndarray) -> shrinkage.Prior:
    return shrinkage.Prior(np.ones(len(table)), np.zeros(len(table)), table[0].size * deviation / total)


def _as_they_are(cpts: Mapping[str, Rows]) -> dict[str, np.ndarray]:
    return {node: rows.probabilities for node, rows in cpts.items()}


def _as_measured(cpts: Mapping[str, Rows]) -> dict[str, np.ndarray]:
    return {node: cpt[: len(cpt) // 2] for node, cpt in _as_they_are(cpts).items()}


def ablation(networks: Sequence[str], runs: int, processes: int, *, rows: int, epsilon: float) -> None:
    """One part at a time taken out of the learner (constants set so that the part does nothing)."""
    parts: dict[str, dict[object, dict[str, object]]] = {
        "everything": {},
        "no rows that borrow": {estimate: {"blended": _as_measured}},
        "no nodes that share": {estimate: {"shared": _as_they_are}},
        "no steps of all CPTs at once": {agreement: {"ROUNDS": 0}},
        "all rows taken as sharp": {evenness: {"EVEN": math.inf}},
        "no refinement": {estimate: {"STEPS": 0}},
        "neither of these two": {estimate: {"STEPS": 0}, agreement: {"ROUNDS": 0}},
        "nothing given back": {estimate: {"STANDS_OUT": math.inf, "MARGIN_STANDS_OUT": math.inf}},
        "merging as usual": {groups: {"LESS_MERGED": ()}},
        "no merging": {strategy: {"LARGEST_MERGED": 0}},
        "noise drawn apart": {groups: {"LARGEST_PLANNED_RANK": 0}},
        "no merging, noise drawn apart": {groups: {"LARGEST_PLANNED_RANK": 0}, strategy: {"LARGEST_MERGED": 0}},
        "no tables for roots": {groups: {"_root_groups": lambda *_: []}},
        "errors that do not saturate": {groups: {"NOISE": 1e-6}},
        "no sparse prior (shape 1)": {estimate: {"fitted_prior": _even_prior}},
        "no empty cells (spike 0)": {shrinkage: {"SPIKES": np.zeros(1)}},
    }
    for network in networks:
        print(header(f"{network}, epsilon {epsilon:g}, {rows} rows, {runs} runs"))
        for label, changes in parts.items():
            with changed(changes):
                grid = Grid(
                    networks=(network,),
                    methods=("optimized",),
                    epsilons=(epsilon,),
                    rows=(rows,),
                    runs=runs,
                    queries=40,
                )
                print(line(label, figures(run(grid), network=network)))


@contextmanager
def changed(changes: dict[object, dict[str, object]]) -> Iterator[None]:
    patches = [mock.patch.multiple(module, **values) for module, values in changes.items()]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def around(network: BayesianNetwork, centre: str, count: int, seed: int) -> Workload:
    """The marginal of `centre`, and `centre` given one or two of its Markov blanket, as records have them."""
    generator = np.random.default_rng(seed)
    parents, children = network.parents, network.structure.dag.children(centre)
    near = sorted({*parents(centre), *children, *(name for child in children for name in parents(child))} - {centre})
    records = network.sample(200, seed=seed).to_dict("records")
    queries = [Query((centre,))]
    while len(queries) < count:
        observed = generator.choice(near, min(len(near), int(generator.integers(1, 3))), replace=False)
        record = records[int(generator.integers(len(records)))]
        queries.append(Query((centre,), {str(name): record[name] for name in observed}))
    return tuple(queries)


def workload(runs: int, *, rows: int, epsilon: float) -> None:
    network = load_network("alarm")
    truth = Inference(network)
    print(f"\nalarm, mean L1 of ten questions around one node, epsilon {epsilon:g}, {rows} rows, {runs} runs")
    for centre in ("HR", "CATECHOL", "VENTLUNG", "BP", "LVFAILURE", "SAO2"):
        asked = around(network, centre, 10, seed=3)
        errors: dict[str, list[float]] = {"without": [], "with": [], "in stages": []}
        for seed in range(runs):
            source = SimulatedSource(network.structure.schema, sample_codes(network, rows, seed=seed))
            for label, given, part in (("without", None, None), ("with", asked, None), ("in stages", asked, 0.3)):
                curator = experiment_curator(source, epsilon, seed)
                made = learn_optimized(
                    network.structure, curator, prior={}, public_cpts={}, workload=given, stage_one=part
                )
                learned = Inference(BayesianNetwork(network.structure, made.cpts))
                pairs = [[ask.query(q.variables, q.evidence).values for ask in (truth, learned)] for q in asked]
                errors[label].append(float(np.mean([np.abs(true - found).sum() for true, found in pairs])))
        mean = {label: float(np.mean(values)) for label, values in errors.items()}
        spread = {label: float(np.std(values, ddof=1) / math.sqrt(runs)) for label, values in errors.items()}
        print(
            f"  {centre:12s} without {mean['without']:.4f} ±{spread['without']:.4f}"
            f"   with {mean['with']:.4f} ±{spread['with']:.4f}   ratio {mean['with'] / mean['without']:.2f}"
            f"   in stages {mean['in stages']:.4f} ±{spread['in stages']:.4f}",
            flush=True,
        )


def stages(networks: Sequence[str], runs: int, *, rows: int, epsilon: float) -> None:
    """The public split against splits decided on a first look at 30 and at 50 % of the budget, on the same data."""
    for name in networks:
        network = load_network(name)
        found: dict[float | None, list[list[float]]] = {None: [], 0.3: [], 0.5: []}
        for seed in range(runs):
            codes = sample_codes(network, rows, seed=derived_seed("data", name, rows, seed))
            source = SimulatedSource(network.structure.schema, codes)
            reference = Reference(network, draw_questions(network.structure, 40, derived_seed("asked", seed), codes))
            for stage_one, errors in found.items():
                curator = experiment_curator(source, epsilon, derived_seed("noise", seed, stage_one))
                learned = learn_optimized(network.structure, curator, prior={}, public_cpts={}, stage_one=stage_one)
                measured = reference.measure(BayesianNetwork(network.structure, learned.cpts))
                errors.append([measured[measure] for measure in MEASURES])
        print(f"\n{name}, epsilon {epsilon:g}, {rows} rows, {runs} runs: {', '.join(MEASURES)}; change in percent")
        public = np.array(found[None])
        print("  public split     " + "   ".join(f"{mean:.4f}" for mean in public.mean(axis=0)))
        for stage_one in (0.3, 0.5):
            change = 100 * (np.array(found[stage_one]) - public) / public.mean(axis=0)
            spread = change.std(axis=0, ddof=1) / math.sqrt(runs)
            cells = "   ".join(
                f"{mean:+.1f} ±{error:.1f}" for mean, error in zip(change.mean(axis=0), spread, strict=True)
            )
            print(f"  stage one {stage_one:g}    {cells}", flush=True)


def seconds(networks: Sequence[str], *, rows: int, epsilon: float) -> None:
    accounting.laplace_scale(1.0, 1)  # loads OpenDP before any clock runs
    print(f"\nseconds from counts to CPTs (of CPU), first call in a process and best of three more, {rows} rows")
    for name in networks:
        network = load_network(name)
        source = SimulatedSource(network.structure.schema, sample_codes(network, rows, seed=0))
        times = []
        for seed in range(4):
            curator = experiment_curator(source, epsilon, seed)
            started = time.perf_counter(), time.process_time()
            learn_optimized(network.structure, curator, prior={}, public_cpts={})
            times.append((time.perf_counter() - started[0], time.process_time() - started[1]))
        first, then = times[0], tuple(map(min, zip(*times[1:], strict=True)))
        taken = f"first {first[0]:7.3f} ({first[1]:.3f})  then {then[0]:7.3f} ({then[1]:.3f})"
        print(f"  {name:20s} {len(network.nodes):5d} nodes  {taken}")


def go_to_models(names: Sequence[str]) -> list[str]:
    """Make the folder of pgmpy's example models the current one, and name its files as they are seen from there.

    Seeds depend on the name of a network, so a name must not depend on where pgmpy is installed.
    """
    files = [str(Path(name).resolve()) if Path(name).suffix else name for name in names]
    os.chdir(str(resources.files("pgmpy") / "utils" / "example_models"))
    return [name if Path(name).suffix or name in BUNDLED else f"{name}.bif.gz" for name in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part in ("relations", "peers", "ablation", "workload", "seconds", "stages"):
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--networks", nargs="+", default=list(PAPER))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--times", type=float, nargs="+", default=[3.0, 5.0], help="D-Ind's budget over the default's")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--without-pgm", action="store_true")
    parser.add_argument("--output", help="keep finished runs here (.csv or .parquet) and resume from it")
    chosen = parser.parse_args()
    if chosen.output:
        chosen.output = str(Path(chosen.output).resolve())
    if not set(chosen.networks) <= set(BUNDLED):
        chosen.networks = go_to_models(chosen.networks)
    setting = {"rows": chosen.rows, "epsilon": chosen.epsilon}
    settings = ((0.3, 10_000), (3.0, 10_000), (1.0, 1_000), (1.0, 100_000))
    if chosen.peers:
        for epsilon, rows in settings:
            peers(chosen.networks, chosen.runs, chosen.processes, rows=rows, epsilon=epsilon, output=chosen.output)
    if chosen.relations:
        for epsilon, rows in settings:
            compare(
                chosen.networks,
                chosen.runs,
                chosen.processes,
                rows=rows,
                epsilon=epsilon,
                times=chosen.times,
                pgm=False,
                output=chosen.output,
            )
    if chosen.ablation:
        ablation(chosen.networks, chosen.runs, chosen.processes, **setting)
    if chosen.workload:
        workload(chosen.runs, **setting)
    if chosen.seconds:
        seconds(chosen.networks, **setting)
    if chosen.stages:
        stages(chosen.networks, chosen.runs, **setting)
    parts = (chosen.relations, chosen.peers, chosen.ablation, chosen.workload, chosen.seconds, chosen.stages)
    if not any(parts):
        compare(
            chosen.networks,
            chosen.runs,
            chosen.processes,
            times=chosen.times,
            pgm=not chosen.without_pgm,
            output=chosen.output,
            **setting,
        )


if __name__ == "__main__":
    main()
