"""dpbn plan: what a release will be worth, before any private data is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpbn.cli import option
from dpbn.cli.shared import own_options, print_json, print_table, read_public_cpts, with_schema, working

if TYPE_CHECKING:
    from dpbn.uncertainty.forecast import Forecast


@click.command()
@click.argument("structure", type=option.ModelPath())
@click.option("--epsilon", "-e", type=float, help="Privacy budget to try.  [default: 1, or that of --wanted-error]")
@click.option("--delta", type=float, default=0.0, show_default=True, help="Above 0: less noise for many tables.")
@click.option("--rows", "-n", type=int, default=10_000, show_default=True, help="About how many records there are.")
@option.word("--method", *option.METHODS[:-1])
@option.word("--neighbors", *option.NEIGHBORS)
@option.schema
@option.contributions
@option.prior
@option.public_cpts
@click.option("--guess", help="A network or an earlier release over this structure, for a sharper forecast.")
@click.option("--workload", type=option.InputFile(), help="JSON list of queries to forecast.")
@option.own
@click.option("--simulations", type=int, default=8, show_default=True, help="How many simulated releases to average.")
@click.option("--wanted-error", type=float, help="Find the epsilon that reaches this mean error.")
@click.option("--tables", is_flag=True, help="Also list the tables that will be measured.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Write a picture (.png or .svg).")
@option.json
def plan(
    structure: str,
    epsilon: float | None,
    rows: int,
    schema: str | None,
    max_contributions: int | None,
    public_cpts: str | None,
    guess: str | None,
    workload: str | None,
    options: tuple[str, ...],
    wanted_error: float | None,
    tables: bool,
    plot: str | None,
    as_json: bool,
    **choices: Any,
) -> None:
    """Forecast the errors of `dpbn learn` on STRUCTURE. Reads public facts only.

    Options mean what they mean to `dpbn learn`. Of those that choose records (--unit, --on-unknown) it needs none:
    say in --rows about how many records will count.

    \b
    dpbn plan alarm --epsilon 1 --rows 10000
    dpbn plan alarm --rows 10000 --wanted-error 0.05
    dpbn plan ward.bif --schema ward.schema.toml --rows 5000
    """
    import dpbn
    from dpbn.files import check_writable
    from dpbn.release import load_model
    from dpbn.uncertainty.forecast import LEAST_EPSILON
    from dpbn.workload import read_workload

    public = dpbn.load_structure(structure)
    if schema:
        public, _, max_contributions = with_schema(public, schema, None, max_contributions)
    if plot:
        check_writable(plot)
    with working("simulating releases"):
        forecast = dpbn.plan(
            public,
            1.0 if epsilon is None else epsilon,
            rows,
            max_contributions=1 if max_contributions is None else max_contributions,
            public_cpts=read_public_cpts(public_cpts),
            guess=load_model(guess) if guess else None,
            workload=read_workload(workload, public) if workload else None,
            **choices,
            **own_options(options, dpbn.plan),
        )
        wanted = forecast.epsilon_for(wanted_error) if wanted_error is not None else None
        if wanted and epsilon is None:
            forecast = forecast.again(wanted)
        span = forecast.span
    if plot:
        forecast.plot(plot)
    if as_json:
        print_json({**forecast.to_dict(), **({"epsilon_for_wanted_error": wanted} if wanted else {})})
        return
    if wanted:
        enough = "is reached at any epsilon from" if wanted == LEAST_EPSILON else "needs epsilon"
        click.echo(f"a mean error of {wanted_error:g} {enough} {wanted:.3g}")
    _show(forecast, span, tables)


def _show(forecast: Forecast, span: str, tables: bool) -> None:
    click.echo(forecast.headline)
    if span:
        click.echo(span)
    print_table(
        ["node", "expected error", "rows below noise"],
        [(n, f"{e:.3f}", f"{forecast.rare_rows[n]:.0%}") for n, e in forecast.node_errors.items()],
    )
    if forecast.query_errors:
        print_table(["query", "expected error"], [(str(q), f"{e:.3f}") for q, e in forecast.query_errors.items()])
    if tables:
        planned = [
            (" ".join(t.names) or "(number of records)", t.cells, t.mechanism, f"{t.deviation:.1f}")
            for t in forecast.tables
        ]
        print_table(["table", "cells", "noise", "deviation of a cell"], planned)
