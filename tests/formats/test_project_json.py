"""The project's JSON: every malformed document is a typed error."""

import copy
import json

import pytest

import dpbn
from dpbn.errors import FormatError, StructureError, TooLargeError
from dpbn.formats import project_json

ASIA = project_json.network_to_dict(dpbn.load_network("asia"))


def changed(**changes):
    document = copy.deepcopy(ASIA)
    document.update(changes)
    return json.dumps(document)


def first_variable(**changes):
    document = copy.deepcopy(ASIA)
    document["variables"][0].update(changes)
    return json.dumps(document)


def first_cpt(value):
    document = copy.deepcopy(ASIA)
    document["cpts"][document["variables"][0]["name"]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "3", '"text"', "[" * 100_000, '{"a":' * 100_000, "1" * 10_000,
        '{"format": "dpbn-network", "version": 1}',
        '{"format": "dpbn-network", "version": 1, "version": 1}',
        changed(version=2), changed(version=[]), changed(format={}), changed(variables={}), changed(variables=[[]]),
        changed(variables=[{}]), changed(cpts=[]), changed(cpts={}), changed(cpts={**ASIA["cpts"], "x": [1.0]}),
        first_variable(name=3), first_variable(name=[]), first_variable(name=""), first_variable(states="yes"),
        first_variable(states=[1, 2]), first_variable(states=[]), first_variable(states=["yes", "yes"]),
        first_variable(states=["\ud800", "no"]), first_variable(parents=None), first_variable(parents=[["tub"]]),
        first_variable(parents=["nobody"]), first_variable(parents=["dysp"]), first_variable(cut_points="1"),
        first_variable(cut_points=[True]), first_variable(cut_points=[10**400]), first_variable(column=3),
        first_variable(catch_all=[]), first_variable(extra=1),
        first_cpt(None), first_cpt([0.5]), first_cpt([[0.5, 0.5]]), first_cpt([[[[]]]]), first_cpt(["0.5", "0.5"]),
        first_cpt([True, False]), first_cpt([10**400, 0]), first_cpt([0.4, 0.5]), first_cpt([-1, 2]),
        first_cpt({"yes": 0.5}), first_cpt([float("nan"), 1.0]), first_cpt([float("inf"), 1.0]),
    ],
)  # fmt: skip
def test_a_malformed_document_is_a_typed_error(text):
    with pytest.raises((FormatError, StructureError)):
        project_json.read(text)


def test_a_syntax_error_has_line_and_column():
    with pytest.raises(FormatError) as caught:
        project_json.read('{"format": "dpbn-network",\n  oops}')
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_a_huge_table_is_refused():
    variables = [{"name": f"v{i}", "states": ["x", "y"], "parents": []} for i in range(30)]
    variables[0]["parents"] = [f"v{i}" for i in range(1, 30)]
    document = {
        "format": "dpbn-network",
        "version": 1,
        "variables": variables,
        "cpts": {f"v{i}": [] for i in range(30)},
    }
    with pytest.raises(TooLargeError):
        project_json.network_from_dict(document)


def test_a_structure_keeps_its_declarations():
    variable = dpbn.Variable("age", ("young", "old", "?"), cut_points=(40.5,), column="AGE", catch_all="?")
    structure = dpbn.Structure(dpbn.Schema((variable,)), dpbn.Dag(("age",), {}))
    assert project_json.structure_from_dict(project_json.structure_to_dict(structure)) == structure
