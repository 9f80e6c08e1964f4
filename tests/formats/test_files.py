"""Loading by name and extension, and writing whole files or none."""

import gzip
import os

import pytest

import dpbn
from dpbn.errors import FormatError, InputError, TooLargeError
from dpbn.formats import bif

EXTENSIONS = ("bif", "xmlbif", "xml", "bifxml", "net", "json", "bif.gz", "JSON", "net.gz")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_written_and_loaded_by_extension(tmp_path, extension):
    network, path = dpbn.load_network("child"), tmp_path / f"child.{extension}"
    dpbn.write_network(network, path)
    assert dpbn.load_network(path) == network
    assert dpbn.load_network(str(path)) == network
    assert dpbn.load_structure(path) == network.structure
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("extension", ["bif", "xmlbif", "bifxml", "net", "json"])
def test_what_is_not_private_says_so_in_every_format_and_is_read_like_all_else(tmp_path, extension):
    asia, path = dpbn.load_network("asia"), tmp_path / f"asia.{extension}"
    rows = asia.sample(20, seed=0)
    for noise, marked in ((dpbn.InsecureNoise(1), True), (None, False)):
        release = dpbn.learn(rows, asia, 1.0, method="uniform", noise=noise)
        dpbn.write_network(release, path)
        assert ("This file is NOT private." in path.read_text("utf-8")) is marked
        assert dpbn.load_network(path) == release.network


def test_the_error_names_file_line_and_column(tmp_path):
    path = tmp_path / "broken.bif"
    path.write_text("network n {\n}\nvariable a {\n  oops", encoding="utf-8")
    with pytest.raises(FormatError, match=r"broken\.bif:4:3: expected 'type discrete") as caught:
        dpbn.load_network(path)
    assert (caught.value.line, caught.value.column) == (4, 3)


def test_bytes_that_are_not_utf8(tmp_path):
    path = tmp_path / "latin.bif"
    path.write_bytes("network n {\n}\nvariable é".encode("latin-1"))
    with pytest.raises(FormatError, match=r"latin\.bif:3:10: text must be UTF-8, got byte 0xe9"):
        dpbn.load_network(path)


def test_a_byte_order_mark_is_no_matter(tmp_path):
    network = dpbn.load_network("asia")
    for extension in ("bif", "xmlbif", "net", "json"):
        path = tmp_path / f"asia.{extension}"
        dpbn.write_network(network, path)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        assert dpbn.load_network(path) == network


NOWHERE = ["no-such-network", "missing.bif", ".", "", "a\x00b.bif", "network.gz", "x.csv", "a" * 300]


@pytest.mark.parametrize("name", NOWHERE)
def test_what_is_not_there(name):
    with pytest.raises(InputError):
        dpbn.load_network(name)


def test_what_is_no_path():
    with pytest.raises(InputError, match="got int"):
        dpbn.load_network(3)


