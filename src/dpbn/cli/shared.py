"""Reading, printing and progress that several commands share; their options are in `option`."""

from __future__ import annotations

import inspect
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from dpbn.errors import counted

if TYPE_CHECKING:
    from dpbn.network import BayesianNetwork, Structure
    from dpbn.release import Release

SHORT_CELL, LONG_WORD = 16, 30  # letters: a cell that is not broken, a word that may be
PATIENCE = 2.0  # seconds before progress shows itself


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, ensure_ascii=not _unicode(), allow_nan=False))


def dash() -> str:
    """Between numbers, or for none."""
    return "–" if _unicode() else "-"


def _unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def tell_written(output: str, as_json: bool, rows: int | None = None) -> None:
    if as_json:
        print_json({"output": output} | ({} if rows is None else {"rows": rows}))
    else:
        click.echo(f"wrote {output}" + ("" if rows is None else f": {counted(rows, 'row')}"))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on the terminal, where only long cells are broken; as wide as it needs when piped, without colours."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dpbn.statement import visible

    cells = [[visible(str(cell)) for cell in row] for row in rows]
    least, widths = [], []
    for place, column in enumerate(columns):
        found = [row[place] for row in cells]
        short = all(len(cell) <= SHORT_CELL for cell in found)
        words = [*visible(column).split(), *(found if short else (word for cell in found for word in cell.split()))]
        least.append(min(max(map(cell_len, words), default=0), LONG_WORD))
        widths.append(max(map(cell_len, (visible(column), *found))))
    console = Console(highlight=False)
    frame = 3 * len(widths) - 1
    width = console.width if console.is_terminal else sum(widths) + frame
    console.size = max(width, sum(least) + frame), console.height  # one too narrow for the numbers wraps lines itself
    while sum(widths) + frame > console.width:  # rich itself would cut columns off at the right
        widths[max((i for i, width in enumerate(widths) if width > least[i]), key=widths.__getitem__)] -= 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(Text(visible(column)), overflow="fold", width=width)  # an ellipsis would hide digits
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


class Working(Protocol):
    """Move the bar: the share done (0 to 1, None if unknown), and what is being done if that has changed."""

    def __call__(self, share: float | None, message: str | None = None) -> None: ...


@contextmanager
def working(message: str) -> Iterator[Working]:
    """A bar with `message` on a terminal's standard error, if the work takes longer than two seconds.

    It may follow private rows: it is drawn for whoever sits at the terminal, wiped off, and written nowhere else.
    """
    if not sys.stderr.isatty():
        yield lambda share, message=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(message, total=None)

    def move(share: float | None, message: str | None = None) -> None:
        progress.tasks[0].total = None if share is None else 1.0  # update() would read None as "leave it"
        progress.update(task, completed=share or 0.0, description=message)

    timer = threading.Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield move
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def parse_given(
    given: Iterable[str], soft: Iterable[str], network: BayesianNetwork, plain: str = "--given"
) -> dict[str, Any]:
    """("BP=LOW",) -> {"BP": "LOW"}; both may themselves contain '='. Soft evidence adds {"BP": {"LOW": 0.8}}."""
    evidence: dict[str, Any] = {}
    for option, items in ((plain, given), ("--soft", soft)):
        for item in items:
            node, state = _read(option, item, network)
            if not node or not state:
                wanted = {"--soft": "JSON", "--versus": "STATE, or a NODE of --given"}.get(option, "STATE")
                raise click.UsageError(f"{option} must be NODE={wanted}, got {item!r}")
            if node in evidence:
                raise click.UsageError(f"evidence must name a node once, got {node!r} twice")
            evidence[node] = state if option == plain else _likelihoods(node, state)
            if option == plain and node in network.nodes:
                _tell_range(node, state, network)
    return evidence


def parse_versus(versus: Iterable[str], evidence: Mapping[str, Any], network: BayesianNetwork) -> dict[str, Any]:
    """`evidence` with "BP=HIGH" instead of what it says of BP; "BP" alone leaves BP out of it."""
    items = list(versus)
    told = parse_given([item for item in items if item not in evidence], (), network, "--versus")
    return {node: state for node, state in {**evidence, **told}.items() if node not in items}


def _tell_range(node: str, state: str, network: BayesianNetwork) -> None:
    """Say which state a number was taken for."""
    from dpbn.matching import Matching

    variable = network.structure.schema[node]
    if variable.cut_points is None or state in variable.states:
        return
    if (code := Matching(variable, None).meant(state)) is not None:
        click.echo(f"note: {node}={state} is taken for {variable.states[code]!r}", err=True)


def check_targets(targets: Iterable[str], network: BayesianNetwork) -> None:
    """Refuse evidence among the targets, which a misspelt name is not."""
    for target in targets:
        if target not in network.nodes and target.partition("=")[0] in network.nodes:
            raise click.UsageError(f"evidence must come with --given, got {target!r} among the targets")


