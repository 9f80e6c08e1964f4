"""dpbn query, map, predict: questions to a network or a release."""

from __future__ import annotations

import itertools
from typing import Any

import click

from dpbn.cli.shared import given_option, json_option, open_model, parse_given, print_json, print_table


@click.command()
@click.argument("model")
@click.argument("targets", nargs=-1, required=True)
@given_option
@click.option("--interval", type=float, default=0.9, show_default=True, help="Level of the error bars (releases only).")
@json_option
def query(model: str, targets: tuple[str, ...], given: tuple[str, ...], interval: float, as_json: bool) -> None:
    """Distribution of TARGETS in MODEL (a release, a network file, or a bundled name).

    \b
    dpbn query alarm.release.json HR --given BP=LOW
    dpbn query asia lung bronc --given smoke=yes
    """
    from dpbn.inference import Inference

    network = open_model(model)
    answer = Inference(network).query(list(targets), parse_given(given))
    bars = answer.interval(interval) if hasattr(network, "measurements") else None
    states = [answer_states(network, name) for name in answer.variables]
    if as_json:
        document: dict[str, Any] = {
            "variables": list(answer.variables),
            "states": [list(s) for s in states],
            "values": answer.values.tolist(),
        }
        if bars:
            document |= {"level": interval, "low": bars[0].tolist(), "high": bars[1].tolist()}
        print_json(document)
        return
    rows = []
    for cell in itertools.product(*(range(len(s)) for s in states)):
        labels = [s[i] for s, i in zip(states, cell, strict=True)]
        shown = [f"{answer.values[cell]:.4f}"]
        if bars:
            shown.append(f"{bars[0][cell]:.4f} – {bars[1][cell]:.4f}")
        rows.append((*labels, *shown))
    columns = [*answer.variables, "probability", *([f"{interval:.0%} interval"] if bars else [])]
    print_table(columns, rows)


def answer_states(model: Any, name: str) -> tuple[str, ...]:
    states: tuple[str, ...] = getattr(model, "network", model).states(name)
    return states


@click.command()
@click.argument("model")
@click.argument("targets", nargs=-1)
@given_option
@json_option
def map(model: str, targets: tuple[str, ...], given: tuple[str, ...], as_json: bool) -> None:
    """Most probable states of TARGETS, or of all unobserved nodes if none are named.

    \b
    dpbn map alarm.release.json HR CO --given BP=LOW
    dpbn map asia --given xray=yes
    """
    from dpbn.inference import Inference

    ask = Inference(open_model(model))
    evidence = parse_given(given)
    assignment, probability = ask.map(list(targets), evidence) if targets else ask.mpe(evidence)
    if as_json:
        print_json({"assignment": dict(assignment), "probability": float(probability)})
    else:
        print_table(["node", "state"], list(assignment.items()))
        click.echo(f"probability given the evidence: {probability:.6g}")


@click.command()
@click.argument("model")
@click.argument("table", type=click.Path(exists=True))
@click.argument("target")
@click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="CSV or Parquet to write.")
def predict(model: str, table: str, target: str, output: str) -> None:
    """Probabilities of TARGET for every row of TABLE (CSV or Parquet; missing values allowed).

    \b
    dpbn predict alarm.release.json new-patients.csv HR -o heart-rates.csv
    """
    from dpbn.inference import Inference
    from dpbn.tables import read_table, write_table

    network = open_model(model)
    values = Inference(network).predict_proba(read_table(table), target)
    columns = {state: values[:, i] for i, state in enumerate(answer_states(network, target))}
    write_table(columns, output)
    click.echo(f"wrote {output}: {len(values)} rows")
