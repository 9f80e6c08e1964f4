"""The standing comparison: every method on the four networks, budget savings, scaling curves, on one page."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpbn.evaluate.baselines import BASELINES, description
from dpbn.evaluate.experiments import Grid, run
from dpbn.evaluate.methods import METHODS
from dpbn.evaluate.pages import Block, Figure, Heading, Points, Table, Text, write_pages
from dpbn.evaluate.plots import LABELS, cost_plot, curves, saving_plot
from dpbn.evaluate.results import Row, summary, with_error
from dpbn.evaluate.saving import Saving, savings
from dpbn.evaluate.scaling import Cost, cost_curves
from dpbn.files import write_atomically

if TYPE_CHECKING:
    import pandas

NETWORKS = ("asia", "sachs", "child", "alarm")
FAST = ("uniform", "icml2020", "optimized", "optimized-delta", "privbayes", "fourier", "hdmm", "datacube")
SLOW = ("priview", "mwem", "private-pgm", "private-pgm-tables", "opendp")
SWEPT = ("uniform", "icml2020", "optimized", "optimized-delta", "hdmm")
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CURVE = (3.0, 20.0, 50.0)  # further budgets of D-Ind, to read savings off
ROWS, ROWS_SWEPT = 10_000, (1_000, 10_000, 100_000, 1_000_000)
COMPARED = ("row", "weighted", "joint_kl", "query", "map_accuracy")
SAVED = ("row", "weighted", "joint_kl", "query")


@dataclass(frozen=True)
class Size:
    """How many runs each part gets."""

    runs: int = 20
    sweep_runs: int = 5
    slow_runs: int = 10
    networks: tuple[str, ...] = NETWORKS
    rows: int = ROWS
    rows_swept: tuple[int, ...] = ROWS_SWEPT
    epsilons: tuple[float, ...] = EPSILONS
    slow: tuple[str, ...] = SLOW
    seed: int = 0


def grids(size: Size) -> list[Grid]:
    """All methods at epsilon 1, D-Ind's curve to read savings off, the sweeps over epsilon and over rows."""

    def grid(methods: Sequence[str], epsilons: Sequence[float], rows: Sequence[int], runs: int) -> Grid:
        return Grid(
            networks=size.networks, methods=tuple(methods), epsilons=tuple(epsilons),
            rows=tuple(rows), runs=runs, seed=size.seed,
        )  # fmt: skip

    everything = [
        grid((*FAST, "exact"), (1.0,), (size.rows,), size.runs),
        grid(("uniform",), (*size.epsilons, *CURVE), (size.rows,), size.runs),
        grid(SWEPT, size.epsilons, (size.rows,), size.sweep_runs),
        grid((*SWEPT, "exact"), (1.0,), size.rows_swept, size.sweep_runs),
    ]
    return [*everything, grid(size.slow, (1.0,), (size.rows,), size.slow_runs)] if size.slow else everything


