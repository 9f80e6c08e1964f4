"""The 24 networks of the bnlearn repository, as the pgmpy wheel ships them: read, written and read again."""

import gzip
from importlib import resources

import numpy as np
import pytest

import dpbn
from dpbn.formats import BUNDLED, bif, net, project_json, xmlbif

pytest.importorskip("pgmpy")
FILES = {
    item.name.removesuffix(".bif.gz"): item
    for item in (resources.files("pgmpy") / "utils" / "example_models").iterdir()
    if item.name.endswith(".bif.gz")
}


def network(name: str) -> dpbn.BayesianNetwork:
    return bif.read(gzip.decompress(FILES[name].read_bytes()).decode("utf-8"))


def test_there_are_24():
    assert len(FILES) == 24


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_format_gives_back_identical_cpts(name):
    original = network(name)
    for form in (bif, xmlbif, net, project_json):
        again = form.read(form.write(original))
        assert again.structure == original.structure, form.__name__
        for node in original.nodes:
            assert again.cpt(node).tobytes() == original.cpt(node).tobytes(), (form.__name__, node)


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_network_is_the_one_in_the_repository(name):
    assert dpbn.load_network(name) == network(name)


def test_every_bundled_network_is_attributed():
    text = (resources.files("dpbn.formats") / "networks" / "ATTRIBUTION.md").read_text("utf-8")
    assert all(f"| {name} |" in text for name in BUNDLED)
    assert "bnlearn" in text


@pytest.mark.parametrize(
    ("name", "nodes", "arcs", "parameters"),
    [
        ("asia", 8, 8, 18),
        ("sachs", 11, 17, 178),
        ("child", 20, 25, 230),
        ("alarm", 37, 46, 509),
        ("link", 724, 1125, 14211),
    ],
)
def test_sizes_are_the_published_ones(name, nodes, arcs, parameters):
    found = network(name)
    assert (len(found.nodes), len(found.structure.dag.arcs), found.free_parameters) == (nodes, arcs, parameters)


def test_pgmpy_reads_the_same_numbers():
    from pgmpy.readwrite import BIFReader

    text = gzip.decompress(FILES["child"].read_bytes()).decode("utf-8")
    model, ours = BIFReader(string=text).get_model(), bif.read(text)
    for cpd in model.get_cpds():
        node, parents = cpd.variables[0], tuple(cpd.variables[1:])
        theirs = np.moveaxis(cpd.values, 0, -1)
        assert parents == ours.parents(node)
        places = [[cpd.state_names[name].index(s) for s in ours.states(name)] for name in (*parents, node)]
        assert np.allclose(theirs[np.ix_(*places)], ours.cpt(node), atol=1e-12)