def test_a_truncated_or_false_gzip(tmp_path):
    whole = gzip.compress(bif.write(dpbn.load_network("alarm")).encode())
    for data in (whole[: len(whole) // 2], b"not gzip", b"", whole[:-4]):
        path = tmp_path / "alarm.bif.gz"
        path.write_bytes(data)
        with pytest.raises(FormatError):
            dpbn.load_network(path)


def test_a_gzip_that_expands_without_end_is_refused(tmp_path):
    path = tmp_path / "bomb.bif.gz"
    with gzip.open(path, "wb", compresslevel=9) as stream:
        for _ in range(70):
            stream.write(b" " * 2**20)
    with pytest.raises(TooLargeError, match="must decompress to at most"):
        dpbn.load_network(path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    network, path = dpbn.load_network("asia"), tmp_path / "asia.xmlbif"
    dpbn.write_network(network, path)
    before = path.read_bytes()
    bad = dpbn.Structure(dpbn.Schema((dpbn.Variable("a", ("\x02", "y")),)), dpbn.Dag(("a",), {}))
    with pytest.raises(FormatError, match=r"asia\.xmlbif: a label must hold only"):
        dpbn.write_network(dpbn.BayesianNetwork(bad, {"a": [0.5, 0.5]}), path)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="must exist"):
        dpbn.write_network(network, tmp_path / "no" / "folder.bif")
    with pytest.raises(FormatError, match="extension must be one of"):
        dpbn.write_network(network, tmp_path / "asia.pkl")
    assert os.listdir(tmp_path) == ["asia.xmlbif"]


CYCLE = "network n {} variable a { type discrete [1] { x }; } variable b { type discrete [1] { x }; }"
CYCLE += "probability ( a | b ) { default 1; } probability ( b | a ) { default 1; }"


@pytest.mark.parametrize("load", [dpbn.load_network, dpbn.load_structure])
def test_a_cycle_is_told_with_the_name_of_the_file(tmp_path, load):
    (tmp_path / "round.bif").write_text(CYCLE)
    with pytest.raises(FormatError, match=r"round\.bif: a graph must be acyclic"):
        load(tmp_path / "round.bif")


@pytest.mark.parametrize(("name", "codec"), [("ISO-8859-1", "latin-1"), ("UTF-16", "utf-16"), ("UTF-8", "utf-8")])
def test_xml_in_the_encoding_it_declares(tmp_path, name, codec):
    structure = dpbn.Structure(dpbn.Schema((dpbn.Variable("Größe", ("klein", "groß")),)), dpbn.Dag(("Größe",), {}))
    network, path = dpbn.BayesianNetwork(structure, {"Größe": [0.5, 0.5]}), tmp_path / "size.xmlbif"
    dpbn.write_network(network, path)
    path.write_bytes(path.read_text("utf-8").replace('encoding="UTF-8"', f'encoding="{name}"').encode(codec))
    assert dpbn.load_network(path) == network


def test_xml_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "x.xml").write_bytes("<?xml version='1.0' encoding='windows-1250'?><BIF>é".encode("cp1250"))
    with pytest.raises(FormatError, match="text must be UTF-8, got byte 0xe9"):
        dpbn.load_network(tmp_path / "x.xml")
    (tmp_path / "x.xml").write_bytes("<BIF>".encode("utf-16") + b"\x00")
    with pytest.raises(FormatError, match="text must be UTF-16"):
        dpbn.load_network(tmp_path / "x.xml")


@pytest.mark.parametrize("extension", ["bif", "net"])
def test_lines_may_end_in_carriage_returns_alone(tmp_path, extension):
    network, path = dpbn.load_network("asia"), tmp_path / f"asia.{extension}"
    dpbn.write_network(network, path)
    mark = "//" if extension == "bif" else "%"
    text = path.read_text("utf-8").replace("\n", f" {mark} a comment\r")
    path.write_bytes(text.encode())
    assert dpbn.load_network(path) == network
    path.write_bytes(text.replace("}", "oops", 1).encode())
    with pytest.raises(FormatError, match=r"asia\.\w+:[23]:\d+: expected"):
        dpbn.load_network(path)


def test_a_file_that_is_no_json_is_told_in_plain_words(tmp_path):
    for text, words in (("", "expected a value"), ('{"a" 1}', "expected ':'"), ("{1}", "a name in double quotes")):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(FormatError, match=f"x.json:1:.*must be JSON: .*{words}"):
            dpbn.load_network(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": "dpbn-release", "format": "dpbn-network"}', "each key of an object once"),
        ('{"version": NaN}', "finite numbers, got NaN"),
        ('{"version": ' + "9" * 10_000 + "}", "ordinary numbers"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
@pytest.mark.parametrize("load", [dpbn.load_network, dpbn.load_release])
def test_json_is_read_strictly(tmp_path, load, text, words):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FormatError, match=f"x.json: .*must be .*{words}"):
        load(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("table", "words"),
    [("", "must have probabilities, got none: a structure alone"), ("table 0.5, 0.6;", r"must sum to 1, got 1\.1$")],
)
def test_a_table_without_parents_is_told_of_in_plain_words(tmp_path, table, words):
    text = f"network n {{}} variable a {{ type discrete [2] {{ x, y }}; }} probability ( a ) {{ {table} }}"
    (tmp_path / "s.bif").write_text(text)
    with pytest.raises(FormatError, match=words):
        dpbn.load_network(tmp_path / "s.bif")


@pytest.mark.parametrize("extension", ["json", "json.gz"])
def test_a_structure_alone_is_written_and_read_back(tmp_path, extension):
    schema = dpbn.Schema(
        [
            dpbn.Variable("age", ["young", "old", "?"], column="Age (years)", cut_points=[40.5], catch_all="?"),
            dpbn.Variable("ill", ["yes", "no"]),
        ]
    )
    structure, path = dpbn.Structure(schema, dpbn.Dag(("ill", "age"), {"ill": ["age"]})), tmp_path / f"s.{extension}"
    dpbn.write_network(structure, path)
    assert dpbn.load_structure(path) == structure
    with pytest.raises(FormatError, match="one CPT per variable, got nothing: a structure alone"):
        dpbn.load_network(path)


@pytest.mark.parametrize("extension", ["bif", "xmlbif", "xml", "bifxml", "net", "bif.gz"])
def test_a_structure_alone_is_refused_by_formats_that_others_read_with_probabilities_only(tmp_path, extension):
    with pytest.raises(FormatError, match=rf"must be written as \.json, got 's\.{extension}'"):
        dpbn.write_network(dpbn.load_structure("asia"), tmp_path / f"s.{extension}")
    assert not os.listdir(tmp_path)
