"""Model strings, networkx, pgmpy and pyAgrum: there and back."""

import pickle
import sys
from importlib import import_module

import networkx
import pytest

import dpbn
from dpbn.errors import FormatError, InputError, MissingExtraError, StructureError
from dpbn.formats import model_string, networkx_graph, pgmpy_model, pyagrum_model

NAMES = ("asia", "sachs", "child", "alarm")


def reordered(network, nodes):
    structure = dpbn.Structure(network.structure.schema, dpbn.Dag(nodes, network.structure.dag.parents))
    return dpbn.BayesianNetwork(structure, network.cpts)


@pytest.mark.parametrize("name", NAMES)
def test_model_string(name):
    structure = dpbn.load_structure(name)
    assert dpbn.load_structure(model_string.write(structure), structure.schema) == structure


def test_a_model_string_of_asia():
    text = "[asia][smoke][tub|asia][lung|smoke][bronc|smoke][either|lung:tub][xray|either][dysp|bronc:either]"
    found = dpbn.load_structure(text, dpbn.load_structure("asia").schema)
    assert found.parents("either") == ("lung", "tub")
    assert found.states("asia") == ("yes", "no")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a", r"1:3: expected '\|', ':' or '\]', got the end"),
        ("[a]b", r"1:4: expected '\[', got 'b'"),
        ("[a][b|]", r"expected a node's name|expected '\|'"),
        ("[a][b|a:]", "expected"),
        ("[]", "expected a node's name"),
        ("[a][a]", "'a' twice"),
        ("[a|b][b|a]", "acyclic"),
        ("[a][c]", "same nodes"),
    ],
)
def test_a_bad_model_string(text, message):
    schema = dpbn.Schema((dpbn.Variable("a", ("x", "y")), dpbn.Variable("b", ("x", "y"))))
    with pytest.raises((FormatError, StructureError), match=message):
        dpbn.load_structure(text, schema)


def test_a_model_string_needs_a_schema_and_a_file_has_its_own():
    with pytest.raises(InputError, match="schema"):
        dpbn.load_structure("[a]")
    with pytest.raises(InputError, match="schema"):
        dpbn.load_structure("asia", dpbn.load_structure("asia").schema)


def test_a_name_a_model_string_cannot_hold():
    structure = dpbn.Structure(dpbn.Schema((dpbn.Variable("a:b", ("x", "y")),)), dpbn.Dag(("a:b",), {}))
    with pytest.raises(FormatError, match="'a:b'"):
        model_string.write(structure)


@pytest.mark.parametrize("name", NAMES)
def test_networkx(name):
    network = dpbn.load_network(name)
    graph = networkx_graph.to_networkx(network)
    assert networkx_graph.network_from_networkx(graph) == network
    assert networkx_graph.structure_from_networkx(networkx_graph.to_networkx(network.structure)) == network.structure


def test_a_graph_without_domains_is_refused():
    import networkx

    with pytest.raises(FormatError, match="attribute 'states'"):
        networkx_graph.structure_from_networkx(networkx.DiGraph([("a", "b")]))
    with pytest.raises(FormatError, match=r"networkx\.DiGraph, got Graph"):
        networkx_graph.structure_from_networkx(networkx.Graph([("a", "b")]))
    graph = networkx.DiGraph()
    graph.add_node(1, states=("x", "y"))
    with pytest.raises(FormatError, match="string, got 1"):
        networkx_graph.structure_from_networkx(graph)
    with pytest.raises(FormatError, match="attribute 'cpt'"):
        networkx_graph.network_from_networkx(networkx_graph.to_networkx(dpbn.load_structure("asia")))


@pytest.mark.parametrize("name", NAMES)
def test_pgmpy(name):
    pytest.importorskip("pgmpy")
    network = dpbn.load_network(name)
    model = pgmpy_model.to_pgmpy(network)
    assert model.check_model()
    assert reordered(pgmpy_model.from_pgmpy(model), network.nodes) == network


@pytest.mark.parametrize("name", NAMES)
def test_pyagrum(name):
    pytest.importorskip("pyagrum")
    network = dpbn.load_network(name)
    assert pyagrum_model.from_pyagrum(pyagrum_model.to_pyagrum(network)) == network


def aligned(theirs, network, node):
    """Another program's CPT with its parents in our order: it may list them in its own."""
    names = theirs.structure.family(node).names
    return theirs.cpt(node).transpose([names.index(name) for name in network.structure.family(node).names])


def test_pyagrum_and_pgmpy_read_what_is_written(tmp_path):
    """Axes could be wrong both ways and cancel out: another program's answer cannot."""
    gum = pytest.importorskip("pyagrum")
    readwrite = pytest.importorskip("pgmpy.readwrite")
    true = dpbn.load_network("alarm")
    release = dpbn.learn(true.sample(200, seed=0), true, 1.0, method="uniform", noise=dpbn.InsecureNoise(1))
    network = release.network
    for extension in ("bif", "net", "bifxml"):
        dpbn.write_network(release, tmp_path / f"alarm.{extension}")  # with a note that it is not private
        theirs = pyagrum_model.from_pyagrum(gum.loadBN(str(tmp_path / f"alarm.{extension}")))
        for node in network.nodes:
            assert aligned(theirs, network, node) == pytest.approx(network.cpt(node), abs=1e-6), (extension, node)
        if extension == "bifxml":
            gum.saveBN(gum.loadBN(str(tmp_path / "alarm.bifxml")), str(tmp_path / "again.bifxml"))
            assert dpbn.load_structure(tmp_path / "again.bifxml").schema == network.structure.schema
    dpbn.write_network(release, tmp_path / "alarm.xmlbif")
    model = readwrite.XMLBIFReader(str(tmp_path / "alarm.xmlbif")).get_model()
    theirs = pgmpy_model.from_pgmpy(model)
    for node in network.nodes:
        assert aligned(theirs, network, node) == pytest.approx(network.cpt(node), abs=1e-6), node


@pytest.mark.parametrize(
    ("package", "convert"),
    [
        ("networkx", networkx_graph.to_networkx),
        ("pgmpy", pgmpy_model.to_pgmpy),
        ("pyagrum", pyagrum_model.to_pyagrum),
    ],
)
def test_a_missing_package_names_its_extra(monkeypatch, package, convert):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"dpbn\[{package}\]"):
        convert(dpbn.load_network("asia"))


def test_a_missing_package_met_by_a_worker_process_is_told_by_its_parent():
    told = pickle.loads(pickle.dumps(MissingExtraError("scipy", "audit")))
    assert (told.package, told.extra, str(told)) == ("scipy", "audit", str(MissingExtraError("scipy", "audit")))


@pytest.mark.parametrize("package", ["networkx", "pgmpy", "pyagrum"])
def test_the_reader_of_another_librarys_graph_is_named(package):
    model = {
        "networkx": lambda: networkx.DiGraph([("a", "b")]),
        "pgmpy": lambda: pgmpy_model.to_pgmpy(dpbn.load_network("asia")),
        "pyagrum": lambda: pyagrum_model.to_pyagrum(dpbn.load_network("asia")),
    }[package]()
    with pytest.raises(InputError, match="reads it") as refused:
        dpbn.load_structure(model)
    module, _, reader = str(refused.value).split(": ")[1].removesuffix(" reads it").rpartition(".")
    assert package in module and callable(getattr(import_module(module), reader))


@pytest.mark.parametrize("convert", [pgmpy_model.from_pgmpy, pyagrum_model.from_pyagrum])
def test_another_object_is_refused(convert):
    with pytest.raises(FormatError, match="got int"):
        convert(3)
