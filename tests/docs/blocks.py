"""Fenced blocks of a Markdown page, and how to run them as a reader would: top to bottom, in an empty folder."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import dpbn
from dpbn.cli import main

ROOT = Path(__file__).parents[2]
SOURCE = Path(dpbn.__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text and the line it starts on."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in _FENCE.finditer(text)]


def pages() -> list[Path]:
    """README and every page of the documentation that is written by hand."""
    written = sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "reference")
    return [ROOT / "README.md", *written]


def run_page(page: Path, folder: Path) -> int:
    """Run every python and console block of `page` in `folder`; returns how many ran."""
    names: dict[str, object] = {"__name__": "__main__"}
    environment = _environment(folder)
    ran = 0
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        elif block.language == "console":
            for command, expected in _commands(block.text):
                _run(where, command, expected, folder, environment)
        else:
            continue
        ran += 1
    return ran


def _environment(folder: Path) -> dict[str, str]:
    """`dpbn` and `python` on the path are this source and this interpreter."""
    scripts = folder / ".bin"
    scripts.mkdir()
    for name, target in (("dpbn", f'"{sys.executable}" -m dpbn'), ("python", f'"{sys.executable}"')):
        path = scripts / name
        path.write_text(f'#!/bin/sh\nexec {target} "$@"\n')
        path.chmod(0o755)
    return {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCE)}


def _commands(text: str) -> list[tuple[str, list[str]]]:
    """Lines after '$ ' (continued by a backslash) are commands; other lines are what they print."""
    found: list[tuple[str, list[str]]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command += "\n" + next(lines)
            found.append((command, []))
        elif line.strip():
            assert found, f"a console block must begin with '$ ', got {line!r}"
            found[-1][1].append(line)
    return found


def _run(where: str, command: str, expected: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Exit code 0, unless the page shows an error; every line shown must come, in order ('…' stands for anything)."""
    code, printed = _inside(command) if _plain(command) else _in_a_shell(command, folder, environment)
    refused = any(line.startswith("error:") for line in expected)
    assert (code != 0) == refused, f"{where}: {command}\nexit {code}\n{printed}"
    rest = [" ".join(line.split()) for line in printed.splitlines()]
    for line in expected:
        pattern = re.compile(".*".join(re.escape(part) for part in " ".join(line.split()).split("…")))
        while rest and not pattern.fullmatch(rest[0]):
            rest.pop(0)
        assert rest, f"{where}: {command}\nnever printed {line!r}; it printed\n{printed}"
        rest.pop(0)


def _plain(command: str) -> bool:
    """One call of dpbn without shell machinery: it can run in this process, which has everything loaded."""
    return command.startswith("dpbn ") and not re.search(r"[|<>&;$`*]", command)


def _inside(command: str) -> tuple[int, str]:
    streams, arguments, code = io.StringIO(), sys.argv, 0
    sys.argv = shlex.split(command.replace("\\\n", " "))
    try:
        with contextlib.redirect_stdout(streams), contextlib.redirect_stderr(streams):
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = arguments
    return code, streams.getvalue()


def _in_a_shell(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr
