"""CPTs whose rows are not all told apart: which parents are left out, and that all else knows of it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn import Dag, Schema, Structure, Variable
from dpbn.errors import FormatError
from dpbn.evaluate.baselines.common import experiment_curator
from dpbn.learners import coarse
from dpbn.learners.coarse import as_told, narrowed, noise_to_signal, plan_coarse, widened
from dpbn.learners.groups import deviations, plan_groups
from dpbn.learners.optimized import learn_optimized
from dpbn.support import row_support, supports
from dpbn.uncertainty.simulate import simulated
from tests.structures import structures


def variable(name, size):
    return Variable(name, tuple(f"s{state}" for state in range(size)))


SIZES = {"small": 2, "large": 30, "wide": 20, "child": 5}
SCHEMA = Schema(tuple(variable(name, size) for name, size in SIZES.items()))
STRUCTURE = Structure(SCHEMA, Dag(tuple(SIZES), {"child": ("large", "small", "wide")}))


def network(seed=0):
    generator = np.random.default_rng(seed)
    cpts = {node: generator.dirichlet(np.ones(shape[-1]), shape[:-1]) for node, shape in shapes()}
    return dpbn.BayesianNetwork(STRUCTURE, cpts)


def shapes():
    return [(node, STRUCTURE.shape(node)) for node in STRUCTURE.nodes]


def planner(signal, public=()):
    """As `optimized` plans noise drawn together."""

    def plan(structure):
        groups = plan_groups(structure, signal, public)
        return groups, noise_to_signal(structure, deviations(structure.schema, groups), signal)

    return plan


def tables_of(plan):
    return [names for group in plan.groups for names in group]


@pytest.mark.parametrize(
    ("signal", "kept"),
    [(1e7, ("large", "small", "wide")), (100.0, ("small", "wide")), (5.0, ("small",)), (1e-3, ())],
)
def test_the_largest_parents_are_left_out_first_and_only_where_noise_drowns_the_family(signal, kept):
    told = as_told(STRUCTURE, tables_of(plan_coarse(STRUCTURE, planner(signal)).plan), STRUCTURE.nodes)
    assert told.parents("child") == kept


@given(structures(), st.sampled_from([1e-3, 10.0, 1e3, 1e9]))
@settings(deadline=None, max_examples=50)
def test_every_node_is_measured_and_what_is_kept_is_not_hopeless(structure, signal):
    found = plan_coarse(structure, planner(signal))
    plan, told = found.plan, found.structure
    assert sum(plan.shares) == pytest.approx(1.0)
    for node, ratio in found.ratios.items():
        assert ratio <= coarse.HOPELESS or not told.parents(node)
        assert set(told.parents(node)) <= set(structure.parents(node))
    if told == structure:
        assert plan == plan_groups(structure, signal)


def test_noise_to_signal_is_that_of_the_noise_drawn():
    """One table over two variables of 2 and 3 states at all of the budget: Laplace noise of scale 1/epsilon."""
    schema = Schema((variable("a", 2), variable("b", 3)))
    structure = Structure(schema, Dag(("a", "b"), {"b": ("a",)}))
    _, ratios = planner(100.0)(structure)
    assert ratios["b"] == pytest.approx(np.sqrt(2.0) / (100.0 / 6))
    assert ratios["a"] == pytest.approx(np.sqrt(2.0 * 3) / (100.0 / 2))


def test_nodes_that_are_fixed_or_public_keep_their_parents():
    assert plan_coarse(STRUCTURE, planner(100.0), ["child"]).structure == STRUCTURE
    found = plan_coarse(STRUCTURE, planner(100.0, ["child"]), ["child"])
    assert found.structure == STRUCTURE and not any("child" in names for names in tables_of(found.plan))


def test_what_is_told_is_read_off_the_tables():
    assert as_told(STRUCTURE, [("child", "large", "small", "wide")], STRUCTURE.nodes) is STRUCTURE
    some = as_told(STRUCTURE, [("child", "small"), ("child", "wide"), ("large", "small")], STRUCTURE.nodes)
    assert some.parents("child") == ("wide",)  # of the tables with the child the one that tells most
    assert as_told(STRUCTURE, [("child",)], ["small"]).parents("child") == STRUCTURE.parents("child")


def test_rows_that_become_one_and_are_many_again():
    told = as_told(STRUCTURE, [("child", "wide")], ["child"])
    cpt = np.random.default_rng(0).random((7, 20, 5))
    wide = widened(STRUCTURE, told, {"child": cpt})["child"]
    assert wide.shape == (7, 30, 2, 20, 5)
    assert (wide == cpt[:, None, None]).all()
    prior = np.random.default_rng(1).random((30, 2, 20, 5))
    np.testing.assert_allclose(narrowed(STRUCTURE, told, {"child": prior})["child"], prior.mean(axis=(0, 1)))


@pytest.fixture(scope="module")
def release():
    return dpbn.learn(network().sample(1000, seed=1), STRUCTURE, 0.1, noise=dpbn.InsecureNoise(2))


def test_a_release_tells_which_parents_were_left_out(release):
    found = supports(STRUCTURE, release.measurements)["child"]
    assert found.left_out and found.below_floor.all() and found.reliability == "poor"
    assert found.counts.shape == (30, 2, 20)
    assert found.counts.sum() == pytest.approx(1000, abs=1000)
    for axis, name in enumerate(STRUCTURE.parents("child")):
        assert (np.ptp(release.network.cpt("child"), axis=axis) == 0).all() == (name in found.left_out)
    assert set(release.allocation) == set(STRUCTURE.nodes)
    assert release.weak_rows["child"].all()
    assert row_support(STRUCTURE, release.measurements, "small").left_out == ()


def test_error_bars_allow_for_what_was_left_out(release):
    """The truth of rows that are not told apart may be anything; what they are together is known."""
    ask, wide = dpbn.Inference(release), {}
    for observed in (None, {"large": "s3", "small": "s1", "wide": "s4"}):
        low, high = ask.query("child", observed).interval(0.9)
        wide[observed is None] = (high - low).mean()
    assert wide[False] > 1.3 * wide[True]


def test_the_report_says_it(release, tmp_path):
    path = release.save(tmp_path / "x.release.json")
    again = dpbn.load_release(path)
    assert again.id == release.id
    from dpbn.report import write_report

    page = write_report(again, tmp_path / "report.html", intervals=False)[0].read_text("utf-8")
    assert "The same whatever the states of" in page


def test_a_custodians_pseudo_counts_for_single_rows_keep_the_family_whole():
    """Those that are the same for all rows do not."""
    source = simulated(network(), 1000, 3)
    rows = np.ones((30, 2, 20, 5))
    rows[0] = 50.0
    for prior, whole in ((rows, True), (np.ones((30, 2, 20, 5)), False)):
        learned = learn_optimized(STRUCTURE, experiment_curator(source, 0.1, 4), prior={"child": prior}, public_cpts={})
        names = [set(table["names"]) for table in learned.details["tables"]]
        assert any(set(STRUCTURE.family("child").names) <= its for its in names) == whole
        assert learned.cpts["child"].shape == (30, 2, 20, 5)


def test_a_file_that_tells_more_than_was_measured_is_refused(tmp_path):
    made = dpbn.learn(network().sample(200, seed=1), STRUCTURE, 0.1)
    document = json.loads(made.save(tmp_path / "x.json").read_text())
    assert supports(STRUCTURE, made.measurements)["child"].left_out
    cpt = np.array(document["network"]["cpts"]["child"])
    cpt[3, 1, 2] = [0.9, 0.025, 0.025, 0.025, 0.025]
    document["network"]["cpts"]["child"] = cpt.tolist()
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(document))
    with pytest.raises(FormatError, match="CPT of 'child' in a private release must be the same for all states of"):
        dpbn.load_release(path)


def test_leaving_parents_out_pays_where_noise_drowns_the_family(monkeypatch):
    """One family of 6,000 cells and 3,000 rows at a tenth of epsilon."""
    errors = {}
    usual = coarse.HOPELESS
    monkeypatch.setattr(coarse, "DOUBTFUL", np.inf)  # no look: it would take part of epsilon
    for hopeless in (usual, np.inf):
        monkeypatch.setattr(coarse, "HOPELESS", hopeless)
        found = []
        for seed in range(10):
            true = network(seed)
            curator = experiment_curator(simulated(true, 3000, seed), 0.1, 100 + seed)
            cpts = learn_optimized(STRUCTURE, curator, prior={}, public_cpts={}).cpts
            found.append(np.abs(cpts["child"] - true.cpt("child")).sum(axis=-1).mean())
        errors[hopeless] = np.mean(found)
    assert errors[usual] < 0.99 * errors[np.inf]
