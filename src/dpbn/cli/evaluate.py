"""dpbn evaluate and dpbn reproduce: compare methods on simulated data; run the paper's evaluation again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from dpbn.cli import option
from dpbn.cli.shared import dash, print_json, print_table, working

seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Of the simulated data and noise.")
processes_option = click.option(
    "--processes", type=click.IntRange(min=1), default=lambda: os.cpu_count() or 1, help="Default: one per core."
)


class Several(click.ParamType):
    """Comma-separated values of one kind."""

    def __init__(self, kind: type):
        self.kind, self.name = kind, f"{kind.__name__},…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(self.kind(part.strip()) for part in str(value).split(",") if part.strip())
        except ValueError:
            self.fail(f"{value!r} is not a list of {self.kind.__name__} values", param, ctx)


@contextmanager
def counting_runs() -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that also counts; nothing where nobody watches."""
    with working("runs") as move:
        yield lambda done, total: move(done / max(total, 1), f"runs {done}/{total}")


@click.command()
@click.option(
    "--networks", type=Several(str), default="asia,sachs,child,alarm", show_default=True, help="Known networks."
)
@click.option(
    "--methods", type=Several(str), default="uniform,icml2020,optimized", show_default=True, help="What to compare."
)
@click.option("--epsilons", type=Several(float), default="1,1.5,2,2.5,3", show_default=True, help="Budgets.")
@click.option("--rows", type=Several(int), default="10000", show_default=True, help="Records per simulated table.")
@click.option(
    "--runs", type=click.IntRange(min=1), default=10, show_default=True, help="Simulated tables, one release of each."
)
@click.option("--queries", type=int, default=20, show_default=True, help="Queries, and as many MAP questions, per run.")
@click.option(
    "--against",
    type=click.Choice(["true", "exact"]),
    default="true",
    show_default=True,
    help="Judge: the true network, or the table's frequencies.",
)
@seed_option
@processes_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="results.parquet",
    show_default=True,
    help="One row per run.",
)
@click.option(
    "--standing",
    type=click.Path(file_okay=False),
    default=None,
    help="Folder: run the standing comparison "
    "instead (all methods and baselines, budget savings, scaling) and write comparison.md and .html there.",
)
@option.json
def evaluate(output: str, processes: int, standing: str | None, as_json: bool, **grid: Any) -> None:
    """Compare methods on data simulated from known networks.

    One row per network, method, epsilon, rows and run, in Parquet or CSV by the ending of OUTPUT. Every method
    sees the same data and the same questions. Stopped, it goes on where it was when started again.

    \b
    dpbn evaluate --networks asia,alarm --methods uniform,optimized,hdmm --epsilons 1 -o results.parquet
    dpbn evaluate --standing comparison --runs 20
    """
    from dpbn.evaluate.experiments import Grid, run
    from dpbn.evaluate.results import summary

    if standing is not None:
        for name in ("networks", "methods", "epsilons", "rows", "queries", "against"):
            if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--{name} must be given without --standing, which has its own, got both")
        _standing(standing, output, processes, grid["runs"], grid["seed"], as_json)
        return
    with counting_runs() as progress:
        rows = run(Grid(**grid), output, processes=processes, progress=progress)
    shown = ("row", "weighted", "joint_kl", "query", "map_accuracy", "seconds")
    table = summary(rows)
    if as_json:
        print_json(json.loads(table.to_json(orient="records")))
        return
    print_table(
        ["network", "rows", "epsilon", "method", *shown, "runs"],
        [
            (r["network"], r["rows"], r["epsilon"], r["method"], *(_figure(r[name]) for name in shown), r["runs"])
            for r in table.to_dict("records")
        ],
    )
    for reason in sorted({r["refusal"] for r in table.to_dict("records") if r["refusal"]}):
        click.echo(f"refused: {reason}", err=True)
    click.echo(f"{len(rows)} rows of this comparison are in {output}", err=True)


def _standing(folder: str, results: str, processes: int, runs: int, seed: int, as_json: bool) -> None:
    from dpbn.evaluate.comparison import Size, compare

    size = Size(runs=runs, sweep_runs=min(runs, 5), slow_runs=min(runs, 10), seed=seed)
    command = f"dpbn evaluate --standing {folder} --runs {runs}" + (f" --seed {seed}" if seed else "")
    with counting_runs() as progress:
        page = compare(folder, size=size, processes=processes, results=results, command=command, progress=progress)
    if as_json:
        print_json({"page": str(page)})
    else:
        click.echo(f"{page} and {page.with_suffix('.html').name}", err=True)


@click.command()
@click.option("--quick", is_flag=True, help="A few runs only: minutes instead of a coffee.")
@click.option("--runs", type=click.IntRange(min=1), default=None, help="Default: the paper's 10, or 3 with --quick.")
@seed_option
@processes_option
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    default="reproduction",
    show_default=True,
    help="Folder for pages and figures.",
)
@click.option("--results", type=click.Path(dir_okay=False), default=None, help="Default: results.parquet in OUTPUT.")
@option.json
def reproduce(
    quick: bool, runs: int | None, seed: int, processes: int, output: str, results: str | None, as_json: bool
) -> None:
    """Run the ICML 2020 paper's evaluation: 16 panels, both tables, its claims.

    Ends in OUTPUT/reproduction.md and .html: what reproduces, what does not, and why. Stopped, it goes on
    where it was when started again.

    \b
    dpbn reproduce --quick
    """
    from pathlib import Path

    from dpbn.evaluate.reproduce import reproduce as run_reproduction

    Path(output).mkdir(parents=True, exist_ok=True)
    command = f"dpbn reproduce -o {output}" + (" --quick" if quick else "") + (f" --runs {runs}" if runs else "")
    with counting_runs() as progress:
        found = run_reproduction(
            output,
            quick=quick,
            runs=runs,
            seed=seed,
            processes=processes,
            results=results or str(Path(output) / "results.parquet"),
            command=command + (f" --seed {seed}" if seed else ""),
            progress=progress,
        )
    rows = [tuple(cell.replace("**", "") for cell in claim.cells) for claim in found.claims]
    names = ["claim", "paper", "Algorithm 1", "reproduces", "optimized", "holds for it"]
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table(names, rows)
    click.echo(f"{found.markdown} and {found.html.name}", err=True)


def _figure(value: float) -> str:
    return dash() if math.isnan(value) else f"{value:.4f}"
