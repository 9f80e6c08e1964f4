"""The command line: one command per job, the same words as the library. Commands add no ability.

Exit code 0 done, 1 refused with a reason, 2 wrong usage. Each command lives in its own module and is
imported when it is called, so that `dpbn --help` starts at once.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import sys
import warnings
from importlib import import_module

import click

from dpbn.errors import DpbnError
from dpbn.version import __version__

# command -> (module, one line of help)
COMMANDS = {
    "learn": ("dpbn.cli.learn", "Learn a network's probabilities from a private table and release them."),
    "plan": ("dpbn.cli.plan", "Forecast the errors of a release, before any data is touched."),
    "query": ("dpbn.cli.ask", "Ask for a marginal or conditional distribution."),
    "map": ("dpbn.cli.ask", "Ask for the most probable states of some or all nodes."),
    "predict": ("dpbn.cli.ask", "Predict one node for every row of a table."),
    "sample": ("dpbn.cli.files", "Draw synthetic rows, with evidence if wanted."),
    "convert": ("dpbn.cli.files", "Convert a network or release between file formats."),
    "inspect": ("dpbn.cli.files", "Show what a network, structure or release holds."),
    "report": ("dpbn.cli.report", "Explain a release on one HTML page, with privacy.json and a model card."),
    "serve": ("dpbn.cli.serve", "Explore a release in the browser: what-if questions with a click."),
    "ledger": ("dpbn.cli.ledger", "Open, show and check the privacy ledger."),
    "evaluate": ("dpbn.cli.evaluate", "Compare methods on simulated data, one row per run."),
    "reproduce": ("dpbn.cli.evaluate", "Run the ICML 2020 paper's evaluation again and say what reproduces."),
    "audit": ("dpbn.cli.audit", "Audit the guarantee as a black box; broken mechanisms must be caught."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            if close and "Did you mean" not in error.message:
                raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dpbn")
def dpbn() -> None:
    """Differentially private Bayesian networks: learn, release, ask.

    \b
    dpbn learn patients.parquet alarm --epsilon 1 -o alarm.release.json
    dpbn query alarm.release.json HR --given BP=LOW
    dpbn report alarm.release.json

    Every command explains itself: dpbn learn --help. Exit code 0 done, 1 refused with a reason, 2 wrong usage.
    """


def main() -> None:
    """Run a command; errors become one line, never a traceback (set DPBN_DEBUG=1 to see one)."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # Windows and old locales lack letters: better escaped than refused
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = dpbn(prog_name="dpbn", standalone_mode=False)  # of an Exit; commands return nothing
    except click.exceptions.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while working; a question left unanswered has no cause
            _tell("interrupted", error.__cause__)
        hint = "" if sys.stdin.isatty() else " (--yes answers the question in a script)"
        click.echo(f"stopped: nothing was done{hint}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except DpbnError as error:
        _tell(f"{error}", error)
    except BrokenPipeError:  # `dpbn … | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ModuleNotFoundError as error:  # none of an extra's, which are named by an error of our own
        package = (error.name or "").partition(".")[0] or "named above"
        _tell(f"the Python package {package} must be installed, got none", error)
    except OSError as error:
        _tell(": ".join(filter(None, (error.strerror or type(error).__name__, str(error.filename or "")))), error)
    except Exception as error:  # the message may quote private rows: name the kind only
        _tell(f"internal error ({type(error).__name__}); set DPBN_DEBUG=1 for a traceback, which may show data", error)
    else:
        sys.exit(code or 0)


def script() -> None:
    """The installed command: run, flush, leave at once.

    Threads of the table readers may still be letting go of Python objects; an interpreter that shuts down under
    them aborts the process (exit code 134) after everything was done and said.
    """
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    atexit._run_exitfuncs()  # such as those that give back what worker processes shared
    os._exit(code)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _say("warning", message)


def _tell(message: str, error: BaseException) -> None:
    if os.environ.get("DPBN_DEBUG"):
        raise error
    _say("error", message)
    for note in getattr(error, "__notes__", ()):
        _say("note", note)
    sys.exit(1)


def _say(kind: str, message: object) -> None:
    """One line; names in it may come from a file of a stranger, and a terminal would obey their control characters."""
    from dpbn.statement import visible

    click.echo(f"{kind}: {visible(str(message))}", err=True)
