"""The pages: reproduction and comparison at a very small size, and the claims checked both ways."""

import datetime
import re
from dataclasses import replace

import pandas
import pytest
from click.testing import CliRunner

from dpbn.cli import dpbn as command_line
from dpbn.evaluate import paper_figures as paper
from dpbn.evaluate.budget_order import BudgetOrder, asia_budget_order, rank_correlation
from dpbn.evaluate.claims import claims
from dpbn.evaluate.comparison import Size, compare
from dpbn.evaluate.pages import Heading, Points, Table, Text, write_pages
from dpbn.evaluate.reproduce import reproduce
from dpbn.evaluate.results import read_rows
from dpbn.evaluate.saving import Saving
from dpbn.evaluate.scaling import measure_cost
from dpbn.evaluate.synthetic import random_network

DAY = datetime.date(2020, 7, 13)
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction")
    results = folder / "results.parquet"
    return reproduce(folder, runs=2, networks=("asia",), rows=1000, results=results, today=DAY), results


def test_reproduction_writes_two_pages_that_say_the_same(reproduction):
    found, results = reproduction
    markdown, html = found.markdown.read_text("utf-8"), found.html.read_text("utf-8")
    for text in ("2020-07-13", "Table 1: MAP accuracy", "Table 2", "rank correlation", "2 runs", "Budget saving"):
        assert text in markdown
        assert text in html
    assert "![Parameter" in markdown
    assert (found.markdown.parent / re.search(r"\]\((figures/[^)]+\.svg)\)", markdown).group(1)).exists()
    assert html.count("<img") == markdown.count("![")
    assert 'src="http' not in html
    assert len(read_rows(results)) == len(found.rows) == 2 * (3 * 5 + 1 + 6)


def test_a_second_reproduction_only_writes(reproduction, monkeypatch):
    found, results = reproduction
    monkeypatch.setattr("dpbn.evaluate.experiments.perform", lambda task: pytest.fail("nothing was missing"))
    again = reproduce(found.markdown.parent, runs=2, networks=("asia",), rows=1000, results=results, today=DAY)
    assert again.claims == found.claims


def _summary(level):
    rows = []
    for network in paper.NETWORKS:
        for epsilon in paper.EPSILONS:
            for method in ("uniform", "icml2020", "optimized"):
                error = 0.3 if method == "uniform" else level[method]
                measures = dict.fromkeys(paper.PANELS, error / epsilon)
                rows.append(
                    {"network": network, "epsilon": epsilon, "method": method, **measures, "map_accuracy": 1 - error}
                )
    return pandas.DataFrame(rows)


@pytest.mark.parametrize("good", [True, False])
def test_claims_are_judged_by_the_figures(good):
    level = {"icml2020": 0.01 if good else 0.4, "optimized": 0.4 if good else 0.01}
    found = [
        Saving(network, 10, method, 1.0, measure, 3.1 if level[method] < 0.1 else 0.5, 0, 0)
        for network in paper.NETWORKS
        for method in level
        for measure in paper.PANELS
    ]
    order = paper.ASIA_ORDER if good else tuple(reversed(paper.ASIA_ORDER))
    orders = [BudgetOrder("printed", dict.fromkeys(order, 0.1), rank_correlation(order, paper.ASIA_ORDER))]
    checked = claims(_summary(level), found, orders, paper.NETWORKS)
    assert len(checked) == 9
    assert {claim.reproduces for claim in checked} == {good}
    assert {claim.holds for claim in checked if claim.holds is not None} == {not good}


def test_a_claim_tells_a_saving_beyond_the_curve_as_a_bound():
    savings = [
        Saving(network, 10, "optimized", 1.0, measure, factor, 0, 0, bound)
        for network in paper.NETWORKS
        for measure, factor, bound in (("row", 3.5, ""), ("query", 20.0, ">"))
    ]
    order = BudgetOrder("printed", dict.fromkeys(paper.ASIA_ORDER, 0.1), 1.0)
    level = {"icml2020": 0.4, "optimized": 0.01}
    told = {claim.printed: claim for claim in claims(_summary(level), savings, [order], paper.NETWORKS)}["3 times"]
    assert (told.default, told.holds) == ("3.50 to >20.00 times", True)
    assert (told.scheme, told.reproduces) == ("–", False)


def test_budget_order_on_asia_adds_up():
    order = asia_budget_order("printed", runs=2, rows=1000)
    assert sorted(order.order) == sorted(paper.ASIA_ORDER)
    assert sum(order.shares.values()) == pytest.approx(0.9)
    assert list(order.shares.values()) == sorted(order.shares.values(), reverse=True)
    assert -1 <= order.agreement <= 1
    assert rank_correlation(("a", "b", "c"), ("c", "b", "a")) == pytest.approx(-1)


def test_comparison_page(tmp_path):
    """Its figures have a style, which a notebook's own do not take on."""
    import matplotlib as mpl

    mpl.use("svg")
    before = dict(mpl.rcParams)
    size = Size(
        runs=2, sweep_runs=2, slow_runs=1, networks=("asia",), rows=500, rows_swept=(500, 2000), epsilons=(0.5, 1.0),
        slow=("priview",),
    )  # fmt: skip
    costs = [measure_cost("uniform", 10, 10_000), replace(measure_cost("uniform", 37, 1000), rows=1000)]
    page = compare(tmp_path, size=size, costs=costs, today=DAY)
    text = page.read_text("utf-8")
    for name in ("PriView", "HDMM", "D-Ind", "no privacy", "budget saving", "Time and memory"):
        assert name in text
    for figure in ("error-by-epsilon", "error-by-rows", "saving-asia", "cost"):
        assert (tmp_path / "figures" / f"{figure}.png").stat().st_size > 5000
        assert "<svg" in (tmp_path / "figures" / f"{figure}.svg").read_text("utf-8")
    assert dict(mpl.rcParams) == before


def test_pages_escape_what_they_are_given(tmp_path):
    text = Text("x < y & **z** `code` *so* 2 * 3 * 4")
    blocks = [Heading("A <b>", 1), text, Points(("<script>",)), Table(("a|b",), (("<td>",),))]
    markdown, html = write_pages(blocks, tmp_path, "page")
    assert "a\\|b" in markdown.read_text("utf-8")
    body = html.read_text("utf-8")
    assert "<script>" not in body
    assert "<strong>z</strong> <code>code</code> <em>so</em> 2 * 3 * 4" in body


def test_random_networks_are_reproducible_and_bounded():
    network = random_network(40, 3)
    assert network == random_network(40, 3)
    assert max(len(network.parents(node)) for node in network.nodes) <= 3
    assert {len(network.states(node)) for node in network.nodes} <= {2, 3, 4}


def test_the_command_writes_rows_and_prints_means(tmp_path):
    output = tmp_path / "results.csv"
    arguments = ["evaluate", "--networks", "asia", "--methods", "exact,uniform", "--epsilons", "1", "--rows", "300"]
    result = CliRunner().invoke(
        command_line, [*arguments, "--runs", "1", "--queries", "4", "--processes", "1", "-o", str(output)]
    )
    assert result.exit_code == 0, result.output
    assert len(read_rows(output)) == 2
    assert "uniform" in result.output


def test_the_command_refuses_what_is_not_a_list_of_numbers():
    assert CliRunner().invoke(command_line, ["evaluate", "--epsilons", "one"]).exit_code == 2
