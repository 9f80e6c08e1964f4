"""dpbn report: a release explained on one page."""

from __future__ import annotations

from pathlib import Path

import click

from dpbn.cli import option
from dpbn.cli.shared import check_output, print_json, warn_if_not_private, working


@click.command()
@click.argument("release", type=option.InputFile(dir_okay=False))
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="The page.  [default: RELEASE with .html]")
@click.option("--title", help="Heading of the page.  [default: the file's name]")
@option.no_interval
@option.json
def report(release: str, output: str | None, title: str | None, no_interval: bool, as_json: bool) -> None:
    """Explain RELEASE: one HTML page that needs no network, privacy.json and MODEL_CARD.md beside it.

    \b
    dpbn report alarm.release.json
    dpbn report alarm.release.json -o public/index.html --title "Ward 7, 2026"
    """
    from dpbn.release import load_release
    from dpbn.report import COMPANIONS, write_report

    opened = load_release(release)
    warn_if_not_private(opened)
    path = Path(output) if output else Path(release).with_suffix(".html")
    for name in (path.name, *COMPANIONS):
        check_output(str(path.with_name(name)), release, overwrite=True)
    with working("writing the report" if no_interval else "computing error bars"):
        page, privacy, card = write_report(
            opened,
            path,
            title=title or Path(release).stem,
            file=Path(release).name,
            intervals=not no_interval,
        )
    if as_json:
        print_json({"page": str(page), "privacy": str(privacy), "card": str(card)})
    else:
        click.echo(f"wrote {page}, {privacy.name} and {card.name}")
