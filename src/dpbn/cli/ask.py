"""dpbn query, map, predict: questions to a network or a release."""

from __future__ import annotations

import itertools
from typing import Any

import click

from dpbn.cli.shared import (
    ModelPath,
    check_output,
    given_option,
    json_option,
    network_of,
    open_model,
    parse_given,
    print_json,
    print_table,
    soft_option,
    working,
)


@click.command()
@click.argument("model", type=ModelPath())
@click.argument("targets", nargs=-1, required=True)
@given_option
@soft_option
@click.option("--interval", type=float, default=0.9, show_default=True, help="Level of the error bars (releases only).")
@click.option("--plan", "only_plan", is_flag=True, help="Show what the question would take, and do not ask it.")
@json_option
def query(
    model: str,
    targets: tuple[str, ...],
    given: tuple[str, ...],
    soft: tuple[str, ...],
    interval: float,
    only_plan: bool,
    as_json: bool,
) -> None:
    """Distribution of TARGETS in MODEL (a release, a network file, or a bundled name).

    \b
    dpbn query alarm.release.json HR --given BP=LOW
    dpbn query asia lung bronc --given smoke=yes
    dpbn query asia lung --soft 'smoke={"yes": 0.7, "no": 0.3}' --json
    """
    from dpbn.inference import Inference

    if not 0 < interval < 1:
        raise click.UsageError(f"--interval must be between 0 and 1, got {interval}")
    ask, evidence = Inference(open_model(model)), parse_given(given, soft)
    if only_plan:
        _show_plan(ask.plan(list(targets), evidence), as_json)
        return
    with working("computing"):
        answer = ask.query(list(targets), evidence)
        bars = intervals(answer, interval)
    if as_json:
        document = answer.to_dict()
        if bars:
            document |= {"level": interval, "low": bars[0].tolist(), "high": bars[1].tolist()}
        print_json(document)
        return
    rows = []
    for cell in itertools.product(*(range(len(s)) for s in answer.states)):
        labels = [s[i] for s, i in zip(answer.states, cell, strict=True)]
        shown = [f"{answer.values[cell]:.4f}"]
        if bars:
            shown.append(f"{bars[0][cell]:.4f} – {bars[1][cell]:.4f}")
        rows.append((*labels, *shown))
    columns = [*answer.variables, "probability", *([f"{interval:.0%} interval"] if bars else [])]
    print_table(columns, rows)


def intervals(answer: Any, level: float) -> Any:
    """Low and high ends, or None for an answer that has no error bars (from a network, or without noise)."""
    from dpbn.errors import InputError

    try:
        return answer.interval(level)
    except InputError:
        return None


def _show_plan(plan: Any, as_json: bool) -> None:
    if as_json:
        print_json({"width": plan.width, "cells": plan.cells, "bytes": plan.bytes})
    else:
        click.echo(str(plan))


@click.command()
@click.argument("model", type=ModelPath())
@click.argument("targets", nargs=-1)
@given_option
@soft_option
@json_option
def map(model: str, targets: tuple[str, ...], given: tuple[str, ...], soft: tuple[str, ...], as_json: bool) -> None:
    """Most probable states of TARGETS together, or of all unobserved nodes if none are named.

    \b
    dpbn map alarm.release.json HR CO --given BP=LOW
    dpbn map asia --given xray=yes
    """
    from dpbn.inference import Inference

    ask = Inference(open_model(model))
    evidence = parse_given(given, soft)
    with working("searching"):
        assignment, probability = ask.map(list(targets), evidence) if targets else ask.mpe(evidence)
    if as_json:
        print_json({"assignment": dict(assignment), "probability": float(probability)})
    else:
        print_table(["node", "state"], list(assignment.items()))
        click.echo(f"probability given the evidence: {probability:.6g}")


@click.command()
@click.argument("model", type=ModelPath())
@click.argument("table", type=click.Path(exists=True, dir_okay=False))
@click.argument("target")
@click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="CSV or Parquet to write.")
@click.option(
    "--on-impossible",
    type=click.Choice(["error", "prior"]),
    default="error",
    show_default=True,
    help="Rows that contradict the network: refuse, or give them the prior.",
)
@json_option
def predict(model: str, table: str, target: str, output: str, on_impossible: str, as_json: bool) -> None:
    """Probabilities of TARGET for every row of TABLE (CSV or Parquet; missing values allowed).

    \b
    dpbn predict alarm.release.json new-patients.csv HR -o heart-rates.csv
    """
    from dpbn.inference import Inference
    from dpbn.tables import read_table, write_table

    check_output(output)
    opened = open_model(model)
    with working("predicting"):
        values = Inference(opened).predict_proba(read_table(table), target, on_impossible=on_impossible)
        columns = {state: values[:, i] for i, state in enumerate(network_of(opened).states(target))}
        write_table(columns, output)
    if as_json:
        print_json({"output": output, "rows": len(values)})
    else:
        click.echo(f"wrote {output}: {len(values)} rows")
