"""Options and printing that several commands share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dpbn.network import BayesianNetwork
from dpbn.release import Release, load_model

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
given_option = click.option(
    "--given", "-g", multiple=True, metavar="NODE=STATE", help="Evidence; repeat for more nodes."
)


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """A table on the terminal; plain when piped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    console.print(table)


def parse_given(given: Iterable[str]) -> dict[str, str]:
    """("BP=LOW",) -> {"BP": "LOW"}; the state may itself contain '='."""
    evidence: dict[str, str] = {}
    for item in given:
        node, equals, state = item.partition("=")
        if not equals or not node or not state:
            raise click.UsageError(f"--given must be NODE=STATE, got {item!r}")
        if node in evidence:
            raise click.UsageError(f"--given must name a node once, got {node!r} twice")
        evidence[node] = state
    return evidence


def warn_if_not_private(model: Release | BayesianNetwork) -> None:
    if isinstance(model, Release) and not model.private:
        click.echo("warning: this release is NOT private (made without secure noise); do not publish it", err=True)


def open_model(source: str) -> Release | BayesianNetwork:
    """A release, a network file or a bundled network, with a warning where it is not private."""
    model = load_model(source)
    warn_if_not_private(model)
    return model


def read_mapping(path: str | None, subject: str) -> Mapping[str, Any] | None:
    """A JSON object from a file."""
    if path is None:
        return None
    from dpbn.errors import FormatError
    from dpbn.files import read_text

    try:
        document = json.loads(read_text(Path(path)))
    except json.JSONDecodeError as error:
        raise FormatError(error.msg, source=path, line=error.lineno, column=error.colno) from None
    if not isinstance(document, dict):
        raise FormatError(f"{subject} must be a JSON object", source=path)
    return document
