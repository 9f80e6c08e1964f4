"""Names, labels and paths as an enemy would choose them: shown as text, never obeyed."""

import itertools
import json
from html.parser import HTMLParser
from urllib.parse import quote

import numpy as np
import pytest

import dpbn
from dpbn.errors import DpbnError
from dpbn.report import write_report
from dpbn.tables import FORMULA_STARTS, write_table

STEPS = ["../", "..\\", "..%2f", "%2e%2e/", "%2e%2e%2f", "..%252f", "....//", "..;/", "%c0%ae%c0%ae/", "./../", "/"]
TARGETS = ["etc/passwd", "app.py", "__init__.py", "etc/passwd%00.js", "explorer.js/../app.py", "proc/self/environ", "~"]
TRAVERSALS = [step * depth + target for step, depth, target in itertools.product(STEPS, range(1, 8), TARGETS)][:539]

WRAPPERS = [
    "<script>{}</script>", "<img src=x onerror={}>", '"><svg onload={}>', "'><b>{}", "javascript:{}", "{{{{{}}}}}",
    "${{{}}}", "<!--{}-->", "]]>{}", "&#60;{}&#62;", "\u202e{}", "\u2066{}\u2069", "\x1b[31m{}", "\x07{}", "\r\n{}: x",
    "={}", "+{}", "-{}", "@{}", "\t={}", "|{}", "`{}`", "[x]({})", "![x]({})", "</title>{}", "</style>{}", "\x00{}",
    "\u200b{}", "{}\u0000", "\ufeff{}",
]  # fmt: skip
INNER = ["alert(1)", "1+1", "cmd|' /C calc'!A0", "http://example.invalid/", "x", "document.cookie", "HYPERLINK(1)"]
LABELS = [wrapper.format(inner) for wrapper, inner in itertools.product(WRAPPERS, INNER)]


def test_there_are_enough_of_them():
    assert len(set(TRAVERSALS)) >= 500 and len(set(LABELS)) >= 200


def labelled(labels):
    """A chain of two nodes whose every name and state is among `labels`."""
    first, second = labels[0], labels[1]
    schema = dpbn.Schema((dpbn.Variable(first, labels), dpbn.Variable(second, labels[:2])))
    structure = dpbn.Structure(schema, dpbn.Dag((first, second), {second: (first,)}))
    cpts = {node: np.full(structure.shape(node), 1 / structure.shape(node)[-1]) for node in structure.nodes}
    return dpbn.BayesianNetwork(structure, cpts)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.update({tag, *(name for name, _ in attrs if name.startswith("on"))})
        for name, value in attrs:
            if name in ("href", "src"):
                self.seen.add(f"{name}={value.partition(':')[0] if ':' in value else 'local'}")


def tags_of(labels, folder):
    network = labelled(labels)
    release = dpbn.learn(network.sample(30, seed=0), network, 1.0, method="uniform", noise=dpbn.InsecureNoise(0))
    page = write_report(release, folder / "x.html", title=labels[0])[0].read_text("utf-8")
    parser = Tags()
    parser.feed(page + (release._repr_html_() or ""))
    return parser.seen, page, release


def test_labels_are_text_in_report_notebook_and_files(tmp_path):
    plain = tags_of([f"label {i}" for i in range(70)], tmp_path)[0]
    for start in range(0, len(LABELS), 70):
        labels = LABELS[start : start + 70]
        seen, page, release = tags_of(labels, tmp_path)
        assert seen <= plain, seen - plain
        assert "\x1b" not in page and "\u202e" not in page and "\x00" not in page
        assert dpbn.load_release(release.save(tmp_path / "x.json")).network == release.network


def test_formulas_are_text_in_a_spreadsheet(tmp_path):
    labels = [label for label in LABELS if "\x00" not in label and "\r" not in label]
    network = labelled(labels)
    path = write_table(network.sample(3000, seed=0), tmp_path / "rows.csv")
    import csv

    with open(path, newline="", encoding="utf-8") as stream:
        cells = {cell for row in csv.reader(stream) for cell in row}
    assert len(cells) > 100
    assert not [cell for cell in cells if cell.startswith(FORMULA_STARTS)]


def test_traversals_reach_no_file_of_the_server():
    from starlette.testclient import TestClient

    from dpbn.web import create_app

    network = dpbn.load_network("cancer")
    release = dpbn.learn(network.sample(30, seed=0), network, 1.0, method="uniform", noise=dpbn.InsecureNoise(0))
    with TestClient(create_app(release), raise_server_exceptions=False) as client:
        for payload in TRAVERSALS:
            for path in (f"/assets/{payload}", f"/{payload.lstrip('/')}"):
                answer = client.get(path, headers={"host": "localhost"})
                assert answer.status_code in (400, 404, 405, 421), (path, answer.status_code)
                assert b"root:" not in answer.content and b"import " not in answer.content
                assert answer.headers["x-content-type-options"] == "nosniff"


def test_names_never_become_paths(tmp_path, monkeypatch):
    """Datasets, nodes, titles and bundled names with traversals: refused or kept as text; no file appears elsewhere."""
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    ledger = dpbn.Ledger("budget.db")
    for payload in TRAVERSALS[::5]:
        ledger.open_dataset(payload, 1)
        for load in (dpbn.load_network, dpbn.load_structure):
            try:
                load(payload)
            except DpbnError:
                continue
            raise AssertionError(payload)
        dpbn.write_network(dpbn.load_network("cancer"), f"{quote(payload, safe='')[:80]}.bif")
    labels = TRAVERSALS[:30]
    network = labelled(labels)
    release = dpbn.learn(network.sample(30, seed=0), network, 1.0, method="uniform", noise=dpbn.InsecureNoise(0))
    write_report(release, inside / "x.html", title=labels[3])
    assert {path.name for path in tmp_path.iterdir()} == {"inside"}
    assert set(ledger.datasets()) == set(TRAVERSALS[::5])
    assert json.loads((inside / "privacy.json").read_text())


@pytest.mark.parametrize("name", ["x\x00.json", "x" * 5000 + ".json", "\ud800.json"])
def test_impossible_file_names_are_refused(name, tmp_path):
    network = dpbn.load_network("cancer")
    for call in (
        lambda: dpbn.write_network(network, tmp_path / name),
        lambda: dpbn.load_network(str(tmp_path / name)),
        lambda: dpbn.load_release(tmp_path / name),
    ):
        with pytest.raises(DpbnError):
            call()
