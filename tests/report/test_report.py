"""The report: complete, true to the release, harmless whatever the labels, and without any address."""

import hashlib
import html
import json
import math
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpbn
from dpbn.display import escaped, graph_svg, network_html, probability, release_html
from dpbn.errors import DataError, InputError
from dpbn.report import write_report
from dpbn.report.facts import RowBelowFloor, facts_of
from dpbn.report.page import MOST_WEAK_ROWS, page
from dpbn.statement import points, privacy_statement, summary
from tests.hostile import LABELS, hostile_network


@pytest.fixture(scope="module")
def release():
    network = dpbn.load_network("asia")
    return dpbn.learn(network.sample(3_000, seed=0), network, epsilon=0.5, method="uniform")


ALLOWED = """html head meta title style body main header section nav h1 h2 p span b i a div dl dt dd table caption
thead tbody tr th td details summary small pre svg g rect path polygon text code use"""


def written(release, folder, **options):
    return [path.read_text("utf-8") for path in write_report(release, folder / "report.html", **options)]


class Elements(HTMLParser):
    """All elements and attributes a browser would see."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_data(self, data):
        self.words.append(data)


def assert_harmless(page):
    seen = Elements(page)
    allowed = set(re.findall(r"\w+", ALLOWED))
    assert set(seen.tags) <= allowed, set(seen.tags) - allowed
    for tag, name, value in seen.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name != "style"  # the policy allows one style sheet, by hash
        assert name not in ("src", "action", "srcset")
        if name == "href":
            assert value.startswith("#")
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"""(url\(|@import|src=|href=["']?http)""", outside.lower().replace("&lt;img src=x", ""))


def test_page_answers_every_question(release, tmp_path):
    page, privacy, card = written(release, tmp_path, title="Ward 7")
    for point in points(release):
        assert escaped(point.question) in page
        assert escaped(point.answer) in page
        assert point.question in card
    for node in release.network.nodes:
        assert f"<b>{node}</b>" in page
    assert "Ward 7" in page and "need not add up" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    document = json.loads(privacy)
    assert document["epsilon"] == release.guarantee.epsilon
    assert document["release_sha256"] == release.id
    assert len(document["tables"]) == len(release.measurements)
    assert sum(t["loss"] for t in document["tables"]) == pytest.approx(release.guarantee.epsilon)
    assert_harmless(page)


def test_companions_of_another_release_are_not_replaced_in_silence(release, tmp_path, recwarn):
    for _ in range(2):
        write_report(release, tmp_path / "one.html", intervals=False)
    assert not recwarn
    other = replace(release, library="another")
    with pytest.warns(UserWarning, match="^privacy.json and MODEL_CARD.md of another release replaced"):
        write_report(other, tmp_path / "two.html", intervals=False)
    (tmp_path / "privacy.json").unlink()
    with pytest.warns(UserWarning, match="^MODEL_CARD.md of another release replaced"):
        write_report(release, tmp_path / "one.html", intervals=False)


def test_a_companion_that_cannot_be_read_is_replaced(release, tmp_path, monkeypatch):
    def refused(self):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "privacy.json").write_text("of somebody else")
    monkeypatch.setattr(Path, "read_bytes", refused)
    _, privacy, _ = write_report(release, tmp_path / "one.html", intervals=False)
    assert release.id in privacy.read_text("utf-8")


def test_numbers_are_those_of_the_release(release, tmp_path):
    page, *_ = written(release, tmp_path)
    for value in release.network.cpt("lung").ravel():
        assert f">{probability(float(value))}<" in page


def test_what_stands_behind_a_plus_minus_is_said(release, tmp_path):
    page, *_ = written(release, tmp_path)
    assert page.index("± is one standard deviation of the noise") < page.index("noise per cell")


def test_intervals_hold_their_values(release):
    facts = facts_of(release, "asia", "asia.json")
    assert set(facts.intervals) == set(release.network.nodes)
    for node, (low, high) in facts.intervals.items():
        assert (low <= release.network.cpt(node)).all() and (release.network.cpt(node) <= high).all()
        assert (high - low).max() > 0.001


def test_intervals_are_as_fine_as_their_values(release, tmp_path):
    page, *_ = written(release, tmp_path)
    ends = re.findall(r"<small>([\d.]+)–([\d.]+)</small>", page)
    assert len(ends) == sum(cpt.size for cpt in release.network.cpts.values())
    assert all(re.fullmatch(r"\d\.\d{3}", end) for pair in ends for end in pair)


def test_rows_are_counted_as_people_do(release):
    facts = facts_of(release, "asia", "asia.json")
    row = RowBelowFloor("asia", (), 1.0, 2.0)
    assert "<summary>1 row</summary>" in page(replace(facts, weak_rows=(row,)))
    assert "<summary>2 rows</summary>" in page(replace(facts, weak_rows=(row, row)))
    many = (row,) * (MOST_WEAK_ROWS + 1)
    assert "and 1 row more" in page(replace(facts, weak_rows=many))


def test_the_lines_that_open_the_file_work(release, tmp_path):
    """Whatever the file and the first node are called."""
    name, node = "ward 7's.release.json", 'it\'s "odd"\n\\'
    schema = dpbn.Schema((dpbn.Variable(node, ("a", "b")),))
    structure = dpbn.Structure(schema, dpbn.Dag((node,), {}))
    network = dpbn.BayesianNetwork(structure, {node: [0.5, 0.5]})
    odd = dpbn.learn(network.sample(100, seed=0), structure, epsilon=1.0, method="uniform")
    odd.save(tmp_path / name)
    page, _, card = written(odd, tmp_path, file=name)
    lines = html.unescape(re.search(r"<pre>(.*?)</pre>", page, re.DOTALL)[1]).splitlines()
    assert shlex.split(lines[lines.index("# a what-if page in the browser") + 1]) == ["dpbn", "serve", name]
    printed = subprocess.run(
        [sys.executable, "-c", "\n".join(lines[: lines.index("")])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(dpbn.__file__).parents[1])},
        check=True,
    ).stdout
    assert printed.startswith("[0.")
    assert f"    dpbn serve {shlex.quote(name)}\n" in card and repr(name) in card
    assert "&#x27;release.json&#x27;" in written(release, tmp_path)[0]