def compare(
    folder: str | Path,
    *,
    size: Size | None = None,
    processes: int = 1,
    results: str | Path | None = None,
    costs: Sequence[Cost] | None = None,
    command: str = "dpbn evaluate --standing",
    today: datetime.date | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Run (or go on with) the standing comparison and write `comparison.md` and `.html` into `folder`.

    Costs are measured unless given; they are kept beside `results` and measured again only if that file is gone.
    """
    size = size or Size()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = run(grids(size), results, processes=processes, progress=progress)
    costs = list(costs) if costs is not None else _costs(None if results is None else Path(results))
    found = savings((row for row in made if row["rows"] == size.rows), SAVED, seed=size.seed)
    date = today or datetime.date.today()
    return write_pages(_page(made, found, costs, folder, size, command, date), folder, "comparison")[0]


def _costs(results: Path | None) -> list[Cost]:
    kept = None if results is None else results.with_suffix(".costs.json")
    if kept is not None and kept.exists():
        return [Cost(**entry) for entry in json.loads(kept.read_text("utf-8"))]
    measured = cost_curves()
    if kept is not None:
        write_atomically(kept, json.dumps([asdict(cost) for cost in measured], indent=1))
    return measured


def _page(
    made: Sequence[Row],
    found: Sequence[Saving],
    costs: Sequence[Cost],
    folder: Path,
    size: Size,
    command: str,
    date: datetime.date,
) -> list[Block]:
    table = summary(made)
    figures = folder / "figures"
    swept = {name: LABELS[name] for name in ("row", "joint_kl", "query")}
    budget = curves(
        table[table["rows"] == size.rows], figures / "error-by-epsilon", networks=size.networks, measures=swept,
        across="epsilon", methods=(*SWEPT, "exact"), label="ε", logarithmic=True,
    )  # fmt: skip
    records = curves(
        table[table["epsilon"] == 1.0], figures / "error-by-rows", networks=size.networks, measures=swept,
        across="rows", methods=(*SWEPT, "exact"), label="records", logarithmic=True,
    )  # fmt: skip
    at = table[(table["rows"] == size.rows) & (table["epsilon"] == 1.0)]
    blocks: list[Block] = [
        Heading("Comparison of methods", 1),
        Text(
            f"Written by `{command}` on {date.isoformat()}: ε = 1 unless said otherwise, {size.rows:,} records, up to "
            f"{size.runs} runs (the column says how many), seed {size.seed}. Do not edit: run it again. Figures are "
            "means ± one standard error against the true network; every method saw the same data and the same "
            "questions. Noise was seeded for the experiment, so the guarantee named is that of the same mechanism on "
            "secure noise, neighbours adding or removing one record."
        ),
        Points(
            (
                "`row`: L1 per CPD row, mean over rows and nodes; `weighted`: the same, rows weighted by how often "
                "they occur; `joint_kl`: KL of the whole joint; `query`: L1 of random marginal and conditional "
                "queries; `MAP`: share of most probable assignments found.",
                "Budget saving (`query`): D-Ind's ε for the same query error, divided by the method's ε; in brackets a "
                "90 % bootstrap interval over runs. It compares D-Ind under pure ε-DP; one method here has δ = 1e-6, a "
                "weaker promise.",
            )
        ),
    ]
    for network in size.networks:
        blocks += _network_blocks(at[at["network"] == network], found, network, figures)
    blocks += [
        Heading("Error against ε"),
        Figure(budget, f"Error against ε at {size.rows:,} records (bars: one standard error)"),
        Heading("Error against records"),
        Figure(records, "Error against the number of records at ε = 1 (bars: one standard error)"),
    ]
    if costs:
        blocks += [
            Heading("Time and memory"),
            Text(
                "One `dpbn.learn` with secure noise on random networks (2 to 4 states, up to 3 parents): the whole "
                "call, from pandas table to release, in a process of its own, on a machine shared with other work."
            ),
            Figure(cost_plot(costs, figures / "cost"), "Seconds and memory of one learning against nodes and records"),
            _cost_table(costs),
        ]
    return [*blocks, Heading("The other systems"), Points(tuple(_described(name) for name in BASELINES))]


def _described(name: str) -> str:
    told = description(name)
    fields = " ".join(f"*{field}:* {told[field]}" for field in ("Output", "Guarantee", "Sensitivity", "Source"))
    return f"**{BASELINES[name].title}** (`{name}`). {told['what']} {fields}"


def _network_blocks(at: pandas.DataFrame, found: Sequence[Saving], network: str, figures: Path) -> list[Block]:
    by = {s.method: str(s) for s in found if s.network == network and s.epsilon == 1.0 and s.measure == "query"}
    ordered = at.sort_values("query", na_position="last").to_dict("records")
    done = [entry for entry in ordered if entry["runs"]]
    rows = tuple(
        (
            METHODS[entry["method"]].title,
            METHODS[entry["method"]].guarantee,
            *(with_error(entry[m], entry[f"{m}_se"]) for m in COMPARED),
            by.get(entry["method"], "–"),
            f"{entry['seconds']:.2g}",
            str(entry["runs"]),
        )
        for entry in done
    )
    columns = ("method", "guarantee", *COMPARED[:-1], "MAP", "budget saving (`query`)", "seconds", "runs")
    plot = saving_plot(found, figures / f"saving-{network}", network=network, epsilon=1.0, measures=SAVED)
    refused = tuple(
        f"**{METHODS[entry['method']].title}** did not run: {entry['refusal']}."
        for entry in ordered
        if not entry["runs"]
    )
    return [
        Heading(network),
        Table(columns, rows),
        *([Points(refused)] if refused else []),
        Figure(plot, f"{network}: budget saving at ε = 1 (bars: 90 % bootstrap interval)"),
    ]


def _cost_table(costs: Sequence[Cost]) -> Table:
    rows = tuple(
        (METHODS[c.method].title, f"{c.nodes}", f"{c.rows:,}", f"{c.cells:,}", f"{c.seconds:.2f}", f"{c.megabytes:.0f}")
        for c in costs
    )
    return Table(("method", "nodes", "records", "CPT cells", "seconds", "megabytes"), rows)