def _read(option: str, item: str, network: BayesianNetwork) -> tuple[str, str]:
    """Node and state of 'BP=LOW'. Where nodes are called A and A=B, the one that has such a state."""
    from dpbn.errors import QueryError

    def fits(node: str, state: str) -> bool:
        return state.lstrip().startswith("{") if option == "--soft" else state in network.states(node)

    found = [(node, item[len(node) + 1 :]) for node in network.nodes if item.startswith(f"{node}=")]
    fitting = [reading for reading in found if fits(*reading)]
    if len(fitting) > 1:
        readings = " or ".join(f"{state!r} of {node!r}" for node, state in fitting)
        raise QueryError(
            f"{option} must name one node and state, got {item!r}, which is {readings}: "
            "--soft 'NODE={\"STATE\": 1}' tells them apart"
        )
    name, _, rest = item.partition("=")
    return (*fitting, *found, (name, rest))[0]


def _likelihoods(node: str, text: str) -> dict[str, float]:
    from dpbn.errors import FormatError
    from dpbn.files import parse_json

    try:
        found = parse_json(text, "")
    except FormatError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(v, (int, float)) for v in found.values()):
        raise click.UsageError(f'--soft {node} must be JSON like {{"STATE": 0.8, "OTHER": 0.1}}, got {text!r:.200}')
    return found


def own_options(items: Iterable[str], caller: Callable[..., Any]) -> dict[str, Any]:
    """Options of the method itself, none of them one that the `caller` has for all."""
    own = _parse_options(items)
    if reserved := sorted(set(own) & set(inspect.signature(caller).parameters)):
        raise click.UsageError(f"--option must name an option of the method itself, got {reserved[0]!r}: see --help")
    return own


def _parse_options(items: Iterable[str]) -> dict[str, Any]:
    """("stage_one=0.2",) -> {"stage_one": 0.2}: JSON values, anything else is text."""
    from dpbn.errors import FormatError
    from dpbn.files import parse_json

    options: dict[str, Any] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.isidentifier() or name in options:
            raise click.UsageError(f"--option must be NAME=VALUE, each name once, got {item!r}")
        try:
            options[name] = parse_json(value, "")
        except FormatError:
            options[name] = value
    return options


def warn_if_not_private(model: Release | BayesianNetwork) -> None:
    from dpbn.release import Release

    if isinstance(model, Release) and not model.private:
        click.echo("warning: this release is NOT private (made without secure noise); do not publish it", err=True)


def check_order(name: str, model: str, others: Iterable[str], order: str) -> None:
    """Refuse arguments in another order: the `model` (an argument called `name`) looks like none, another does."""
    from dpbn.errors import InputError
    from dpbn.formats import BUNDLED, is_network_name

    if model in BUNDLED or is_network_name(model):
        return
    for other in others:
        if is_network_name(other) or (other in BUNDLED and Path(model).suffix):
            raise InputError(
                f"{name} must be a network file or a bundled name, got {model!r}; {other!r} looks like one: {order}"
            )


def open_model(source: str, others: Iterable[str] = ()) -> Release | BayesianNetwork:
    """A release, a network file or a bundled network, with a warning where it is not private.

    `others` are the arguments after it, in case that it stands among them.
    """
    from dpbn.release import load_model

    check_order("MODEL", source, others, "MODEL comes first")
    model = load_model(source)
    warn_if_not_private(model)
    return model


def network_of(model: Release | BayesianNetwork) -> BayesianNetwork:
    from dpbn.release import Release

    return model.network if isinstance(model, Release) else model


def read_public_cpts(path: str | None) -> Mapping[str, Any] | None:
    """A JSON object {node: CPT} from a file."""
    if path is None:
        return None
    from dpbn.errors import FormatError
    from dpbn.files import parse_json, read_text

    document = parse_json(read_text(path), "public CPTs must be JSON", source=path)
    if not isinstance(document, dict):
        raise FormatError(f"public CPTs must be a JSON object, got {type(document).__name__}", source=path)
    return document


def with_schema(
    public: Structure, path: str, unit: str | None, contributions: int | None
) -> tuple[Structure, str | None, int | None]:
    """The structure with the schema file's columns and cut points; options given on the line win."""
    from dpbn.files import located, read_text
    from dpbn.formats.schema_file import read_schema

    with located(path):
        found, schema_unit, schema_contributions = read_schema(read_text(path), public)
    return found, unit or schema_unit, schema_contributions if contributions is None else contributions


def check_output(path: str, *inputs: str | None, overwrite: bool, by_release: bool = False, size: int = 0) -> None:
    """Refuse a place that cannot be written, or not with `size` bytes, before any work is done or budget spent.

    Nor may an input be written over, nor a ledger; a release only by another; other files where `overwrite` says so.
    """
    from dpbn.errors import InputError
    from dpbn.files import check_replaceable, check_writable

    place = Path(path)
    if any(given is not None and _same(place, Path(given)) for given in inputs):
        raise InputError(f"{path!r} must not be a file that the command reads, got one: choose another name")
    check_replaceable(place, by_release=by_release)
    if place.is_file() and not overwrite:
        raise InputError(f"{path!r} must not exist yet, got a file: choose another name or add --overwrite")
    check_writable(path, size)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there (yet, or a bundled name)
        return False
