"""BIF: labels and layouts found in the wild, and errors that say where and why."""

import pytest

from dpbn.errors import FormatError, StructureError, TooLargeError
from dpbn.formats import bif
from dpbn.formats.tables import RoundedRowsWarning

WILD = """// made by hand
network "a net" { property author "someone; else"; }
variable "wind speed" { /* two
states */ type discrete [ 3 ] { <5, ">=75, gusts", Asy/Patch }; property position = (1, 2); }
variable 12 { type discrete[2] { "0" "1" }; }
variable result { type discrete [ 2 ] { yes, no }; }
probability ( "wind speed" ) { table 0.2 0.3 0.5; }
probability ( result | "wind speed", 12 ) {
  (Asy/Patch, 1) 1e-3, 0.999; // out of order
  default 0.5, 0.5;
  (">=75, gusts", 0) .25, .75;
}
probability ( 12 ) { table 0.4, 0.6; }
"""


def network(rows: str, parents: str = "a") -> str:
    head = "network n {\n}\nvariable a {\n  type discrete [ 2 ] { x, y };\n}\n"
    head += "variable b {\n  type discrete [ 2 ] { u, v };\n}\nprobability ( a ) {\n  table 0.5, 0.5;\n}\n"
    return head + f"probability ( b | {parents} ) {{\n{rows}\n}}\n"


def test_wild_labels_comments_properties_defaults_and_row_order():
    net = bif.read(WILD)
    assert net.nodes == ("wind speed", "12", "result")
    assert net.states("wind speed") == ("<5", ">=75, gusts", "Asy/Patch")
    assert net.parents("result") == ("wind speed", "12")
    half = [0.5, 0.5]
    assert net.cpt("result").tolist() == [[half, half], [[0.25, 0.75], half], [half, [0.001, 0.999]]]
    assert bif.read(bif.write(net)) == net


def test_table_of_a_conditional_runs_over_the_child_slowest():
    net = bif.read(network("table 0.1, 0.2, 0.9, 0.8;"))
    assert net.cpt("b").tolist() == [[0.1, 0.9], [0.2, 0.8]]


