"""dpbn ledger: open, show and check the privacy budget of datasets."""

from __future__ import annotations

import click

from dpbn.cli.shared import json_option, print_json, print_table


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
@click.option("--epsilon", type=str, required=True, help="Cap of the dataset.")
@click.option("--delta", type=str, default="0", show_default=True)
def open_dataset(path: str, dataset: str, epsilon: str, delta: str) -> None:
    """Set the cap of DATASET in the ledger PATH (made if it does not exist)."""
    from dpbn.privacy.ledger import Ledger

    Ledger(path).open_dataset(dataset, epsilon, delta)
    click.echo(f"{dataset}: cap epsilon {epsilon}, delta {delta}")


@ledger.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@json_option
def show(path: str, as_json: bool) -> None:
    """Caps, what is spent and what is left, and every charge."""
    from dpbn.privacy.ledger import Ledger

    book = Ledger(path)
    rows = []
    for dataset in book.datasets():
        left = book.remaining(dataset)
        charges = len(book.history(dataset))
        rows.append(
            {
                "dataset": dataset,
                "epsilon_left": float(left.epsilon),
                "delta_left": float(left.delta),
                "entries": charges,
            }
        )
    if as_json:
        print_json({"datasets": rows})
    else:
        print_table(["dataset", "epsilon left", "delta left", "entries"], [tuple(r.values()) for r in rows])


@ledger.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.option("--head", help="Head kept from an earlier look: the ledger must contain it.")
def verify(path: str, head: str | None) -> None:
    """Check the hash chain; print the head to keep elsewhere."""
    from dpbn.privacy.ledger import Ledger

    book = Ledger(path)
    book.verify(head) if head else book.verify()
    click.echo(f"intact; head {book.head()}")
