"""dpbn sample, convert, inspect: networks and releases as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpbn.cli.shared import given_option, json_option, open_model, parse_given, print_json, print_table
from dpbn.release import Release


@click.command()
@click.argument("model")
@click.option("--rows", "-n", type=int, required=True, help="How many rows.")
@click.option("--seed", type=int, help="Repeatable draw.")
@given_option
@click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="CSV or Parquet to write.")
def sample(model: str, rows: int, seed: int | None, given: tuple[str, ...], output: str) -> None:
    """Draw synthetic ROWS from MODEL, given evidence if wanted.

    \b
    dpbn sample alarm.release.json --rows 1000 --given BP=LOW -o rows.parquet
    """
    from dpbn.inference import Inference
    from dpbn.tables import write_table

    opened = open_model(model)
    network = opened.network if isinstance(opened, Release) else opened
    evidence = parse_given(given)
    frame = Inference(network).sample(rows, evidence, seed=seed) if evidence else network.sample(rows, seed)
    write_table(frame, output)
    click.echo(f"wrote {output}: {rows} rows")


@click.command()
@click.argument("source")
@click.argument("output", type=click.Path(dir_okay=False))
def convert(source: str, output: str) -> None:
    """Convert SOURCE (release, network file or bundled name) to OUTPUT; formats by extension.

    \b
    dpbn convert alarm.release.json alarm.bif
    dpbn convert asia asia.xmlbif
    """
    from dpbn.formats import write_network

    opened = open_model(source)
    write_network(opened.network if isinstance(opened, Release) else opened, output)
    click.echo(f"wrote {output}")


@click.command()
@click.argument("source", required=False)
@click.option("--schema-from", metavar="STRUCTURE", help="Write a schema file (TOML) for this structure, to edit.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Where the schema file goes (default: print).")
@json_option
def inspect(source: str | None, schema_from: str | None, output: str | None, as_json: bool) -> None:
    """Show nodes, states and parents of SOURCE, and the guarantee and budget of a release.

    \b
    dpbn inspect alarm.release.json
    dpbn inspect --schema-from alarm.bif -o alarm.schema.toml
    """
    if schema_from:
        _write_schema(schema_from, output)
        return
    if not source:
        raise click.UsageError("inspect must be given a SOURCE or --schema-from")
    model = open_model(source)
    release = model if isinstance(model, Release) else None
    network = release.network if release else model
    assert not isinstance(network, Release)
    rows: list[dict[str, Any]] = [
        {
            "node": node,
            "states": list(network.states(node)),
            "parents": list(network.parents(node)),
            **({"epsilon": release.allocation.get(node)} if release else {}),
        }
        for node in network.nodes
    ]
    if as_json:
        print_json({"nodes": rows, "private": release.private if release else None})
        return
    if release:
        click.echo(release.statement)
    shown = [
        (r["node"], ", ".join(r["parents"]), ", ".join(r["states"]))
        + ((f"{r['epsilon']:.4f}" if r["epsilon"] is not None else "public",) if release else ())
        for r in rows
    ]
    click.echo(repr(network))
    print_table(["node", "parents", "states", *(["epsilon"] if release else [])], shown)


def _write_schema(structure: str, output: str | None) -> None:
    from dpbn.files import write_atomically
    from dpbn.formats import load_structure
    from dpbn.formats.schema_file import write_schema

    text = write_schema(load_structure(structure))
    if output:
        write_atomically(Path(output), text)
        click.echo(f"wrote {output}")
    else:
        click.echo(text, nl=False)
