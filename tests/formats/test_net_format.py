"""Hugin NET: what is accepted, what is refused, and where the error points."""

import pytest

from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable
from dpbn.errors import FormatError
from dpbn.formats import net

GOOD = """% made by hand; with a semicolon
net
{
    node_size = (80 40);
    name = "100% sure";
}
node asia
{
    label = "a trip {to} Asia;";
    position = (10 20);
    states = ("yes" "no, never");
}
discrete node tub { states = ( >=75 <5 "5-12" ); }
potential ( tub | asia )
{
    data = ((0.1 0.2 0.7)   % asia=yes
            (0.3 0.3 0.4)); % asia=no, never
}
potential ( asia | ) { data = ( 1e-2 .99 ); }
"""


def test_reads_fields_comments_and_both_kinds_of_label():
    found = net.read(GOOD)
    assert found.states("asia") == ("yes", "no, never")
    assert found.states("tub") == (">=75", "<5", "5-12")
    assert found.cpt("tub").tolist() == [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]
    assert net.read(net.write(found)) == found
    flat = GOOD.replace("((0.1", "(0.1").replace("0.4))", "0.4)").replace("0.7)", "0.7").replace("(0.3", "0.3")
    assert net.read(flat) == found


def test_a_structure_needs_no_data():
    text = GOOD.replace("data = ( 1e-2 .99 );", "")
    assert net.read_structure(text).parents("tub") == ("asia",)
    with pytest.raises(FormatError, match="got none for 'asia'"):
        net.read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: expected 'net {'"),
        ("class A { }", "object-oriented"),
        (GOOD.replace("discrete node", "continuous node"), "13:1: expected 'node' or 'potential ('"),
        (GOOD.replace('"5-12"', '"5-12'), "13:21: expected 'name = value;'"),
        (GOOD.replace("states = ( >=75", "states = ( ( >=75"), "'states = ( labels );'"),
        (GOOD.replace(' "5-12"', " <5"), "distinct"),
        (GOOD.replace("| asia", "| africa"), "declared nodes, got 'africa'"),
        (GOOD.replace("( asia | )", "( tub )"), "one potential, got a second"),
        (GOOD.replace("0.7", ""), "must have 6 numbers, got 5"),
        (GOOD.replace("0.7", "zero"), "16:22: expected a number, '(', ')' or ';', got 'zero)"),
        (GOOD.replace("0.7", "0.7.7"), "data of 'tub' must be numbers, got '0.7.7'"),
        (GOOD.replace("0.7", "0.6"), "must sum to 1"),
        (GOOD.replace("0.2 0.7)", "0.2) (0.7)"), "must follow the shape (2, 3)"),
        (GOOD.replace("0.7)   %", ")  %").replace("(0.3 0.3", "(0.7 0.3 0.3"), "must follow the shape (2, 3)"),
        (GOOD.replace("1e-2 .99 )", "1e-2 ) .99"), "or be one pair"),
        (GOOD.replace("data = ((0.1", "model_data = ((0.1"), "got a model"),
        (GOOD.replace("node tub", "node asia"), "'asia' twice"),
    ],
)
def test_refuses(text, message):
    with pytest.raises(FormatError) as caught:
        net.read(text)
    assert message in str(caught.value)


def test_names_that_are_no_identifiers_get_one_and_keep_their_name():
    nodes = ("node_1", "a b", "net", 'qu"ote\\')
    schema = Schema(tuple(Variable(node, ("x", "y")) for node in nodes))
    network = BayesianNetwork(Structure(schema, Dag(nodes, {})), {node: [0.25, 0.75] for node in nodes})
    text = net.write(network)
    assert "node node_2\n" in text
    assert net.read(text) == network
