"""dpbn learn: private table in, release out."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbn.cli import option
from dpbn.cli.shared import check_order, check_output, own_options, print_json, read_public_cpts, with_schema, working
from dpbn.errors import counted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from dpbn.network import Structure
    from dpbn.privacy.ledger import Ledger
    from dpbn.release import Release


@click.command(name="learn")
@click.argument("data", type=click.Path())
@click.argument("structure", type=option.ModelPath())
@click.option("--epsilon", "-e", type=float, required=True, help="Privacy budget of this release.")
@click.option(
    "--delta", type=float, default=0.0, show_default=True, help="Above 0: less noise for many tables, (ε, δ)-DP."
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), required=True, help="Where the release is written.")
@option.overwrite
@option.word("--method", *option.METHODS)
@option.word("--neighbors", *option.NEIGHBORS)
@option.schema
@click.option("--unit", help="Column that names the person who owns a row.")
@option.contributions
@click.option(
    "--on-unknown",
    default="error",
    show_default=True,
    help="error, drop, or a declared catch-all state (catch_all: each variable's own).",
)
@option.prior
@option.public_cpts
@click.option("--workload", type=option.InputFile(), help="JSON list of queries that matter most.")
@option.own
@click.option("--ledger", type=click.Path(dir_okay=False), help="Budget file to charge.")
@click.option("--dataset", help="Name of the dataset in the ledger.")
@click.option("--insecure-seed", type=int, help="Repeatable noise, for experiments: the release is NOT private.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before spending.")
@click.option("--check", "only_check", is_flag=True, help="Stop where it would spend: is all as it must be?")
@option.json
def learn(
    data: str,
    structure: str,
    epsilon: float,
    delta: float,
    output: str,
    overwrite: bool,
    method: str,
    schema: str | None,
    unit: str | None,
    max_contributions: int | None,
    public_cpts: str | None,
    workload: str | None,
    options: tuple[str, ...],
    ledger: str | None,
    dataset: str | None,
    insecure_seed: int | None,
    yes: bool,
    only_check: bool,
    as_json: bool,
    **choices: Any,
) -> None:
    """Learn the probabilities of STRUCTURE from the private table DATA (Parquet or CSV).

    STRUCTURE is a network file or a bundled name; it and all options must be chosen without looking at DATA.

    \b
    dpbn learn patients.parquet alarm.bif --epsilon 1 -o alarm.release.json --check
    dpbn learn patients.parquet alarm.bif --epsilon 1 -o alarm.release.json
    dpbn learn visits.csv alarm --epsilon 0.5 --unit patient --max-contributions 4 \\
         --ledger budget.db --dataset ward-7 -o alarm.release.json
    """
    import dpbn
    from dpbn.privacy.guarantee import Budget, Sensitivity
    from dpbn.workload import read_workload

    check_order("STRUCTURE", structure, [data], "DATA comes first, then STRUCTURE")
    public = dpbn.load_structure(structure)
    _check_place(output, overwrite, (data, structure, schema, public_cpts, workload), ledger, _likely_size(public))
    if schema:
        public, unit, max_contributions = with_schema(public, schema, unit, max_contributions)
    contributions = 1 if max_contributions is None else max_contributions
    Budget(epsilon, delta)  # refuse nonsense before asking about it
    Sensitivity(choices["neighbors"], contributions)
    own = own_options(options, dpbn.learn)
    public_tables = read_public_cpts(public_cpts)
    queries = read_workload(workload, public) if workload else None
    book = _open_ledger(ledger, dataset)
    if insecure_seed is not None or method == "exact":
        click.echo("warning: this will NOT be private; do not publish it", err=True)
    else:
        _warn_if_empty(data, public, unit, choices["on_unknown"])
        if not yes and not only_check:
            _ask(public, epsilon, delta, unit, contributions, book, dataset)
    with working("preparing") as move:

        def tell(share: float | None) -> None:
            move(share if share != 1 else None, "learning" if share == 1 else "counting")

        release = (dpbn.check if only_check else dpbn.learn)(
            data,
            public,
            epsilon,
            delta,
            method=method,
            unit=unit,
            max_contributions=contributions,
            public_cpts=public_tables,
            workload=queries,
            noise=None if insecure_seed is None else dpbn.InsecureNoise(insecure_seed),
            ledger=book,
            dataset=dataset,
            progress=tell,
            **choices,
            **own,
        )
    if release is None:
        _print_checked(as_json)
        return
    _save(release, output, overwrite)
    left = book.remaining(dataset) if book and dataset else None
    if as_json:
        _print_summary(release, output, None if left is None else float(left.epsilon))
        return
    click.echo(f"wrote {output}: {release!r}")
    if left is not None:
        click.echo(f"left in the ledger for {dataset}: {_amount(left.epsilon, left.delta, delta)}")


def _print_checked(as_json: bool) -> None:
    if as_json:
        print_json({"checked": True})
        return
    click.echo("all is as it must be; nothing was spent, nothing was written")


def _print_summary(release: Release, output: str, left: float | None) -> None:
    guarantee = release.guarantee
    spent = guarantee.epsilon if release.private else None
    summary = {"output": output, "private": release.private, "epsilon": spent, "delta": guarantee.delta}
    kept = {"epsilon_left": left} if left is not None else {}
    print_json({**summary, **kept, "id": release.id, "allocation": dict(release.allocation)})


def _likely_size(structure: Structure) -> int:
    """Bytes of a release file, on the safe side: 40 to 95 per cell were seen, and a few thousand for all else."""
    cells = sum(structure.cells(node) for node in structure.nodes)
    return min(10_000 + 100 * cells, 1 << 26)


def _save(release: Release, output: str, overwrite: bool) -> None:
    """Write the release; it is paid for, so if its place has become unwritable or is taken it goes somewhere else."""
    from dpbn.errors import InputError

    try:
        release.save(output, overwrite=overwrite)
    except (InputError, KeyboardInterrupt) as error:
        found = _save_elsewhere(release, Path(output).name)
        saved = f"it was saved as {str(found)!r}, for you only to read" if found else "no other place would take it"
        error.add_note(f"the release was made and its budget is spent: {saved}")
        raise


def _save_elsewhere(release: Release, name: str) -> Path | None:
    """In a new folder of the owner's (mode 700), in the first place that takes it: temporary, home, current."""
    from dpbn.errors import InputError

    for place in (tempfile.gettempdir, Path.home, Path.cwd):
        with suppress(OSError, RuntimeError):
            folder = Path(tempfile.mkdtemp(dir=place(), prefix="dpbn-"))
            try:
                return release.save(folder / name)
            except InputError:
                folder.rmdir()
    return None


