"""dpbn sample, convert, inspect: networks and releases as files."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from dpbn.cli import option
from dpbn.cli.shared import (
    check_output,
    dash,
    network_of,
    open_model,
    parse_given,
    print_json,
    print_table,
    tell_written,
    with_schema,
    working,
)

if TYPE_CHECKING:
    from dpbn.domain import Variable
    from dpbn.network import BayesianNetwork, Structure
    from dpbn.release import Release

WEAK = "weak rows: so few records that the row cannot be told from an empty one, or from others"


@click.command()
@click.argument("model", type=option.ModelPath())
@click.option("--rows", "-n", type=click.IntRange(min=0), required=True, help="How many rows.")
@click.option("--seed", type=int, help="Repeatable draw.")
@option.evidence
@option.table_output
@option.overwrite
@option.json
def sample(
    model: str,
    rows: int,
    seed: int | None,
    given: tuple[str, ...],
    soft: tuple[str, ...],
    output: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Draw synthetic ROWS from MODEL, given evidence if wanted.

    \b
    dpbn sample alarm.release.json --rows 1000 --given BP=LOW -o rows.parquet
    """
    from dpbn.inference import Inference
    from dpbn.tables import check_ending, write_table

    check_output(output, model, overwrite=overwrite)
    check_ending(output)
    network = network_of(open_model(model))
    evidence = parse_given(given, soft, network)
    with working("drawing"):
        frame = Inference(network).sample(rows, evidence, seed=seed) if evidence else network.sample(rows, seed)
        write_table(frame, output)
    tell_written(output, as_json, rows)


@click.command()
@click.argument("source", type=option.ModelPath())
@click.argument("output", type=click.Path(dir_okay=False))
@click.option("--structure", is_flag=True, help="Without probabilities, which SOURCE need not have (.json only).")
@option.overwrite
@option.json
def convert(source: str, output: str, structure: bool, overwrite: bool, as_json: bool) -> None:
    """Convert SOURCE (release, network file or bundled name) to OUTPUT; formats by extension.

    \b
    dpbn convert alarm.release.json alarm.bif
    dpbn convert asia asia.xmlbif
    dpbn convert ward.bif ward.json --structure
    """
    from dpbn.formats import load_structure, write_network

    check_output(output, source, overwrite=overwrite)
    with working("converting"):
        write_network(load_structure(_open(source)[0]) if structure else open_model(source), output)
    tell_written(output, as_json)


