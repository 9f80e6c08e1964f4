"""The public surface: a handful of names, pinned. Adding one is a decision, not an accident."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpbn

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1])}
NAMES = {
    "BayesianNetwork",
    "Dag",
    "Family",
    "Inference",
    "InsecureNoise",
    "Ledger",
    "Release",
    "Schema",
    "SecureNoise",
    "Structure",
    "Variable",
    "__version__",
    "check",
    "learn",
    "load_network",
    "load_release",
    "load_structure",
    "plan",
    "write_network",
}

# What scripts outside this repository call: names may be added, never taken away.
LEARN = [
    "data",
    "structure",
    "epsilon",
    "delta",
    "method",
    "neighbors",
    "unit",
    "max_contributions",
    "on_unknown",
    "prior",
    "public_cpts",
    "workload",
    "noise",
    "ledger",
    "dataset",
]


def test_exported_names():
    assert set(dpbn.__all__) == NAMES
    assert set(dir(dpbn)) == set(dpbn.__all__)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_loads_and_is_documented(name):
    value = getattr(dpbn, name)
    if name != "__version__":
        assert inspect.getdoc(value), f"{name} needs a docstring"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lern'"):
        _ = dpbn.lern


def test_learn_keeps_its_arguments():
    assert [p for p in inspect.signature(dpbn.learn).parameters if p in LEARN] == LEARN


def test_import_is_light():
    """`import dpbn` and the command group pull in nothing heavy: that is what makes --help fast."""
    heavy = "numpy pandas opendp pyarrow rich"
    code = f"import sys, dpbn, dpbn.cli; print([m for m in '{heavy}'.split() if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert out.stdout.strip() == "[]"


def test_learning_loads_none_of_the_extras():
    """The first release of a process must not wait for libraries that it does not use, though they are installed."""
    heavy = "scipy sklearn polars duckdb matplotlib pgmpy"
    code = f"""
import sys, pyarrow, dpbn
rows = pyarrow.table({{name: ["yes", "no"] for name in dpbn.load_network("asia").nodes}})
dpbn.learn(rows, dpbn.load_network("asia").structure, 1.0)
dpbn.learn(rows, dpbn.load_network("asia").structure, 1.0, delta=0.01, method="optimized")
print([m for m in '{heavy}'.split() if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert out.stdout.strip() == "[]"


def test_a_list_of_states_type_checks(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "script.py").write_text(
        "from dpbn.domain import Variable\n"
        'age = Variable("age", ["young", "old"], cut_points=[40])\n'
        "reveal_type(age.states)\n"
    )
    line = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent", "script.py"]
    environment = {**os.environ, "MYPYPATH": ENVIRONMENT["PYTHONPATH"]}
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout
    assert "tuple[str, ...]" in done.stdout.replace("builtins.", "")


def test_learn_and_plan_take_what_load_structure_takes():
    takes = inspect.signature(dpbn.load_structure).parameters["source"].annotation
    assert takes == "str | Path | Structure | BayesianNetwork | Release"
    for function in (dpbn.learn, dpbn.plan):
        assert inspect.signature(function).parameters["structure"].annotation == takes
