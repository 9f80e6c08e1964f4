"""The paper's 6-node example (A, B -> C -> D, E; D, E -> F): heights and degrees by hand."""

import pytest

from dpbn.errors import StructureError
from dpbn.graph import Dag, ancestors, heights, out_degrees


def example() -> Dag:
    return Dag(tuple("ABCDEF"), {"C": ("A", "B"), "D": ("C",), "E": ("C",), "F": ("D", "E")})


def test_heights_and_degrees():
    assert heights(example()) == {"A": 3, "B": 3, "C": 2, "D": 1, "E": 1, "F": 0}
    assert out_degrees(example()) == {"A": 1, "B": 1, "C": 2, "D": 1, "E": 1, "F": 0}


def test_ancestors():
    assert ancestors(example().parents, ["D"]) == {"A", "B", "C", "D"}


def test_cycle_is_named():
    with pytest.raises(StructureError, match="cycle"):
        Dag(("a", "b", "c"), {"a": ("c",), "b": ("a",), "c": ("b",)})


def test_parents_are_a_sequence_of_names():
    with pytest.raises(StructureError, match="parents of 'b' must be a sequence of names, got 'a'"):
        Dag(("a", "b"), {"b": "a"})


@pytest.mark.parametrize(
    ("nodes", "parents", "message"),
    [
        (("a", "b"), [("a", "b")], "parents must be a mapping of node to parents, got list"),  # arcs
        (("a", "b"), None, "got NoneType"),
        (("a", "b"), {"b": None}, "parents of 'b' must be a sequence of names, got None"),
        (("a", "b", "c"), {"c": {"a", "b"}}, "parents of 'c' must be a sequence of names, got"),  # no order
        ({"a", "b"}, {}, "nodes must be a sequence of names, got set"),
        ("ab", {}, "nodes must be a sequence of names, got str"),
        (("age", "smoker"), {"smoker": ("Age",)}, r"got \['Age'\]; did you mean 'age'"),
    ],
)
def test_what_has_no_order_or_is_no_name_is_refused(nodes, parents, message):
    with pytest.raises(StructureError, match=message):
        Dag(nodes, parents)