def test_the_content_id_says_what_it_is(release, tmp_path):
    file = release.save(tmp_path / "asia.json").read_bytes()
    assert file.endswith(b"\n") and hashlib.sha256(file[:-1]).hexdigest() == release.id
    page, privacy, card = written(release, tmp_path)
    for text in (page, card):
        assert re.search(rf"{release.id}`? \(SHA-256 of the file without its final newline\)", text)
    document = json.loads(privacy)
    assert document["release_sha256"] == release.id
    assert document["release_sha256_is"] == "SHA-256 of the file without its final newline"


def test_not_private_is_said_first(tmp_path):
    network = dpbn.load_network("asia")
    data = network.sample(500, seed=0)
    for release in (
        dpbn.learn(data, network, method="exact"),
        dpbn.learn(data, network, method="uniform", noise=dpbn.InsecureNoise(1)),
    ):
        page, privacy, card = written(release, tmp_path)
        assert page.index("NOT PRIVATE") < page.index("The guarantee")
        assert "NOT private" in card
        assert json.loads(privacy)["private"] is False
        assert "NOT private" in privacy_statement(release)
        for text in (page, privacy, card, privacy_statement(release)):
            assert "Nobody." in text and "Not at all." in text
            assert "at most" not in text  # no bound is claimed


def test_hostile_labels_do_nothing(tmp_path):
    network = hostile_network()
    release = dpbn.learn(network.sample(300, seed=0), network, epsilon=1.0, method="uniform", unit=None)
    page, privacy, card = written(release, tmp_path, title=LABELS[3])
    assert_harmless(page)
    text = "".join(Elements(page).words)
    for label in (*LABELS[:3], LABELS[15]):
        assert label in text  # shown, as text
    assert "\u202e" not in page and "\x00" not in page and "\\u202e" in page
    json.loads(privacy)
    assert "<script" not in card and "<img" not in card
    assert "](" not in card.replace("\\](", "").replace("\\[", "")
    for fragment in (network_html(network), release_html(release), graph_svg(network.structure)):
        assert_harmless(fragment)


