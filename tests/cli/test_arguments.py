"""Arguments in the wrong order, and files that are not there: refused with a reason, which is exit code 1."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

import dpbn
from tests.docs.blocks import ROOT


def test_the_model_comes_first(run, release, patients):
    run("query", "lung", release).refused("MODEL", "'lung'", f"{release!r} looks like one", "comes first")
    run("map", "lung", release).refused("MODEL comes first")
    run("predict", patients, release, "lung", "-o", "p.csv").refused("MODEL comes first")
    line = ["-e", 1, "-o", "r.json", "-y"]
    run("learn", "asia.bif", patients, *line).refused("STRUCTURE must be", "DATA comes first, then STRUCTURE")
    run("learn", "asia", patients, *line).refused("DATA comes first")


def test_a_node_may_be_called_like_a_bundled_network(run):
    run("query", "asai", "asia").refused("did you mean 'asia'?")


def test_an_extension_has_a_subject(run, patients):
    run("query", patients, "lung").refused("a network file's extension must be one of", "patients.csv")


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "no.json", "lung"],
        ["report", "no.json"],
        ["serve", "no.json"],
        ["ledger", "show", "no.db"],
        ["ledger", "verify", "no.db"],
        ["ledger", "raise", "no.db", "ward", "--epsilon", 2],
        ["predict", "asia", "no.csv", "lung", "-o", "p.csv"],
        ["plan", "asia", "--workload", "no.json"],
        ["learn", "p.csv", "asia", "-e", 1, "-o", "r.json", "--schema", "no.toml"],
        ["learn", "p.csv", "asia", "-e", 1, "-o", "r.json", "--workload", "no.json"],
        ["learn", "p.csv", "asia", "-e", 1, "-o", "r.json", "--public-cpts", "no.json"],
    ],
)
def test_a_missing_file_is_exit_code_1(run, arguments, tmp_path):
    run(*arguments).refused("no.", "must be")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_file(run, tmp_path):
    (tmp_path / "folder").mkdir()
    run("report", "folder").refused("'folder' must be a file, got a folder")


def test_wrong_usage_shows_how_the_command_is_used(run):
    for arguments in (["query", "asia"], ["inspect"], ["query", "asia", "lung", "-g", "smoke"]):
        wrong = run(*arguments)
        assert wrong.code == 2 and wrong.err.startswith(f"Usage: dpbn {arguments[0]} ")
        assert "Error: " in wrong.err


def test_the_imports_in_the_table_of_the_docs_work():
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    imports = re.findall(r"`from ([\w.]+) import ([\w, ]+)`", text)
    assert len(imports) >= 5
    for module, names in imports:
        assert all(callable(getattr(import_module(module), name)) for name in names.split(", ")), module
    import dpbn

    for path in re.findall(r"`dpbn\.([\w.]+)`", text):
        value = dpbn
        for name in path.split("."):
            value = getattr(value, name)
        assert callable(value)


def test_a_node_may_have_an_equals_sign_in_its_name(run, tmp_path):
    names = ("BP>=140", "b")
    schema = dpbn.Schema(tuple(dpbn.Variable(name, ("yes", "x=1")) for name in names))
    structure = dpbn.Structure(schema, dpbn.Dag(names, {"b": ("BP>=140",)}))
    network = dpbn.BayesianNetwork(structure, {"BP>=140": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]})
    dpbn.write_network(network, tmp_path / "x.json")
    for given, values in (("BP>=140=yes", [0.9, 0.1]), ("BP>=140=x=1", [0.2, 0.8])):
        assert json.loads(run("query", "x.json", "b", "-g", given, "--json").out)["values"] == pytest.approx(values)
    soft = run("map", "x.json", "b", "--soft", 'BP>=140={"x=1": 1}', "--json")
    assert json.loads(soft.out)["assignment"] == {"b": "x=1"}
    assert run("sample", "x.json", "-n", 3, "-g", "BP>=140=yes", "-o", "rows.csv").code == 0
    run("query", "x.json", "b", "-g", "BP=140=yes").refused("must be a node of the network, got 'BP'")


def test_evidence_that_can_be_read_in_two_ways_is_read_as_the_state_that_there_is_or_refused(run, tmp_path):
    states = {"A": ("B=x", "B=y", "n"), "A=B": ("x", "z")}
    schema = dpbn.Schema(tuple(dpbn.Variable(name, its) for name, its in states.items()))
    structure = dpbn.Structure(schema, dpbn.Dag(tuple(states), {"A=B": ("A",)}))
    network = dpbn.BayesianNetwork(structure, {"A": [0.2, 0.3, 0.5], "A=B": [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]})
    dpbn.write_network(network, tmp_path / "x.json")

    def asked(target, *evidence):
        return json.loads(run("query", "x.json", target, *evidence, "--json").out)["values"]

    assert asked("A=B", "-g", "A=B=y") == pytest.approx([0.2, 0.8])
    assert asked("A", "-g", "A=B=z") == pytest.approx([0.02 / 0.51, 0.24 / 0.51, 0.25 / 0.51])
    for command, *options in (("query", "A"), ("map",), ("sample", "-n", 3, "-o", "rows.csv")):
        run(command, "x.json", *options, "-g", "A=B=x").refused("'B=x' of 'A' or 'x' of 'A=B'", "tells them apart")
    assert asked("A=B", "--soft", 'A= {"B=x": 1}') == pytest.approx([0.9, 0.1])
    assert asked("A", "--soft", 'A=B={"x": 1}') == pytest.approx([0.18 / 0.49, 0.06 / 0.49, 0.25 / 0.49])
    run("query", "x.json", "A", "-g", "A=B=w").refused("state of 'A' must be one of")


@pytest.mark.parametrize("option", [("--networks", "asia"), ("--methods", "uniform"), ("--epsilons", "1")])
def test_the_standing_comparison_has_a_grid_of_its_own(run, monkeypatch, option):
    monkeypatch.setattr("dpbn.evaluate.comparison.compare", None)
    wrong = run("evaluate", "--standing", "folder", *option)
    assert wrong.code == 2 and f"{option[0]} must be given without --standing" in wrong.err


def test_the_standing_comparison_prints_json_on_request(run, monkeypatch):
    monkeypatch.setattr("dpbn.evaluate.comparison.compare", lambda folder, **_: Path(folder) / "comparison.md")
    assert json.loads(run("evaluate", "--standing", "folder", "--json").out) == {"page": "folder/comparison.md"}
