"""dpbn learn: private table in, release out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpbn.cli.shared import json_option, print_json, read_mapping


@click.command(name="learn")
@click.argument("data")
@click.argument("structure")
@click.option("--epsilon", "-e", type=float, required=True, help="Privacy budget of this release.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="Above 0: Gaussian noise, (ε, δ)-DP.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="Where the release is written.")
@click.option("--method", default="optimized", show_default=True, help="optimized, uniform, icml2020 or exact.")
@click.option("--neighbors", default="add-remove", show_default=True, help="add-remove or replace.")
@click.option("--schema", type=click.Path(exists=True, dir_okay=False), help="TOML file: cut points, columns, unit.")
@click.option("--unit", help="Column that names the person who owns a row.")
@click.option("--max-contributions", type=int, help="Rows kept per person.  [default: 1]")
@click.option("--on-unknown", default="error", show_default=True, help="error, drop, or a declared catch-all state.")
@click.option("--prior", type=float, help="Public Dirichlet pseudo-count added to every cell.")
@click.option("--public-cpts", type=click.Path(exists=True), help="JSON {node: CPT} that is public already.")
@click.option("--workload", type=click.Path(exists=True), help="JSON list of queries that matter most.")
@click.option("--ledger", type=click.Path(dir_okay=False), help="Budget file to charge.")
@click.option("--dataset", help="Name of the dataset in the ledger.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before spending.")
@json_option
def learn(
    data: str,
    structure: str,
    epsilon: float,
    delta: float,
    output: str,
    schema: str | None,
    unit: str | None,
    max_contributions: int | None,
    public_cpts: str | None,
    workload: str | None,
    ledger: str | None,
    dataset: str | None,
    yes: bool,
    as_json: bool,
    **choices: Any,
) -> None:
    """Learn the probabilities of STRUCTURE from the private table DATA (Parquet or CSV).

    \b
    dpbn learn patients.parquet alarm.bif --epsilon 1 -o alarm.release.json
    dpbn learn visits.csv alarm --epsilon 0.5 --unit patient --max-contributions 4 \\
         --ledger budget.db --dataset ward-7 -o alarm.release.json
    """
    import dpbn
    from dpbn.formats.schema_file import read_schema
    from dpbn.workload import read_workload

    public = dpbn.load_structure(structure)
    if schema:
        public, schema_unit, schema_contributions = read_schema(Path(schema).read_text("utf-8"), public)
        unit = unit or schema_unit
        max_contributions = max_contributions or schema_contributions
    book = dpbn.Ledger(ledger) if ledger else None
    if not yes:
        _ask(epsilon, delta, book, dataset)
    release = dpbn.learn(
        data,
        public,
        epsilon,
        delta,
        unit=unit,
        max_contributions=max_contributions or 1,
        public_cpts=read_mapping(public_cpts, "public CPTs"),
        workload=read_workload(workload, public) if workload else None,
        ledger=book,
        dataset=dataset,
        **choices,
    )
    release.save(output)
    if as_json:
        guarantee = release.guarantee
        summary = {"output": output, "private": release.private, "epsilon": guarantee.epsilon, "delta": guarantee.delta}
        print_json({**summary, "id": release.id, "allocation": dict(release.allocation)})
    else:
        click.echo(f"wrote {output}: {release!r}")
        if book and dataset:
            click.echo(f"left in the ledger for {dataset}: epsilon {float(book.remaining(dataset).epsilon):g}")


def _ask(epsilon: float, delta: float, book: Any, dataset: str | None) -> None:
    click.echo(f"about to spend epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else ""), err=True)
    if book and dataset:
        click.echo(f"left for {dataset} before: epsilon {float(book.remaining(dataset).epsilon):g}", err=True)
    click.confirm("go on?", abort=True, err=True)
