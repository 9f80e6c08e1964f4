"""dpbn serve: the explorer of a release on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from dpbn.cli import option
from dpbn.cli.shared import warn_if_not_private


@click.command()
@click.argument("release", type=option.InputFile(dir_okay=False))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others can reach 0.0.0.0.")
@click.option(
    "--port", default=8321, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 takes a free one."
)
@click.option("--open/--no-open", "open_browser", default=False, help="Open the page in the browser.")
def serve(release: str, host: str, port: int, open_browser: bool) -> None:
    """Explore RELEASE in the browser: set evidence, see every posterior, share the link.

    Loads releases only, never data. Stop it with Ctrl-C.

    \b
    dpbn serve alarm.release.json
    dpbn serve alarm.release.json --port 0 --open
    """
    from dpbn.release import load_release
    from dpbn.web import serve as serve_release

    loaded = load_release(release)
    warn_if_not_private(loaded)

    def announce(address: str) -> None:
        click.echo(f"exploring {Path(release).name} at {address}  (Ctrl-C stops)")
        if open_browser:
            click.launch(address)

    serve_release(loaded, name=Path(release).name, host=host, port=port, announce=announce)
