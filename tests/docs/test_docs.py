"""The documentation is true: every example runs, every command is described, the site builds without a warning."""

import os
import re
import subprocess
import sys

import click
import pytest

from dpbn.cli import COMMANDS
from dpbn.cli import dpbn as group
from tests.docs.blocks import ROOT, SOURCE, blocks, pages, run_page

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "NO_MKDOCS_2_WARNING": "1"}
# What a page may show without running it: set-up, and what does not end by itself.
NOT_RUN = re.compile(
    r"(make|pip|git|curl|python3? -m (venv|pip)|eval|dpbn (serve|evaluate|reproduce|audit)|source|#)\b|#|$"
)


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_what_is_not_run_says_so_by_its_language(page):
    for block in blocks(page):
        assert block.language, f"{page.name}:{block.line}: name the language of the block"
        assert block.language in {"python", "console", "sh", "text", "toml", "json", "bibtex", "mermaid", "r"}
        if block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                assert NOT_RUN.match(line.strip()), f"{page.name}:{block.line}: use console, so that it runs: {line}"


def test_the_pages_run_something():
    counts = {page.name: sum(b.language in {"python", "console"} for b in blocks(page)) for page in pages()}
    for name in ("README.md", "custodian.md", "analyst.md", "choosing-epsilon.md", "ecosystem.md"):
        assert counts[name] >= 1, name


def test_the_reference_is_up_to_date():
    check = [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_is_documented():
    text = "".join(page.read_text("utf-8") for page in pages() if page.name != "README.md")
    reference = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    for name in COMMANDS:
        assert f"## dpbn {name}\n" in reference
        assert re.search(rf"dpbn {name}\b", text), f"no page shows dpbn {name}"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(name):
    command = group.get_command(click.Context(group), name)
    described = [command, *(command.commands.values() if isinstance(command, click.Group) else [])]
    for each in described:
        assert re.search(r"^\s*dpbn ", each.help or "", re.MULTILINE), f"{name}: give an example"
        for option in each.params:
            if isinstance(option, click.Option) and option.name not in {"help"}:
                assert option.help, f"{name} {option.opts[0]} has no help"


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    # not --quiet, which keeps warnings from being counted
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "fonts.googleapis" not in page and "cdn" not in page.lower()


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert f": {page.relative_to(ROOT / 'docs')}\n" in navigation, f"{page.name} is in no menu of mkdocs.yml"


def test_links_inside_the_repository_exist():
    for page in pages():
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_tree_in_the_readme_is_true():
    tree = next(b.text for b in blocks(ROOT / "README.md") if b.text.startswith("src/dpbn/"))
    shown = set(re.findall(r"[\w/]+(?:\.py|/)(?=\s|$)", "\n".join(tree.splitlines()[1:])))
    there = {p.name + ("/" if p.is_dir() else "") for p in (ROOT / "src" / "dpbn").iterdir()}
    there -= {"__init__.py", "__main__.py", "__pycache__/", "py.typed", "version.py"}
    assert shown == there, f"missing {sorted(there - shown)}, gone {sorted(shown - there)}"


@pytest.mark.parametrize(
    "name",
    [
        "Comparison",
        "Forecast",
        "Bars",
        "Plan",
        "WeakRow",
        "Balance",
        "Entry",
        "serve",
        "create_app",
        "to_networkx",
        "model_string.read",
    ],
)
def test_the_reference_has_what_calls_return_and_pages_use(name):
    reference = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    assert re.search(rf"^### dpbn\.[\w.]*\b{re.escape(name)}$", reference, re.MULTILINE)
    assert "`.error_range`" in reference and "`.headline`" in reference
