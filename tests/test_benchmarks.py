"""Benchmarks are run by hand, so a name that moved away from under them would go unnoticed."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_takes_from_the_package_is_there(path):
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == "dpbn":
            module = importlib.import_module(statement.module)
            for name in (alias.name for alias in statement.names):
                assert hasattr(module, name) or importlib.util.find_spec(f"{statement.module}.{name}"), name
