"""Structure and BayesianNetwork: validated, immutable, and never larger than the limits."""

import numpy as np
import pytest

from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable, load_network
from dpbn.errors import StructureError, TooLargeError
from dpbn.network import check_cells
from tests.structures import structure_of

SCHEMA = Schema((Variable("a", ("x", "y")), Variable("b", ("u", "v", "w"))))
STRUCTURE = Structure(SCHEMA, Dag(("a", "b"), {"b": ("a",)}))
GOOD = {"a": [0.5, 0.5], "b": [[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]}


def test_one_arc_is_counted_as_people_count():
    assert repr(STRUCTURE) == "Structure(2 nodes, 1 arc, no probabilities)"
    assert repr(BayesianNetwork(STRUCTURE, GOOD)) == "BayesianNetwork(2 nodes, 1 arc, 5 free parameters)"


def test_axes_are_parents_then_child():
    assert STRUCTURE.shape("b") == (2, 3)
    assert BayesianNetwork(STRUCTURE, GOOD).cpt("b")[0].tolist() == [0.2, 0.3, 0.5]


@pytest.mark.parametrize(
    ("cpts", "message"),
    [
        ({"a": GOOD["a"]}, r"mismatch at \['b'\]"),
        ({**GOOD, "c": [1.0]}, r"mismatch at \['c'\]"),
        ({**GOOD, "a": [0.5, 0.6]}, "must sum to 1, got 1.1$"),
        ({**GOOD, "a": [1.5, -0.5]}, "got -0.5"),
        ({**GOOD, "a": [float("nan"), 1.0]}, "got nan"),
        ({**GOOD, "a": "half"}, "array of numbers"),
        ({**GOOD, "b": np.transpose(GOOD["b"])}, r"shape \(2, 3\) .* got \(3, 2\)"),
        ({**GOOD, "b": [[0.2, 0.8], [1.0]]}, "array of numbers"),
        ({**GOOD, "a": [10**400, 0]}, "array of numbers"),
        ({**GOOD, 1: [1.0]}, r"mismatch at \[1\]"),
        (list(GOOD.values()), "got Structure and list"),
        (None, "got Structure and NoneType"),
    ],
)
def test_a_bad_cpt_is_refused(cpts, message):
    with pytest.raises(StructureError, match=message):
        BayesianNetwork(STRUCTURE, cpts)


def test_a_network_is_made_of_a_structure():
    with pytest.raises(StructureError, match="got Dag and dict"):
        BayesianNetwork(STRUCTURE.dag, GOOD)


def test_cpts_are_copied_and_read_only():
    given = np.array([0.5, 0.5])
    network = BayesianNetwork(STRUCTURE, {**GOOD, "a": given})
    given[0] = 9
    assert network.cpt("a").tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        network.cpt("a")[0] = 1


def test_graph_and_schema_must_agree():
    with pytest.raises(StructureError, match=r"\['b'\] in only one"):
        Structure(SCHEMA, Dag(("a",), {}))
    assert Structure(SCHEMA, Dag(("b", "a"), {})).schema.names == ("b", "a")


def test_unknown_names_are_refused():
    network = load_network("asia")
    for ask in (network.cpt, network.parents, network.states):
        with pytest.raises(StructureError, match="got 'nobody'"):
            ask("nobody")


def star(parents: int, states: int) -> Structure:
    names = tuple(f"v{i}" for i in range(parents + 1))
    return structure_of(dict.fromkeys(names, states), {"v0": names[1:]})


def test_sizes_are_checked_without_allocating():
    check_cells(star(6, 10))
    with pytest.raises(TooLargeError, match="got 100,000,000"):
        check_cells(star(7, 10))
    with pytest.raises(TooLargeError, match="fewer than 32 parents, got 20000"):
        check_cells(star(20_000, 2))
    names = tuple(f"v{i}" for i in range(40))
    variables = tuple(Variable(name, tuple(map(str, range(10)))) for name in names)
    parents = dict.fromkeys(names[6:], names[:6])
    with pytest.raises(TooLargeError, match="in all"):
        check_cells(Structure(Schema(variables), Dag(names, parents)))


def test_a_structure_is_told_in_one_line():
    assert repr(load_network("asia").structure) == "Structure(8 nodes, 8 arcs, no probabilities)"


@pytest.mark.parametrize(("schema", "dag"), [(SCHEMA.variables, STRUCTURE.dag), (SCHEMA, {"b": ("a",)})])
def test_a_structure_is_a_schema_and_a_dag(schema, dag):
    with pytest.raises(StructureError, match="must be made of a Schema and a Dag, got"):
        Structure(schema, dag)