def _check_place(output: str, overwrite: bool, inputs: Iterable[str | None], ledger: str | None, size: int) -> None:
    """Before anything is spent: the release must find a place of its own, under a name that it can be opened by."""
    from dpbn.release import check_name

    companions = [] if ledger is None else [ledger, *(ledger + ending for ending in (".head", "-wal", "-shm"))]
    check_output(output, *inputs, *companions, overwrite=overwrite, by_release=True, size=size)
    check_name(output)


def _open_ledger(path: str | None, dataset: str | None) -> Ledger | None:
    from dpbn.errors import InputError
    from dpbn.privacy.ledger import Ledger

    if (path is None) != (dataset is None):
        raise click.UsageError("--ledger and --dataset must be given together, got one of them")
    if path is None:
        return None
    if not Path(path).exists():
        raise InputError(f"ledger {path!r} must exist, got none: dpbn ledger open {path} {dataset} --epsilon CAP")
    return Ledger(path)


def _warn_if_empty(data: str, public: Structure, unit: str | None, on_unknown: str) -> None:
    """A word to the custodian before anything is spent; no refusal, which would tell others of the table."""
    from dpbn.data import has_records
    from dpbn.errors import DataError

    with suppress(DataError):  # rows that do not fit are refused where all of them are read
        if not has_records(data, public, unit, on_unknown):
            click.echo(
                "warning: the table has no records that count: its release is noise, and costs as much as any", err=True
            )


def _amount(epsilon: float | Fraction, delta: float | Fraction, asked: float = 0.0) -> str:
    """What is spent or left; of delta only where there is any, or any was asked for."""
    return f"epsilon {float(epsilon):g}" + (f", delta {float(delta):g}" if delta or asked else "")


def _ask(
    public: Structure,
    epsilon: float,
    delta: float,
    unit: str | None,
    contributions: int,
    book: Ledger | None,
    dataset: str | None,
) -> None:
    from dpbn.privacy.chain import exact_amount

    whom = f"one {unit} (at most {counted(contributions, 'row')} each)" if unit else "one record"
    click.echo(
        f"about to spend {_amount(epsilon, delta)}, protecting {whom}, on {counted(len(public.nodes), 'node')}",
        err=True,
    )
    if book and dataset:
        left = book.remaining(dataset)
        after_epsilon = left.epsilon - exact_amount("epsilon", epsilon)
        after_delta = left.delta - exact_amount("delta", delta, zero=True)
        if min(after_epsilon, after_delta) < 0:
            return  # the ledger refuses, with its own words
        now, after = _amount(left.epsilon, left.delta), _amount(after_epsilon, after_delta, delta)
        click.echo(f"left in the ledger for {dataset}: {now} now, {after} after", err=True)
    else:
        click.echo("no ledger is kept (--ledger, --dataset): add up what this table has cost so far yourself", err=True)
    click.confirm("go on?", abort=True, err=True)