def test_insecure_options_and_paths(release, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.html"):
        write_report(release, tmp_path / "report.pdf")
    with pytest.raises(InputError, match="folder"):
        write_report(release, tmp_path / "nowhere" / "report.html")
    with pytest.raises(InputError, match="must be given a release, got str"):
        write_report("alarm.release.json", tmp_path / "report.html")


@pytest.mark.parametrize("epsilon", [0.123441, 0.2, np.float64(0.3), 1.0, 1.0000001, 5.0, 7.0])
def test_what_is_said_of_the_budget_is_no_less_than_it_is(release, epsilon):
    """Sure to 73.1 % at most, where 73.106 % was true; ε = 0.1234 for 0.12344."""
    stated = replace(release, guarantee=replace(release.guarantee, epsilon=epsilon))
    answer = next(point.answer for point in points(stated) if point.key == "epsilon")
    factor, percent = (
        float(re.search(r"e\^ε = ([\d.e+]*\d)", answer)[1]),
        float(re.search(r"([\d.]+)% sure", answer)[1]),
    )
    assert math.exp(epsilon) <= factor < 1.01 * math.exp(epsilon)
    assert 100 / (1 + math.exp(-epsilon)) <= percent < 0.1 + 100 / (1 + math.exp(-epsilon))
    for words in (summary(stated), answer, repr(stated)):
        assert epsilon <= float(re.search(r"(?:ε = |epsilon=)([\d.]*\d)", words)[1]) < 1.002 * epsilon


def test_unit_and_delta_are_explained(release):
    person = replace(release, guarantee=replace(release.guarantee, unit="patient", max_contributions=4, delta=1e-6))
    words = " ".join(point.answer for point in points(person))
    assert "column “patient”" in words and "4 records" in words and "1e-06" in words
    swapped = replace(release, guarantee=replace(release.guarantee, neighbors="replace"))
    assert "replaced by any other" in points(swapped)[1].answer


@pytest.mark.parametrize("policy", ["error", "drop", "catch_all", "other"])
@pytest.mark.parametrize("declared", [(), ("a",), ("a", "b")])
@pytest.mark.parametrize("unit", [None, "patient"])
def test_who_could_be_told_by_a_refusal_is_not_promised_anything(policy, declared, unit):
    """The statement says of which tables the promise speaks exactly where learn refuses some."""
    states = ("0", "1", "other")
    variables = [dpbn.Variable(x, states, catch_all="other" if x in declared else None) for x in ("a", "b")]
    structure = dpbn.Structure(dpbn.Schema(variables), dpbn.Dag(("a", "b"), {}))
    clean = pd.DataFrame({"a": ["0", "1"], "b": ["0", "1"], "patient": ["p", "q"]}, dtype=object)
    try:
        release = dpbn.learn(clean, structure, 1.0, on_unknown=policy, unit=unit)
    except InputError:
        assert not declared  # no state of that name
        return
    refused = set()
    for column in ["a", "b"] if unit is None else ["a", "b", "patient"]:
        strange = clean.copy()
        strange.loc[0, column] = None
        try:
            dpbn.learn(strange, structure, 1.0, on_unknown=policy, unit=unit)
        except DataError:
            refused.add(column)
    answer = next(point.answer for point in points(release) if point.key == "unknown_values")
    assert ("the promise compares tables that are not refused" in answer) == bool(refused)
    assert ("without a person" in answer) == ("patient" in refused)


def test_a_group_has_a_larger_delta_too(release):
    assert "(k·ε)." in privacy_statement(release)
    with_delta = replace(release, guarantee=replace(release.guarantee, delta=1e-6))
    assert "(k·ε), with δ·(e^(kε) − 1)/(e^ε − 1) in place of δ." in points(with_delta)[-1].answer


def test_intervals_of_people_with_several_records_say_what_they_assume(release):
    assumed = "Records are taken as independent"
    several = replace(release, guarantee=replace(release.guarantee, unit="patient", max_contributions=4))
    assert assumed not in page(facts_of(release, "asia", "asia.json"))
    assert assumed in page(facts_of(several, "asia", "asia.json"))


def test_big_networks_stay_small_pages(tmp_path):
    network = dpbn.load_network("alarm")
    release = dpbn.learn(network.sample(1_000, seed=0), network, epsilon=1.0, method="uniform")
    page, *_ = written(release, tmp_path)
    assert len(page) < 400_000
    assert_harmless(page)


def test_a_wide_drawing_is_seen_whole_before_it_is_scrolled(release, tmp_path):
    """Its corner, which a page shows first, may hold nothing."""
    names = [f"a node with a rather long name {place}" for place in range(60)]
    schema = dpbn.Schema([dpbn.Variable(name, ("yes", "no"), cut_points=(40,)) for name in names])
    structure = dpbn.Structure(schema, dpbn.Dag(names, dict.fromkeys(names[1:], (names[0],))))
    rows = pd.DataFrame({name: [30, 50] * 10 for name in names})
    wide = dpbn.learn(rows, structure, epsilon=1.0, method="uniform")
    page, *_ = written(wide, tmp_path, intervals=False)
    assert_harmless(page)
    assert page.index('<use href="#drawing"') < page.index("<summary>Full size") < page.index('class="wide"')
    assert "yes: below 40, no: 40 or more" in page
    page, *_ = written(release, tmp_path, intervals=False)
    assert "<use" not in page


@pytest.mark.parametrize(("epsilon", "little"), [(0.1, False), (3.0, False), (20.0, True), (1e6, True)])
def test_a_large_epsilon_is_called_next_to_no_protection(release, epsilon, little):
    """Conclusions are not nearly as probable without a record whatever the epsilon."""
    large = replace(release, guarantee=replace(release.guarantee, epsilon=epsilon))
    (answer,) = [point.answer for point in points(large) if point.key == "epsilon"]
    assert ("next to no protection" in answer) == little
    assert "nearly" not in answer


def test_one_node_is_counted_as_people_count(tmp_path):
    structure = dpbn.Structure(dpbn.Schema([dpbn.Variable("a", ("yes", "no"))]), dpbn.Dag(("a",), {}))
    single = dpbn.learn(pd.DataFrame({"a": ["yes", "no"]}), structure, epsilon=1.0, method="uniform")
    page, _, card = written(single, tmp_path, intervals=False)
    assert "A Bayesian network of 1 node, 0 arcs and 1 free parameter." in card
    assert "<b>1</b><span>node</span>" in page and "<b>1</b><span>free parameter</span>" in page


def test_the_page_tells_columns_and_catch_alls_to_those_who_predict_from_a_table(tmp_path):
    hb = dpbn.Variable("hb", ("low", "high", "?"), cut_points=(12,), column="Hb <g/dl>", catch_all="?")
    structure = dpbn.Structure(dpbn.Schema([hb]), dpbn.Dag(("hb",), {}))
    release = dpbn.learn(pd.DataFrame({"Hb <g/dl>": [9, 13]}), structure, epsilon=1.0, method="uniform")
    page, *_ = written(release, tmp_path, intervals=False)
    assert_harmless(page)
    assert "column: Hb &lt;g/dl&gt;; low: below 12, high: 12 or more, ?: catch-all" in page
