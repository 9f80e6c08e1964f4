"""XMLBIF: what is accepted, what is refused, and where the error points."""

import pytest

from dpbn.errors import FormatError
from dpbn.formats import xmlbif

GOOD = """<?xml version="1.0" encoding="US-ASCII"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
]>
<BIF VERSION="0.3" xmlns="http://www.cs.ubc.ca/labs/lci/fopi/ve/XMLBIFv0_3">
<NETWORK>
<NAME>dogs &amp; lights</NAME>
<PROPERTY>detail = anything; at all</PROPERTY>
<VARIABLE TYPE="nature">
  <NAME> light-on </NAME><OUTCOME>&gt;=75</OUTCOME><OUTCOME><![CDATA[<5, "low"]]></OUTCOME>
  <PROPERTY>position = (218, 195)</PROPERTY>
</VARIABLE>
<VARIABLE TYPE="nature"><NAME>b</NAME><OUTCOME>1</OUTCOME><OUTCOME>2</OUTCOME><OUTCOME>3</OUTCOME></VARIABLE>
<DEFINITION><FOR>b</FOR><GIVEN>light-on</GIVEN>
  <TABLE>0.1 0.2 0.7 <!-- the second row --> 0.3 0.3 0.4</TABLE></DEFINITION>
<DEFINITION><FOR>light-on</FOR><TABLE>.6 4e-1</TABLE></DEFINITION>
</NETWORK>
</BIF>
"""


def test_reads_a_document_with_an_inline_dtd_comments_and_properties():
    net = xmlbif.read(GOOD)
    assert net.nodes == ("light-on", "b")
    assert net.states("light-on") == (">=75", '<5, "low"')
    assert net.cpt("b").tolist() == [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]
    assert xmlbif.read(xmlbif.write(net)) == net


def test_a_structure_needs_no_tables():
    text = GOOD.replace("<TABLE>.6 4e-1</TABLE>", "")
    assert xmlbif.read_structure(text).parents("b") == ("light-on",)
    with pytest.raises(FormatError, match="one TABLE, got 0"):
        xmlbif.read(text)


LAUGHS = '<!DOCTYPE BIF [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><BIF>&b;</BIF>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "must not declare entities"),
        ('<!DOCTYPE BIF [<!ENTITY a SYSTEM "file:///etc/passwd">]><BIF/>', "must not declare entities"),
        ('<!DOCTYPE BIF [<!ENTITY % p SYSTEM "http://127.0.0.1/x"> %p;]><BIF/>', "must not declare entities"),
        ('<!DOCTYPE BIF SYSTEM "x.dtd"><BIF><NETWORK><NAME>&who;</NAME></NETWORK></BIF>', "entit"),
        ("<BIF><NETWORK>", "1:15: an XMLBIF file must be well-formed XML"),
        ("", "must be well-formed XML: no element found"),
        ("<html/>", "expected BIF inside the document, got <html>"),
        ("<BIF>" * 100_000, "expected NETWORK inside BIF"),
        (
            GOOD.replace("<OUTCOME>1</OUTCOME>", "<OUTCOME><NAME>1</NAME></OUTCOME>"),
            "expected text only inside OUTCOME",
        ),
        (GOOD.replace("<OUTCOME>1</OUTCOME>", "one"), "must hold elements only, got the text 'one'"),
        (GOOD.replace("<OUTCOME>1</OUTCOME>", "<OUTCOME>2</OUTCOME>"), "distinct"),
        (GOOD.replace("<NAME>b</NAME>", ""), "one NAME, got 0"),
        (GOOD.replace("<NAME>b</NAME>", "<NAME>light-on</NAME>"), "'light-on' twice"),
        (GOOD.replace('TYPE="nature"', 'TYPE="utility"'), "TYPE 'nature', got 'utility'"),
        (GOOD.replace("<GIVEN>light-on", "<GIVEN>light"), "declared variables, got 'light'"),
        (GOOD.replace("<FOR>light-on", "<FOR>b"), "one DEFINITION, got a second"),
        (GOOD.replace("0.7", ""), "must have 6 numbers, got 5"),
        (GOOD.replace("0.7", "zero"), "a TABLE of 'b' must be numbers, got 'zero'"),
        (GOOD.replace("0.7", "nan"), "finite"),
        (GOOD.replace("0.7", "0.5"), r"must sum to 1, got 0.8 at (light-on=>=75)"),
    ],
)
def test_refuses(text, message):
    with pytest.raises(FormatError) as caught:
        xmlbif.read(text)
    assert message in str(caught.value)


def test_an_error_says_where():
    with pytest.raises(FormatError) as caught:
        xmlbif.read(GOOD.replace("0.7", "0.5"))
    assert (caught.value.line, caught.value.column) == (16, 1)


def test_a_label_xml_cannot_hold_is_refused():
    net = xmlbif.read(GOOD.replace("<OUTCOME>1</OUTCOME>", "<OUTCOME>one</OUTCOME>"))
    document = xmlbif.write(net)
    assert "one" in document
    from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable

    bad = Structure(Schema((Variable("a", ("x\x01", "y")),)), Dag(("a",), {}))
    with pytest.raises(FormatError, match="characters that XML allows"):
        xmlbif.write(BayesianNetwork(bad, {"a": [0.5, 0.5]}))
