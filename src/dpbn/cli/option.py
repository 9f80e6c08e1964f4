"""Options and arguments that several commands share, as `@option.json` above a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

METHODS, NEIGHBORS = ("optimized", "uniform", "icml2020", "exact"), ("add-remove", "replace")  # defaults first

json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
overwrite = click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
table_output = click.option(
    "--output", "-o", type=click.Path(dir_okay=False), required=True, help="CSV or Parquet to write."
)
no_interval = click.option(
    "--no-interval", is_flag=True, help="No error bars, which take most of the time on a large network."
)


def evidence(command: Any) -> Any:
    """--given and --soft, both of them for `parse_given`."""
    hard = "Evidence, also a number for its range; repeat for more nodes."
    soft = 'Uncertain evidence: \'BP={"LOW": 0.8, "NORMAL": 0.2, "HIGH": 0.1}\'; states left out are impossible.'
    command = click.option("--soft", multiple=True, metavar="NODE=JSON", help=soft)(command)
    return click.option("--given", "-g", multiple=True, metavar="NODE=STATE", help=hard)(command)


class ModelPath(click.Path):
    """A release, a network file or a bundled name; the shell completes names and files."""

    name = "model"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from dpbn.formats import BUNDLED

        names = [CompletionItem(name) for name in BUNDLED if name.startswith(incomplete)]
        return [*names, *super().shell_complete(ctx, param, incomplete)]


class InputFile(click.Path):
    """A file to read. One that is missing is refused with a reason, like one that is no good: exit code 1."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dpbn.errors import InputError

        place = Path(value)
        if not place.exists():
            raise InputError(f"{str(value)!r} must be an existing file, got none of that name")
        if place.is_dir():
            raise InputError(f"{str(value)!r} must be a file, got a folder")
        return value


schema = click.option("--schema", type=InputFile(dir_okay=False), help="TOML file: cut points, columns, unit.")
contributions = click.option("--max-contributions", type=int, help="Rows kept per person.  [default: 1]")
prior = click.option("--prior", type=float, help="Public Dirichlet pseudo-count added to every cell.")
public_cpts = click.option("--public-cpts", type=InputFile(), help="JSON {node: CPT} that is public already.")
own = click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the method itself.")


def word(name: str, *choices: str) -> Callable[[Any], Any]:
    """An option that is one of some words, the first if not given; the library checks it, and suggests, by itself."""
    return click.option(
        name,
        default=choices[0],
        show_default=True,
        shell_complete=lambda ctx, param, incomplete: [word for word in choices if word.startswith(incomplete)],
        help=f"{', '.join(choices[:-1])} or {choices[-1]}.",
    )
