"""dpbn ledger: open, show and check the privacy budget of datasets."""

from __future__ import annotations

import click

from dpbn.cli import option
from dpbn.cli.shared import print_json, print_table


@click.group()
def ledger() -> None:
    """Open, show and check the privacy ledger.

    \b
    dpbn ledger open budget.db ward-7 --epsilon 3
    dpbn ledger show budget.db
    dpbn ledger verify budget.db
    """


@ledger.command(name="open")
@click.argument("path", type=click.Path(dir_okay=False))
@click.argument("dataset")
@click.option("--epsilon", type=str, required=True, help="Cap of the dataset, as a decimal or a fraction: 3, 0.1, 1/3.")
@click.option("--delta", type=str, default="0", show_default=True, help="Cap on delta.")
@option.json
def open_dataset(path: str, dataset: str, epsilon: str, delta: str, as_json: bool) -> None:
    """Set the cap of DATASET in the ledger PATH. The file is made if there is none.

    \b
    dpbn ledger open budget.db ward-7 --epsilon 3
    """
    from dpbn.privacy.ledger import Ledger

    Ledger(path).open_dataset(dataset, epsilon, delta)
    _tell_cap(dataset, epsilon, delta, as_json)


@ledger.command(name="raise")
@click.argument("path", type=option.InputFile(dir_okay=False))
@click.argument("dataset")
@click.option("--epsilon", type=str, required=True, help="New cap, not below the old one.")
@click.option("--delta", type=str, default="0", show_default=True, help="New cap on delta.")
@option.json
def raise_cap(path: str, dataset: str, epsilon: str, delta: str, as_json: bool) -> None:
    """Raise the cap of DATASET, on purpose and on record. A cap never falls.

    \b
    dpbn ledger raise budget.db ward-7 --epsilon 4
    """
    from dpbn.privacy.ledger import Ledger

    Ledger(path).raise_cap(dataset, epsilon, delta)
    _tell_cap(dataset, epsilon, delta, as_json)


def _tell_cap(dataset: str, epsilon: str, delta: str, as_json: bool) -> None:
    if as_json:
        print_json({"dataset": dataset, "epsilon": epsilon, "delta": delta})
    else:
        click.echo(f"{dataset}: cap epsilon {epsilon}, delta {delta}")


@ledger.command()
@click.argument("path", type=option.InputFile(dir_okay=False))
@click.argument("dataset", required=False)
@option.json
def show(path: str, dataset: str | None, as_json: bool) -> None:
    """Caps, what is spent and what is left. With DATASET, every entry of it.

    \b
    dpbn ledger show budget.db
    dpbn ledger show budget.db ward-7
    """
    from dpbn.privacy.ledger import Ledger

    book = Ledger(path)
    names = ["dataset", "epsilon_cap", "epsilon_spent", "epsilon_left", "delta_left"]
    rows = []
    for name in (dataset,) if dataset else book.datasets():
        now = book.remaining(name)
        rows.append((name, *map(float, (now.cap_epsilon, now.spent_epsilon, now.epsilon, now.delta))))
    entries = [
        {"entry": e.id, "kind": e.kind, "epsilon": float(e.epsilon), "delta": float(e.delta), **_about(e.body)}
        for e in (book.history(dataset) if dataset else ())
    ]
    if as_json:
        found = [dict(zip(names, row, strict=True)) for row in rows]
        print_json({"datasets": found, **({"entries": entries} if dataset else {})})
        return
    print_table([name.replace("_", " ") for name in names], [(r[0], *(f"{x:g}" for x in r[1:])) for r in rows])
    if entries:
        columns = ["entry", "kind", "epsilon", "who", "when", "method", "release"]
        print_table(columns, [[_shown(entry.get(column, "")) for column in columns] for entry in entries])


def _about(body: dict[str, object]) -> dict[str, object]:
    who = body.get("who")
    names = ("when", "method", "structure", "note", "release", "charge")
    return {"who": who, **{name: body[name] for name in names if body.get(name)}}


def _shown(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value or "")
    return text if len(text) <= 40 else text[:12] + "…"


@ledger.command()
@click.argument("path", type=option.InputFile(dir_okay=False))
@click.option("--head", help="Head kept from an earlier look: the ledger must contain it.")
@option.json
def verify(path: str, head: str | None, as_json: bool) -> None:
    """Check the hash chain; print the head to keep elsewhere.

    \b
    dpbn ledger verify budget.db
    """
    from dpbn.privacy.ledger import Ledger

    book = Ledger(path)
    entries = book.verify(head)
    if as_json:
        print_json({"intact": True, "entries": entries, "head": book.head()})
    else:
        click.echo(f"intact, {entries} {'entry' if entries == 1 else 'entries'}; head {book.head()}")