def test_the_older_form_without_a_bar():
    net = bif.read(network("(x) 0.1 0.9; (y) 0.2 0.8;").replace("b | a", '"b" "a"'))
    assert net.parents("b") == ("a",)


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        ("(x) 0.1, 0.9;", 12, r"\(a=y\) is missing"),
        ("(x) 0.1, 0.9;\n(x) 0.1, 0.9;\n(y) 0.1, 0.9;", 12, r"\(a=x\) twice"),
        ("(x) 0.1, 0.9;\n(z) 0.1, 0.9;", 14, "state of 'a' .* got 'z'"),
        ("(x, x) 0.1, 0.9;", 13, "must name 1 states, got 2"),
        ("(x) 0.1, 0.9, 0;\n(y) 0.5, 0.5;", 13, "must have 2 numbers, got 3"),
        ("(x) 0.1, o.9;\n(y) 0.5, 0.5;", 13, "expected a number or ';', got 'o.9;'"),
        ("(x) 0.1, 0.9\n(y) 0.5, 0.5;", 14, r"expected a number or ';'"),
        ("(x) 0.1, 0.-9;\n(y) 0.5, 0.5;", 13, "expected a number, got '0.-9'"),
        ("(x) 0.1,, 0.9;\n(y) 0.5, 0.5;", 13, "single commas"),
        ("(x) 0.1, 0.8;\n(y) 0.5, 0.5;", 12, r"must sum to 1, got 0.9\d* at \(a=x\)"),
        ("(x) -0.1, 1.1;\n(y) 0.5, 0.5;", 12, "finite probabilities >= 0, got -0.1"),
        ("(x) 1e999, 0;\n(y) 0.5, 0.5;", 12, "finite probabilities >= 0, got inf"),
        ("table 0.5, 0.5;", 13, "must have 4 numbers, got 2"),
        ("table 1, 1, 0, 0; (x) 1, 0;", 13, "a table or rows"),
        ("table 1, 1, 0, 0; table 1, 1, 0, 0;", 13, "at most one 'table'"),
        ("default 1;", 13, "must have 2 numbers, got 1"),
        ("nonsense", 13, "expected '\\(', 'table'"),
    ],
)
def test_a_bad_block_is_an_error_with_its_line(rows, line, message):
    with pytest.raises(FormatError, match=message) as caught:
        bif.read(network(rows))
    assert caught.value.line == line
    assert caught.value.column >= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: expected 'network name {', got the end of the file"),
        ("network n {\n}\nvariable a {\n  type discrete [ 2 ] { x y, }; }", "4:28: expected a state label or '}', got"),
        ("network n {\n}\nvariable a {\n  type continuous; }", "4:3: expected 'type discrete"),
        ("network n {} variable a { type discrete [ 3 ] { x, y }; }", "the 3 states it declares, got 2"),
        ("network n {} variable a { type discrete [ 2 ] { x, x }; }", "distinct"),
        ("network n {} variable a { }", "must have a 'type'"),
        ("network n {} variable a { type discrete [1] { x }; } variable a { type discrete [1] { x }; }", "'a' twice"),
        ("network n {} variable a { type discrete [1] { x }; }", "got none: a structure alone"),
        (
            "network n {} variable a { type discrete [1] { x }; } variable b { type discrete [1] { y }; }"
            " probability ( b ) { table 1; }",
            "got none for 'a'",
        ),
        ("network n {} variable a b { type discrete [1] { x }; }", "stands in double quotes"),
        ("network n {} variable a { type discrete [2] { went home, died }; }", "got 3: a state with spaces stands in"),
        ("network n {} /* open", "comment must be closed"),
        (network("(x) 1, 0; (y) 1, 0;", "c"), "declared variables, got 'c'"),
        (network("(x) 1, 0; (y) 1, 0;", "a, a"), "must be distinct"),
        (network("(x) 1, 0; (y) 1, 0;") + "probability ( b ) { table 1, 0; }", "got a second"),
    ],
)
def test_a_bad_file_is_an_error(text, message):
    with pytest.raises(FormatError) as caught:
        bif.read(text)
    assert message in str(caught.value)


def test_a_cycle_is_named():
    text = network("(x) 1, 0; (y) 1, 0;").replace("( a ) {\n  table 0.5, 0.5;", "( a | b ) {\n default 1, 0;")
    with pytest.raises(StructureError, match=r"a -> b -> a|b -> a -> b"):
        bif.read(text)


def test_a_huge_table_is_refused_before_it_is_allocated():
    names = [f"v{i}" for i in range(40)]
    text = "network n {}" + "".join(f"variable {n} {{ type discrete [2] {{ x, y }}; }}" for n in names)
    text += f"probability ( v0 | {', '.join(names[1:30])} ) {{ default 1, 0; }}"
    text += "".join(f"probability ( {n} ) {{ table 1, 0; }}" for n in names[1:])
    with pytest.raises(TooLargeError, match="1,073,741,824"):
        bif.read(text)
    assert len(bif.read_structure(text).parents("v0")) == 29


def test_coarse_rounding_is_normalised_with_a_warning_and_then_stays():
    with pytest.warns(RoundedRowsWarning, match="'b'"):
        net = bif.read(network("(x) 0.3333, 0.6666; (y) 0.5, 0.5;"))
    assert net.cpt("b").sum(axis=-1) == pytest.approx([1, 1], abs=1e-15)
    assert bif.read(bif.write(net)) == net


def test_fine_rounding_is_kept_bit_for_bit():
    net = bif.read(network("(x) 0.3333333, 0.6666666; (y) 0.5, 0.5;"))
    assert net.cpt("b")[0].tolist() == [0.3333333, 0.6666666]
