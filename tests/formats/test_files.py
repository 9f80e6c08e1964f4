"""Loading by name and extension, and writing whole files or none."""

import gzip
import os

import pytest

import dpbn
from dpbn.errors import FormatError, InputError, TooLargeError
from dpbn.formats import bif

EXTENSIONS = ("bif", "xmlbif", "xml", "net", "json", "bif.gz", "JSON", "net.gz")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_written_and_loaded_by_extension(tmp_path, extension):
    network, path = dpbn.load_network("child"), tmp_path / f"child.{extension}"
    dpbn.write_network(network, path)
    assert dpbn.load_network(path) == network
    assert dpbn.load_network(str(path)) == network
    assert dpbn.load_structure(path) == network.structure
    assert os.listdir(tmp_path) == [path.name]


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


@pytest.mark.parametrize("name", ["no-such-network", "missing.bif", ".", "", "a\x00b.bif", "network.gz", "x.csv"])
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
