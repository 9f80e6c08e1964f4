"""Write docs/reference/commands.md and api.md from the code. `--check` fails if they are not up to date."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import dpbn
from dpbn.cli import COMMANDS
from dpbn.cli import dpbn as group

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py from the code: edit the docstrings, then run `make reference`. -->\n"
# Not at the top level, but called by users: module -> names.
MORE = {
    "dpbn.inference": ["Answer", "Comparison", "Plan"],
    "dpbn.evaluate.metrics": ["error_bounds", "ErrorBounds"],
    "dpbn.uncertainty.error_bars": ["Bars"],
    "dpbn.uncertainty.leaning": ["WeakRow"],
    "dpbn.uncertainty.forecast": ["Forecast", "PlannedTable"],
    "dpbn.privacy.chain": ["Balance", "Entry"],
    "dpbn.privacy.guarantee": ["Guarantee"],
    "dpbn.report": ["write_report"],
    "dpbn.web": ["serve", "create_app"],
    "dpbn.sklearn": ["DPBayesianNetworkClassifier"],
    "dpbn.support": ["Support", "supports"],
    "dpbn.tables": ["read_table", "write_table"],
    "dpbn.workload": ["Query", "read_workload"],
    "dpbn.formats.schema_file": ["read_schema", "write_schema"],
    "dpbn.formats.model_string": ["read", "write"],
    "dpbn.formats.networkx_graph": ["to_networkx", "structure_from_networkx", "network_from_networkx"],
    "dpbn.formats.pgmpy_model": ["to_pgmpy", "from_pgmpy"],
    "dpbn.formats.pyagrum_model": ["to_pyagrum", "from_pyagrum"],
    "dpbn.audit": ["audit"],
    "dpbn.errors": [
        "DpbnError", "InputError", "StructureError", "FormatError", "TooLargeError", "QueryError",
        "ImpossibleEvidenceError", "MissingExtraError", "PrivacyError", "BudgetError", "LedgerCorruptError",
        "DataError",
    ],
}  # fmt: skip


def commands() -> str:
    """One section per command, with its help as the terminal shows it."""
    parts = [
        NOTE,
        "# Commands\n\nThe same words as the library. Exit code 0 done, 1 refused with a reason, 2 wrong usage.\n",
    ]
    context = click.Context(group, info_name="dpbn", terminal_width=80, help_option_names=["-h", "--help"])
    parts.append(_section("dpbn", group, context, 2))
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        parts += _sections(f"dpbn {name}", command, context, 2)
    return "\n".join(parts)


def _sections(title: str, command: click.Command, parent: click.Context, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=title.rpartition(" ")[2], parent=parent, terminal_width=80)
    yield _section(title, command, context, level)
    if isinstance(command, click.Group):
        for name in command.commands:
            yield from _sections(f"{title} {name}", command.commands[name], context, level + 1)


def _section(title: str, command: click.Command, context: click.Context, level: int) -> str:
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    return f"{'#' * level} {title}\n\n```text\n{text}\n```\n"


def api() -> str:
    """One section per public name: signature, docstring, and the public methods of classes."""
    parts = [NOTE, "# Python\n\nCPT axes everywhere: parents in order, child last.\n\n## dpbn\n"]
    for name in sorted(dpbn.__all__, key=str.lower):
        if name != "__version__":
            parts.append(_entry(f"dpbn.{name}", getattr(dpbn, name)))
    for module, names in MORE.items():
        parts.append(f"## {module}\n")
        parts += [_entry(f"{module}.{name}", getattr(import_module(module), name)) for name in names]
    return "\n".join(parts)


def _entry(title: str, value: Any) -> str:
    lines = [f"### {title}\n", f"```text\n{title.rpartition('.')[2]}{_signature(value)}\n```\n", _doc(value)]
    if inspect.isclass(value) and not issubclass(value, BaseException):
        lines += _members(value)
    return "\n".join(lines)


def _members(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, (property, cached_property)):
            yield f"- `.{name}`{_tail(member.fget if isinstance(member, property) else member.func)}"
        elif inspect.isfunction(member):
            yield f"- `.{name}{_signature(member, bound=True)}`{_tail(member)}"
    yield ""


def _tail(member: Any) -> str:
    doc = _doc(member).strip().splitlines()
    return f": {doc[0]}" if doc else ""


def _signature(value: Any, bound: bool = False) -> str:
    if inspect.isclass(value) and issubclass(value, BaseException):
        return f"({value.__mro__[1].__name__})"
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [p for p in list(signature.parameters.values())[bound:] if not p.name.startswith("_")]
    text = str(signature.replace(parameters=parameters))
    text = re.sub(r"<factory>|<dataclasses\._DEFAULT[^>]*>", "…", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"(: |-> |^)'([^']*)'", r"\1\2", text)  # annotations are kept as text


def _doc(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value) and value.__doc__ is None:
        text = ""
    return text.replace("<", "&lt;") + "\n"


def main() -> None:
    stale = []
    for name, text in (("commands.md", commands()), ("api.md", api())):
        path = FOLDER / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text("utf-8") != text:
                stale.append(name)
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run make reference")


if __name__ == "__main__":
    main()
