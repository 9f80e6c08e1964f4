"""dpbn query, map, predict: questions to a network or a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpbn.cli import option
from dpbn.cli.shared import (
    check_output,
    check_targets,
    dash,
    network_of,
    open_model,
    parse_given,
    parse_versus,
    print_json,
    print_table,
    tell_written,
    working,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas

    from dpbn.domain import Schema

MOST_ROWS = 200  # of a printed answer
MOST_NAMED = 4  # weak rows


@click.command()
@click.argument("model", type=option.ModelPath())
@click.argument("targets", nargs=-1, required=True)
@option.evidence
@click.option(
    "--versus",
    multiple=True,
    metavar="NODE=STATE",
    help="Compare with this instead of what --given says of NODE; NODE alone: with NODE not observed.",
)
@click.option("--interval", type=float, default=0.9, show_default=True, help="Level of the error bars (releases only).")
@option.no_interval
@click.option("--plan", "only_plan", is_flag=True, help="Show what the question would take, and do not ask it.")
@option.json
def query(
    model: str,
    targets: tuple[str, ...],
    given: tuple[str, ...],
    soft: tuple[str, ...],
    versus: tuple[str, ...],
    interval: float,
    no_interval: bool,
    only_plan: bool,
    as_json: bool,
) -> None:
    """Distribution of TARGETS in MODEL (a release, a network file, or a bundled name).

    \b
    dpbn query alarm.release.json HR --given BP=LOW
    dpbn query asia lung bronc --given smoke=yes
    dpbn query alarm.release.json HR --given BP=LOW --versus BP=HIGH
    dpbn query asia lung --soft 'smoke={"yes": 0.7, "no": 0.3}' --json
    """
    from dpbn.inference import Inference

    _check_level(interval)
    opened = open_model(model, targets)
    ask = Inference(opened)
    check_targets(targets, network_of(opened))
    evidence = parse_given(given, soft, network_of(opened))
    if only_plan:
        _show_plan(ask.plan(list(targets), evidence), as_json)
        return
    with working("computing"):
        found: Any = (
            ask.compare(list(targets), evidence, parse_versus(versus, evidence, network_of(opened)))
            if versus
            else ask.query(list(targets), evidence)
        )
        bars = {} if no_interval else _intervals(found, interval)
    if as_json:
        print_json(_document(found, interval, bars))
        return
    first, sign = (found.first, "+") if versus else (found, "")
    told = {"given": first, "versus": found.second, "difference": found} if versus else {"probability": found}
    if versus or len(targets) > 1:  # no wider than a terminal; --json has all parts
        bars = {part: ends for part, ends in bars.items() if part == "total"}
    headings = {"total": f"{100 * interval:.10g}% interval", "privacy": "privacy alone", "sampling": "sampling alone"}
    cells, left = first.most_probable(MOST_ROWS)
    rows = []
    for cell in cells if left else sorted(cells):
        labels = [s[i] for s, i in zip(found.states, cell, strict=True)]
        values = [f"{its.values[cell]:{sign if its is found else ''}.4f}" for its in told.values()]
        ends = [f"{low[cell]:{sign}.4f} {dash()} {high[cell]:{sign}.4f}" for low, high in bars.values()]
        rows.append((*labels, *values, *ends))
    print_table([*found.variables, *told, *(headings[part] for part in bars)], rows)
    if left:
        click.echo(f"and {left:,} combinations less probable; --json gives all")
    _warn_of_weak_rows(found.weak_rows, of_one=not versus)


def _check_level(interval: float | None) -> None:
    if interval is not None and not 0 < interval < 1:
        raise click.UsageError(f"--interval must be between 0 and 1, got {interval}")


def _intervals(answer: Any, level: float) -> dict[str, Any]:
    """Low and high ends by part; none for an answer that has no error bars (from a network, or without noise)."""
    from dpbn.errors import InputError

    try:
        return {part: answer.interval(level, part) for part in ("total", "privacy", "sampling")}
    except InputError:
        return {}


def _warn_of_weak_rows(weak: list[Any], of_one: bool) -> None:
    """How much of `of_one` answer lies on weak rows (of two each row may be of either), and which they are."""
    from dpbn.uncertainty.leaning import Leaning

    if weak:
        share = f"at least {Leaning(tuple(weak)).share:.1%} of the probability lies on"
        where = share if of_one else "behind this answer are"
        named = [f"{row} {row.weight:.1%}" for row in weak[:MOST_NAMED]]
        left = [f"and {len(weak) - MOST_NAMED} more"] if len(weak) > MOST_NAMED else []
        click.echo(
            f"note: {where} rows with too few records to be learned well (how probable each is, given the evidence): "
            f"{'; '.join(named + left)}",
            err=True,
        )


def _document(answer: Any, level: float, bars: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = answer.to_dict()
    if bars:
        ends = {part: {"low": low.tolist(), "high": high.tolist()} for part, (low, high) in bars.items()}
        document |= {"level": level, **ends.pop("total"), **ends}
    if answer.bars is not None:
        weak = [{"node": row.node, "parents": row.parents, "weight": row.weight} for row in answer.weak_rows]
        document["weak_rows"] = weak
    return document


def _show_plan(plan: Any, as_json: bool) -> None:
    if as_json:
        print_json({"width": plan.width, "cells": plan.cells, "bytes": plan.bytes})
    else:
        click.echo(str(plan))


@click.command()
@click.argument("model", type=option.ModelPath())
@click.argument("targets", nargs=-1)
@option.evidence
@option.json
def map(model: str, targets: tuple[str, ...], given: tuple[str, ...], soft: tuple[str, ...], as_json: bool) -> None:
    """Most probable states of TARGETS together, or of all unobserved nodes if none are named.

    \b
    dpbn map alarm.release.json HR CO --given BP=LOW
    dpbn map asia --given xray=yes
    """
    from dpbn.inference import Inference

    opened = open_model(model, targets)
    ask = Inference(opened)
    check_targets(targets, network_of(opened))
    evidence = parse_given(given, soft, network_of(opened))
    with working("searching"):
        assignment, probability = ask.map(list(targets), evidence) if targets else ask.mpe(evidence)
        stability = ask.stability(assignment, evidence) if getattr(opened, "measurements", ()) else None
    if as_json:
        kept = {} if stability is None else {"stability": stability}
        print_json({"assignment": dict(assignment), "probability": float(probability), **kept})
        return
    print_table(["node", "state"], list(assignment.items()))
    click.echo(f"probability given the evidence: {probability:.6g}")
    if stability is not None:
        click.echo(f"stability: the best in {stability:.0%} of plausible networks around this release")


@click.command()
@click.argument("model", type=option.ModelPath())
@click.argument("table", type=option.InputFile(dir_okay=False))
@click.argument("target")
@option.table_output
@click.option(
    "--on-impossible",
    type=click.Choice(["error", "prior"]),
    default="error",
    show_default=True,
    help="Rows that contradict the network: refuse, or give them the prior.",
)
@click.option(
    "--on-unknown",
    default="error",
    show_default=True,
    help="error (missing values are summed out), or a declared catch-all state for both missing and undeclared "
    "values (catch_all: each variable's own).",
)
@click.option("--interval", type=float, help="Also write low and high ends at this level (releases only).")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Write this column of TABLE too; repeat for more.")
@option.overwrite
@option.json
def predict(
    model: str,
    table: str,
    target: str,
    output: str,
    interval: float | None,
    keep: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
    **policies: str,
) -> None:
    """Probabilities of TARGET for every row of TABLE (CSV or Parquet; missing values allowed).

    \b
    dpbn predict alarm.release.json new-patients.csv HR -o heart-rates.csv
    dpbn predict alarm.release.json new-patients.csv HR --keep ID --interval 0.9 -o hr.parquet
    """
    from dpbn.inference import Inference
    from dpbn.tables import check_ending, read_table, write_table

    _check_level(interval)
    check_output(output, model, table, overwrite=overwrite)
    check_ending(output)
    opened = open_model(model, (table, target))
    with working("predicting"):
        ask, rows = Inference(opened), read_table(table)
        states = network_of(opened).states(target)
        ends = [] if interval is None else [f"{state} {end}" for state in states for end in ("low", "high")]
        kept = _kept(rows, keep, [*states, *ends])
        _check_columns([str(name) for name in rows.columns], target, network_of(opened).structure.schema, kept)
        values = ask.predict_proba(rows, target, **policies)
        columns = kept | {state: values[:, i] for i, state in enumerate(states)}
        if interval is not None:
            bars = ask.predict_intervals(rows, target, **policies).interval(interval)
            columns |= {name: bars[i % 2][:, i // 2] for i, name in enumerate(ends)}
        write_table(columns, output)
    tell_written(output, as_json, len(values))


def _kept(rows: pandas.DataFrame, keep: tuple[str, ...], made: list[str]) -> dict[str, Any]:
    """Columns of the table that are written as they are, so that predictions can be told apart and joined."""
    from dpbn.errors import InputError, did_you_mean
    from dpbn.matching import headers_by_name

    headers = headers_by_name([str(name) for name in rows.columns])
    for name in keep:
        if name not in headers:
            raise InputError(f"--keep must name a column of the table, got {name!r}{did_you_mean(name, headers)}")
        if name in made:
            raise InputError(f"--keep must not name a column of the predictions, got {name!r}: rename it first")
    return {name: rows[headers[name]] for name in keep}


def _check_columns(columns: list[str], target: str, schema: Schema, kept: Collection[str]) -> None:
    """Refuse a table that says nothing about the network; mention columns that will be ignored."""
    from dpbn.errors import InputError, did_you_mean
    from dpbn.matching import unguarded

    known = {variable.source_column: variable.name for variable in schema} | {name: name for name in schema.names}
    columns = [name if name in known else unguarded(name) for name in columns]
    if not {known[name] for name in columns if name in known} - {target}:
        hint = " (columns must be separated by commas)" if len(columns) == 1 else ""
        raise InputError(f"the table must have a column named like a node of the network, got {columns[:8]}{hint}")
    if stray := [f"{name!r}{did_you_mean(name, known)}" for name in columns if name not in {*known, *kept}]:
        click.echo(f"warning: columns are ignored: {', '.join(stray)}", err=True)
