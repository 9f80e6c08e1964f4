"""dpbn audit: is what comes out as alike on neighbouring tables as promised?"""

from __future__ import annotations

import click

from dpbn.cli import option
from dpbn.cli.shared import print_json, working


@click.command()
@click.option("--runs", type=click.IntRange(min=1000), default=200_000, show_default=True, help="Releases per table.")
@click.option(
    "--learn-runs", type=click.IntRange(min=10), default=20_000, show_default=True, help="Runs of all of learn."
)
@click.option(
    "--alarms", type=click.IntRange(min=0), default=100, show_default=True, help="Clean audits for false alarms."
)
@click.option("--processes", type=click.IntRange(min=1), help="How many to run at once; all cores by default.")
@option.json
def audit(runs: int, learn_runs: int, alarms: int, processes: int | None, as_json: bool) -> None:
    """Audit the installed program as a black box, and check that broken mechanisms would be caught.

    Draws many releases of two neighbouring tables made for this purpose and bounds epsilon from below. Takes
    half an hour of two cores; prints a line as each mechanism is done. Exit code 1 if anything is not as it must be.

    \b
    dpbn audit
    dpbn audit --runs 20000 --json
    """
    from dpbn.audit.suite import HEADER, Line, lines, tasks

    done: list[Line] = []
    audits = lines(runs, learn_runs=learn_runs, alarms=alarms, processes=processes)
    total = len(tasks(runs, learn_runs, alarms))
    while True:
        with working(f"auditing mechanism {len(done) + 1} of {total}") as move:
            move(len(done) / total)
            line = next(audits, None)
        if line is None:
            break
        if not as_json:
            click.echo(line.row if done else f"{HEADER}\n{line.row}")
        done.append(line)
    passed = all(line.passed for line in done)
    if as_json:
        found = [
            {
                "mechanism": line.name,
                "runs": line.verdict.runs,
                "promised": float(line.verdict.promised),
                "proven_at_least": float(line.verdict.lower),
                "caught": bool(line.verdict.caught),
                "expected": line.expected,
                "passed": bool(line.passed),
            }
            for line in done
        ]
        print_json({"passed": bool(passed), "mechanisms": found})
    else:
        click.echo("all as it must be" if passed else "FAILED: see the lines marked 'must be'")
    if not passed:
        raise click.exceptions.Exit(1)