@click.command()
@click.argument("source", type=option.ModelPath(), required=False)
@click.option("--node", help="Show this node's probability table.")
@option.schema
@click.option("--schema-from", metavar="STRUCTURE", help="Write a schema file (TOML) for this structure, to edit.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Where the schema file goes (default: print).")
@option.overwrite
@option.json
def inspect(
    source: str | None,
    node: str | None,
    schema: str | None,
    schema_from: str | None,
    output: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Show nodes, states and parents of SOURCE, and the guarantee, budget and weak rows of a release.

    With a schema file: which column of a table becomes which state, before anything is learned.

    \b
    dpbn inspect alarm.release.json
    dpbn inspect asia --node dysp
    dpbn inspect alarm.bif --schema alarm.schema.toml
    dpbn inspect --schema-from alarm.bif -o alarm.schema.toml
    """
    from dpbn.formats import load_structure
    from dpbn.release import Release

    if schema_from and (source or node):
        raise click.UsageError("inspect must be given a SOURCE or --schema-from, got both")
    if output and not schema_from:
        raise click.UsageError("--output must be given with --schema-from, got it alone")
    if schema and (node or schema_from):
        raise click.UsageError("--schema must be given with a structure, got --node or --schema-from beside it")
    if schema_from:
        _write_schema(schema_from, output, overwrite, as_json)
    elif not source:
        raise click.UsageError("inspect must be given a SOURCE or --schema-from, got neither")
    elif node:
        _show_node(source, node, as_json)
    else:
        model, lack = _open(source)
        if lack:
            click.echo(f"warning: the structure only: {lack}", err=True)
        if schema:
            if isinstance(model, Release):
                raise click.UsageError("--schema must be given with a structure, got a release, which holds its own")
            _show_declared(load_structure(model), schema, as_json)
            return
        _show(load_structure(model), model if isinstance(model, Release) else None, repr(model), as_json)


def _open(source: str) -> tuple[Release | BayesianNetwork | Structure, str]:
    """A release or a network; a structure alone; of a file whose probabilities are bad the structure, and why."""
    from dpbn.errors import BareStructureError, FormatError
    from dpbn.formats import load_structure
    from dpbn.statement import visible

    try:
        return open_model(source), ""
    except BareStructureError:
        return load_structure(source), ""
    except FormatError as error:
        with suppress(FormatError):
            return load_structure(source), visible(str(error))
        raise


def _show_declared(structure: Structure, path: str, as_json: bool) -> None:
    """The structure as a schema file declares it, and whose rows are bounded."""
    from dpbn.statement import visible

    public, unit, contributions = with_schema(structure, path, None, None)
    if as_json:
        print_json({"private": None, "unit": unit, "max_contributions": contributions, "nodes": _rows(public, None)})
        return
    _show(public, None, repr(public), as_json)
    if unit is None:
        click.echo("unit: none, so every row is protected by itself")
    else:
        click.echo(f"unit: {visible(unit)}, at most {contributions} row{'s' * (contributions != 1)} of each")


def _show(structure: Structure, release: Release | None, title: str, as_json: bool) -> None:
    rows = _rows(structure, release)
    if as_json:
        print_json({**_guarantee(release), "nodes": rows})
        return
    if release:
        _print_statement(release)
    click.echo(title)
    columns = ["node", "parents", "states", *(["epsilon", "weak rows", "reliability"] if release else [])]
    lines = [_line(row, structure.schema[row["node"]], release is not None) for row in rows]
    if any(row["column"] != row["node"] for row in rows):
        columns.insert(1, "column")
        lines = [(line[0], row["column"], *line[1:]) for line, row in zip(lines, rows, strict=True)]
    print_table(columns, lines)
    if release and release.allocation:
        click.echo(
            "epsilon: of tables with the node and its parents; one may serve several nodes: they need not add up"
        )
    if release and any(row["weak_rows"] for row in rows):
        click.echo(f"{WEAK}; see dpbn report")


def _rows(structure: Structure, release: Release | None) -> list[dict[str, Any]]:
    """What is told of each node."""
    from dpbn.support import supports

    behind = supports(structure, release.measurements, release.public_nodes) if release else {}
    rows: list[dict[str, Any]] = []
    for node in structure.nodes:
        row: dict[str, Any] = {
            "node": node,
            "states": list(structure.states(node)),
            "parents": list(structure.parents(node)),
            "column": structure.schema[node].source_column,
            "cut_points": structure.schema[node].cut_points,
            "catch_all": structure.schema[node].catch_all,
        }
        if release:
            row["epsilon"] = release.allocation.get(node)
            row["public"] = node in release.public_nodes
            row["rows"] = structure.cells(node) // len(structure.states(node))
            row["weak_rows"] = int(behind[node].below_floor.sum()) if node in behind else None
            row["reliability"] = behind[node].reliability if node in behind else None
        rows.append(row)
    return rows


def _print_statement(release: Release) -> None:
    """The guarantee as text for the terminal; `release.statement` is Markdown."""
    from dpbn.formats import NOT_PRIVATE
    from dpbn.statement import points, visible

    click.echo("Privacy statement\n")
    if not release.private:
        click.echo(f"{NOT_PRIVATE}\n")
    for point in points(release):
        click.echo(f"- {point.question} {visible(point.answer)}")
    click.echo()


def _line(row: dict[str, Any], variable: Variable, released: bool) -> tuple[str, ...]:
    from dpbn.statement import comma_list

    words = variable.meanings
    states = [comma_list([state]) + (f" ({words[state]})" if state in words else "") for state in variable.states]
    line = (row["node"], comma_list(row["parents"]), ", ".join(states))
    if not released:
        return line
    share = "public" if row["public"] else dash() if row["epsilon"] is None else f"{row['epsilon']:.4g}"
    weak = dash() if row["weak_rows"] is None else f"{row['weak_rows']} of {row['rows']}"
    return (*line, share, weak, row["reliability"] or dash())


def _guarantee(release: Release | None) -> dict[str, Any]:
    if release is None:
        return {"private": None}
    guarantee = release.guarantee.to_dict()
    if not release.private:
        guarantee["epsilon"] = None
    return {"private": release.private, "method": release.method, **guarantee, "id": release.id}


def _show_node(source: str, node: str, as_json: bool) -> None:
    import itertools

    model = open_model(source)
    network = network_of(model)
    cpt, parents = network.cpt(node), network.parents(node)
    weak = getattr(model, "weak_rows", {}).get(node)
    if as_json:
        table = {"node": node, "parents": list(parents), "states": list(network.states(node)), "cpt": cpt.tolist()}
        print_json(table if weak is None else {**table, "weak": weak.tolist()})
        return
    rows = []
    for index in itertools.product(*(range(size) for size in cpt.shape[:-1])):
        labels = [network.states(parent)[i] for parent, i in zip(parents, index, strict=True)]
        marks = [] if weak is None else ["weak" if weak[index] else ""]
        rows.append((*labels, *(f"{value:.4f}" for value in cpt[index]), *marks))
    columns = [*parents, *(f"{node}={state}" for state in network.states(node)), *([] if weak is None else ["row"])]
    print_table(columns, rows)
    if weak is not None:
        click.echo(WEAK)


def _write_schema(structure: str, output: str | None, overwrite: bool, as_json: bool) -> None:
    from dpbn.files import write_atomically
    from dpbn.formats import load_structure
    from dpbn.formats.schema_file import write_schema

    text = write_schema(load_structure(structure))
    if output:
        check_output(output, structure, overwrite=overwrite)
        write_atomically(output, text)
        tell_written(output, as_json)
    elif as_json:
        print_json({"schema": text})
    else:
        click.echo(text, nl=False)
