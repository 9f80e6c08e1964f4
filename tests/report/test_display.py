"""In a notebook: networks, structures, releases, budgets and answers show themselves, safely."""

import xml.etree.ElementTree as ET

import pytest

import dpbn
from dpbn.display import bar_svg, graph_svg, probability
from tests.hostile import LABELS, hostile_network


@pytest.fixture(scope="module")
def release():
    network = dpbn.load_network("asia")
    return dpbn.learn(network.sample(500, seed=0), network, epsilon=1.0, method="uniform")


def test_everything_is_well_formed(release):
    answer = dpbn.Inference(release).query(["lung", "bronc"], {"smoke": "yes"})
    for shown in (release, release.network, release.allocation, answer):
        ET.fromstring(f"<div>{shown._repr_html_()}</div>")
    drawing = ET.fromstring(release.structure._repr_svg_())
    names = {text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert names == set(release.network.nodes)
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) == len(release.structure.dag.arcs)


def test_answer_shows_its_question_and_largest_value(release):
    answer = dpbn.Inference(release).query(["lung"], {"smoke": "yes"})
    shown = answer._repr_html_()
    assert "P(lung | smoke = yes)" in shown
    assert probability(float(answer.values.max())) in shown


def test_a_comparison_shows_both_answers_and_the_difference(release):
    found = dpbn.Inference(release).compare("lung", {"smoke": "yes"}, {"smoke": "no"})
    shown = found._repr_html_()
    assert "P(lung | smoke = yes) − P(lung | smoke = no)" in shown
    for text in (probability(found.first["no"]), f"{found['no']:+.3f}", f"{found.interval(0.9)[1][1]:+.3f}"):
        assert text in shown


def test_allocation_is_still_a_mapping(release):
    assert dict(release.allocation) == release.allocation
    assert sum(release.allocation.values()) == pytest.approx(1.0)


def test_hostile_labels_stay_text():
    network = hostile_network()
    answer = dpbn.Inference(network).query([LABELS[0]], {LABELS[1]: LABELS[2]})
    change = dpbn.Inference(network).compare([LABELS[0]], {LABELS[1]: LABELS[2]})
    for shown in (
        network._repr_html_(),
        network.structure._repr_svg_(),
        answer._repr_html_(),
        change._repr_html_(),
    ):
        root = ET.fromstring(f"<div>{shown}</div>")
        assert not [e.tag for e in root.iter() if e.tag.rpartition("}")[2] in {"script", "img", "a", "iframe"}]
        assert not [a for e in root.iter() for a in e.attrib if a.startswith("on")]


def test_small_and_nearly_certain_values_are_not_rounded_away():
    assert probability(0.0) == "0.000"
    assert probability(1e-6) == "&lt;0.001"
    assert probability(0.99999) == "&gt;0.999"
    assert probability(1.0) == "1.000"
    answer = dpbn.Inference(dpbn.load_network("asia")).query(["asia", "tub", "lung"])
    assert 0 < answer.values.min() < 0.0005
    shown = ET.fromstring(answer._repr_html_())
    assert "<0.001" in {cell.text for cell in shown.iter("td")}
    assert 'width="55.0"' in bar_svg(0.5)


def test_other_libraries_take_the_release(release):
    pytest.importorskip("pgmpy")
    gum = pytest.importorskip("pyagrum")
    theirs = release.to_pyagrum()
    expected = dpbn.Inference(release).query(["lung"], {"smoke": "yes"})["yes"]
    engine = gum.LazyPropagation(theirs)
    engine.setEvidence({"smoke": "yes"})
    assert engine.posterior("lung")[{"lung": "yes"}] == pytest.approx(expected, abs=1e-9)
    model = release.to_pgmpy()
    assert model.check_model()
    assert set(model.nodes()) == set(release.network.nodes)


def test_a_drawing_too_wide_to_be_shrunk_says_so():
    names = [f"a node with a rather long name {place}" for place in range(60)]
    schema = dpbn.Schema(tuple(dpbn.Variable(name, ("yes", "no")) for name in names))
    wide = dpbn.Structure(schema, dpbn.Dag(tuple(names), dict.fromkeys(names[1:], (names[0],))))
    assert 'class="wide"' in graph_svg(wide)
    assert ">a node with a…long name 59<" in graph_svg(wide)  # names that begin alike can be told apart
    assert "class=" not in graph_svg(dpbn.load_structure("alarm"))
