"""Variable and Schema: what may be declared, and what is refused."""

import numpy as np
import pytest

from dpbn import Schema, Variable
from dpbn.errors import StructureError


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("", ("x",)), {}, "non-empty string"),
        ((3, ("x",)), {}, "non-empty string, got 3"),
        (("a", ()), {}, "at least one state"),
        (("a", "yes"), {}, "got str"),
        (("a", {"x", "y"}), {}, "sequence of labels, got set"),  # in another order in every process
        (("a", 2), {}, "sequence of labels, got int"),
        (("a", ("x", "")), {}, "non-empty string"),
        (("a", ("x", 1)), {}, "non-empty string, got 1"),
        (("a", ("x", "y", "x")), {}, r"\['x'\] twice"),
        (("a", ("x", "\ud800")), {}, "valid Unicode"),
        (("a", ("x", "y")), {"column": ""}, "column of 'a'"),
        (("a", ("x", "y")), {"catch_all": "z"}, "one of its states, got 'z'"),
        (("a", ("x", "y")), {"cut_points": (1, 2)}, "one state more"),
        (("a", ("x", "y", "z")), {"cut_points": (2, 1)}, "ascending"),
        (("a", ("x", "y")), {"cut_points": (float("nan"),)}, "finite"),
        (("a", ("?", "x", "y")), {"cut_points": (1,), "catch_all": "?"}, "last state"),
        (("a", ("x", "y", "z")), {"cut_points": "15"}, "sequence of numbers, got '15'"),
        (("a", ("x", "y")), {"cut_points": ("low",)}, "sequence of numbers"),
        (("a", ("x", "y")), {"cut_points": 5}, "sequence of numbers, got 5"),
    ],
)
def test_a_bad_variable_is_refused(arguments, options, message):
    with pytest.raises(StructureError, match=message):
        Variable(*arguments, **options)


def test_a_variable_is_a_frozen_value():
    variable = Variable("age", ["young", "old", "?"], cut_points=[40], column="AGE", catch_all="?")
    assert variable.states == ("young", "old", "?")
    assert variable.cut_points == (40.0,)
    decades = Variable("age", [str(decade) for decade in range(6)], cut_points=np.arange(40, 90, 10))
    assert decades.cut_points == (40.0, 50.0, 60.0, 70.0, 80.0)
    assert (variable.size, variable.source_column, variable.index("old")) == (3, "AGE", 1)
    assert Variable("a", ("x",)).source_column == "a"
    with pytest.raises(AttributeError):
        variable.name = "other"
    with pytest.raises(StructureError, match="got 'middle'"):
        variable.index("middle")


def test_a_schema():
    schema = Schema([Variable("a", ("x", "y")), Variable("b", ("u", "v", "w"))])
    assert schema.names == ("a", "b")
    assert schema.shape(("b", "a")) == (3, 2)
    assert schema.cells(("b", "a")) == 6
    assert "a" in schema and "c" not in schema
    with pytest.raises(StructureError, match="got 'c'"):
        schema["c"]
    with pytest.raises(StructureError, match=r"\['a'\] twice"):
        Schema((schema["a"], schema["b"], schema["a"]))
    with pytest.raises(StructureError, match="got str"):
        Schema(("a",))


def test_cells_never_overflow():
    schema = Schema(tuple(Variable(f"v{i}", ("x", "y")) for i in range(100)))
    assert schema.cells(schema.names) == 2**100


@pytest.mark.parametrize("variables", [Variable("a", ("x",)), 3, None, {Variable("a", ("x",))}])
def test_a_schema_is_given_a_sequence(variables):
    with pytest.raises(StructureError, match="sequence of Variables"):
        Schema(variables)


def test_what_a_state_stands_for_in_numbers():
    age = Variable("age", ("young", "middle", "old", "?"), cut_points=(40, 64.5), catch_all="?")
    assert age.ranges == {"young": "below 40", "middle": "40 to below 64.5", "old": "64.5 or more"}
    assert age.meanings == {**age.ranges, "?": "catch-all"}
    both = Variable("age", ("young", "old"), cut_points=(40,), catch_all="old")
    assert both.meanings == {"young": "below 40", "old": "40 or more, catch-all"} and both.ranges["old"] == "40 or more"
    when = Variable("when", ("before", "after"), cut_points=(1704067212345,))  # milliseconds
    assert when.ranges == {"before": "below 1704067212345", "after": "1704067212345 or more"}
    assert Variable("tenth", ("a", "b"), cut_points=(0.1 + 0.2,)).ranges["a"] == "below 0.3"
    assert Variable("ill", ("no", "yes")).ranges == {}
    assert Variable("all", ("one",), cut_points=()).ranges == {"one": "any number"}
