"""A look at how full the cells of families are, before parents are left out: when, at what cost, and what follows."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn import BayesianNetwork, Dag, Schema, Structure, load_network
from dpbn.errors import PrivacyError
from dpbn.evaluate.baselines.common import experiment_curator
from dpbn.learners import coarse, optimized
from dpbn.learners.coarse import Doubt, as_told, doubtful, plan_coarse
from dpbn.learners.optimized import learn_optimized, measure_once, measure_with_delta
from dpbn.privacy.guarantee import Budget
from dpbn.privacy.noise import LARGEST_COUNT
from dpbn.release import to_dict
from dpbn.report import write_report
from dpbn.uncertainty.simulate import simulated
from dpbn.workload import Query
from tests.learners.test_coarse import planner, variable
from tests.structures import structures

PARENTS, CHILDREN = ("p0", "p1", "p2"), tuple(f"c{index}" for index in range(6))
STRUCTURE = Structure(
    Schema(tuple(variable(name, 5) for name in (*PARENTS, *CHILDREN))),
    Dag((*PARENTS, *CHILDREN), dict.fromkeys(CHILDREN, PARENTS)),
)


def network(parameter, seed=0):
    """CPT rows from Dirichlet distributions: nearly certain below 0.1, even beyond 3."""
    generator = np.random.default_rng(seed)
    return BayesianNetwork(
        STRUCTURE,
        {v: generator.dirichlet(np.full(5, parameter), STRUCTURE.shape(v)[:-1]) for v in STRUCTURE.nodes},
    )


def learned(true, epsilon=1.0, seed=0, rows=400, **options):
    curator = experiment_curator(simulated(true, rows, seed), epsilon, seed)
    made = learn_optimized(true.structure, curator, prior={}, public_cpts={}, **options)
    told = as_told(true.structure, [m.names for m in curator.measurements], true.structure.nodes)
    return curator, made, sum(len(told.parents(node)) for node in CHILDREN)


def test_records_in_few_cells_keep_parents_that_records_in_many_lose():
    kept = {parameter: [learned(network(parameter, s), seed=s)[2] for s in range(5)] for parameter in (0.05, 5.0)}
    assert np.mean(kept[0.05]) > np.mean(kept[5.0]) + 3, kept
    assert min(kept[0.05]) == len(PARENTS) * len(CHILDREN)


def test_it_pays_where_the_records_are_spread(monkeypatch):
    errors = {}
    for least in (np.inf, coarse.DOUBTFUL):
        monkeypatch.setattr(coarse, "DOUBTFUL", least)
        found = []
        for seed in range(8):
            true = network(5.0, seed)
            cpts = learned(true, seed=seed)[1].cpts
            found.append(np.mean([np.abs(cpts[v] - true.cpt(v)).sum(axis=-1).mean() for v in true.nodes]))
        errors[least] = np.mean(found)
    assert errors[coarse.DOUBTFUL] < 0.97 * errors[np.inf], errors


def test_with_delta_parents_are_left_out_as_well():
    """Tables apart, with Gaussian or summed noise: one count or two, a look, then all tables at once."""
    kept = {parameter: [] for parameter in (0.02, 5.0)}
    for parameter, all_kept in kept.items():
        for seed in range(4):
            curator = experiment_curator(simulated(network(parameter, seed), 150, seed), 1.0, seed, delta=1e-6)
            measure_with_delta(STRUCTURE, curator, (), None, ())
            counts = [m for m in curator.measurements if m.stage == "count"]
            tables = [m for m in curator.measurements if m.stage == "tables"]
            assert {m.mechanism for m in counts} == {"laplace"} and len(counts) in (1, 2) and len(curator.looks) == 1
            assert {m.mechanism for m in tables} <= {"gaussian", "summed"}
            assert 0.999 < curator.spent <= 1.0
            told = as_told(STRUCTURE, [m.names for m in tables], STRUCTURE.nodes)
            all_kept.append(sum(len(told.parents(node)) for node in CHILDREN))
    assert np.mean(kept[0.02]) > np.mean(kept[5.0]) + 3, kept


def test_a_rough_count_is_made_again():
    def scales(rows):
        return [m.scale for m in learned(network(1.0), rows=rows)[0].measurements if m.stage == "count"]

    assert scales(100_000) == [pytest.approx(500.0)]
    assert scales(300) == [pytest.approx(500.0), pytest.approx(100.2, rel=1e-3)]


def test_what_is_seen_is_the_records_that_stand_out():
    source = simulated(network(0.5), 800, 1)
    curator = experiment_curator(source, 1.0, 0)
    learn_optimized(STRUCTURE, curator, prior={}, public_cpts={})
    (looked,) = curator.looks
    counts = source.counts(looked.look.tables)
    pairs = zip(looked.look.tables, looked.look.caps, strict=True)
    true = sum(int(np.maximum(counts[names] - cap, 0).sum()) for names, cap in pairs)
    assert abs(looked.value - true) < 12 * looked.look.scale
    assert looked.loss == pytest.approx(15.0 / 800, rel=0.2)
    assert looked.look.scale == pytest.approx(len(looked.look.tables) / looked.loss)


@given(st.floats(-3, 5), st.lists(st.floats(3.01, 1e9), min_size=1, max_size=9))
@settings(deadline=None)
def test_the_limit_rises_with_what_stands_out(out, ratios):
    doubt = Doubt((("x",),) * len(ratios), (8,) * len(ratios), tuple(ratios))
    assert coarse.CLEAR <= doubt.limit(out) <= doubt.limit(out + 0.1) <= coarse.HOPELESS
    assert all(1 <= cap <= LARGEST_COUNT for cap in doubt.look(1e18, 1.0).caps)


@pytest.mark.parametrize(("rows", "epsilon", "part"), [(400, 0.05, 0.02), (400, 20.0, 0.002)])
def test_its_part_of_epsilon_has_bounds(rows, epsilon, part, monkeypatch):
    monkeypatch.setattr(coarse, "DOUBTFUL", 0.0)
    monkeypatch.setattr(coarse, "HOPELESS", 1e6)  # so that something is in doubt at every size
    made = experiment_curator(simulated(network(0.5), rows, 0), epsilon, 0)
    measure_once(STRUCTURE, made, {}, None)
    assert made.looks[0].loss == pytest.approx(part * epsilon, rel=0.013)


def test_nodes_that_are_public_or_keep_their_parents_are_not_looked_at_nor_left_out():
    true, some = network(5.0), CHILDREN[:3]
    for public, whole in (({v: true.cpt(v) for v in some}, ()), ({}, some)):
        made = experiment_curator(simulated(true, 400, 0), 1.0, 0)
        tables = measure_once(STRUCTURE, made, public, None, whole)
        (looked,) = made.looks
        assert {names[-1] for names in looked.look.tables} == set(CHILDREN[3:])
        told = as_told(STRUCTURE, [m.names for m in tables], STRUCTURE.nodes)
        if whole:
            assert all(told.parents(v) == PARENTS for v in some)
            assert any(told.parents(v) != PARENTS for v in CHILDREN[3:])
        else:
            assert not any(v in m.names for m in tables for v in some)


def test_roots_are_not_looked_at():
    structure = Structure(Schema((variable("a", 30), variable("b", 30))), Dag(("a", "b"), {}))
    found = plan_coarse(structure, planner(20.0))
    assert max(found.ratios.values()) > coarse.DOUBTFUL and doubtful(found) == Doubt((), (), ())


def test_a_cap_is_one_deviation():
    assert Doubt((("x", "y"),), (10,), (4.0,)).look(500.0, 1.0).caps == (200,)


def test_the_last_parent_is_kept_up_to_the_limit_if_that_is_higher():
    structure = Structure(Schema((variable("a", 4), variable("b", 4))), Dag(("a", "b"), {"b": ("a",)}))
    ratio = plan_coarse(structure, planner(2.0), ["b"]).ratios["b"]
    assert coarse.LAST < ratio < coarse.HOPELESS
    for limit, kept in ((ratio + 1, True), (ratio - 1, False), (coarse.DOUBTFUL, False)):
        assert bool(plan_coarse(structure, planner(2.0), limit=limit).structure.parents("b")) == kept


def test_alike_nodes_count_as_a_quarter_sharing():
    copies = tuple(f"d{index}" for index in range(16))
    binary = tuple(variable(name, 2) for name in ("a", "b", "d", *copies))
    parents = {"d": ("c",), **dict.fromkeys(copies, ("a", "b"))}
    mixed = Structure(Schema((*binary, variable("c", 4))), Dag(("a", "b", "c", "d", *copies), parents))
    shared = coarse._shared_noise(mixed, dict.fromkeys(mixed.nodes, 6.0))
    assert shared["d0"] == pytest.approx(3.0)
    assert shared["d"] == 6.0  # as many cells, another shape


def test_what_noise_with_delta_cannot_do_after_the_count_laplace_noise_does(monkeypatch):
    """Searches for noise that aim too high: refused before any draw, and nothing is lost."""
    usual = optimized.with_delta
    for failing in (lambda plan, budget, s: usual(plan, Budget(2.0 * budget.epsilon, budget.delta), s), refuse):
        monkeypatch.setattr(optimized, "with_delta", failing)
        curator = experiment_curator(simulated(network(1.0), 400, 0), 1.0, 0, delta=1e-6)
        tables = measure_with_delta(STRUCTURE, curator, (), None, ())
        assert {m.mechanism for m in tables} == {"laplace"} and 0.999 < curator.spent <= 1.0


def refuse(*_):
    raise PrivacyError("no noise")


def test_the_limit_is_where_three_quarters_are_drowned():
    """If the part drowned is r / (r + 2.3), it is 3/4 at r = 6.9."""
    ratios = (4.0, 8.0, 20.0)
    doubt = Doubt((("x",),) * 3, (8,) * 3, ratios)
    assert doubt.limit(np.mean([2.3 / (r + 2.3) for r in ratios])) == pytest.approx(6.9, rel=1e-6)
    assert doubt.limit(0.0) == coarse.CLEAR and doubt.limit(1.0) == coarse.HOPELESS


def test_a_node_keeps_its_last_parent_longer_and_nodes_of_one_shape_all_of_theirs():
    schema = Schema(tuple(variable(name, size) for name, size in {"a": 4, "b": 4, "c": 4, "d": 4}.items()))
    structure = Structure(schema, Dag(tuple("abcd"), {"b": ("a",), "d": ("a", "c")}))

    def parents(structure, signal, limit):
        return plan_coarse(structure, planner(signal), limit=limit).structure.dag.parents

    ratios = plan_coarse(structure, planner(13.0)).ratios
    assert coarse.DOUBTFUL < ratios["b"] < coarse.LAST
    assert parents(structure, 13.0, coarse.DOUBTFUL)["b"] == ("a",)
    assert parents(structure, 20.0, coarse.DOUBTFUL)["d"] != parents(structure, 20.0, math.inf)["d"] == ("a", "c")
    copies = tuple(f"d{index}" for index in range(100))
    many = Structure(
        Schema((*schema, *(variable(name, 4) for name in copies))),
        Dag((*"abcd", *copies), {"b": ("a",), "d": ("a", "c"), **dict.fromkeys(copies, ("a", "c"))}),
    )
    assert coarse.DOUBTFUL < plan_coarse(many, planner(1000.0)).ratios["d0"] < coarse.HOPELESS
    assert parents(many, 1000.0, coarse.DOUBTFUL)["d0"] == ("a", "c")


def test_nobody_looks_where_nothing_is_in_doubt():
    for name in ("asia", "sachs", "child", "alarm"):
        true = load_network(name)
        curator = experiment_curator(simulated(true, 10_000, 0), 1.0, 0)
        learn_optimized(true.structure, curator, prior={}, public_cpts={})
        assert curator.looks == ()
    with_questions = learned(network(1.0), workload=(Query(("c0",)),))[0]
    assert with_questions.looks == ()
    assert learned(network(1.0))[0].looks != ()


@given(
    structures(),
    st.sampled_from([1e-4, 0.1, 1.0, 10.0]),
    st.sampled_from([0.0, 1e-9, 0.1]),
    st.integers(0, 60),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=60)
def test_within_the_budget_whatever_the_count_turns_out_to_be(structure, epsilon, delta, rows, contributions):
    generator = np.random.default_rng(rows)
    cpts = {v: generator.dirichlet(np.ones(structure.shape(v)[-1]), structure.shape(v)[:-1]) for v in structure.nodes}
    table = BayesianNetwork(structure, cpts).sample(rows, seed=1).assign(who=1)
    options = {"unit": "who", "max_contributions": contributions, "neighbors": "replace"}
    made = dpbn.learn(table, structure, epsilon, delta, **options)
    assert made.private and made.guarantee.epsilon <= epsilon and made.guarantee.delta <= delta
    for looked in made.looks:
        assert looked.loss * looked.look.scale >= contributions * len(looked.look.tables) * (1 - 1e-12)


def test_doubtful_families_are_the_ones_in_between():
    found = plan_coarse(STRUCTURE, planner(400.0))
    doubt = doubtful(found)
    assert {names[-1] for names in doubt.families} == {v for v in CHILDREN if found.ratios[v] > coarse.DOUBTFUL}
    assert set(doubt.ratios) <= set(found.ratios.values()) and 5**4 in doubt.cells
    assert doubtful(found, CHILDREN) == Doubt((), (), ())


def test_nothing_is_planned_twice(monkeypatch):
    usual, planned = optimized.plan_groups, []
    monkeypatch.setattr(optimized, "plan_groups", lambda told, *rest: planned.append(told) or usual(told, *rest))
    assert learned(network(0.5))[0].looks and len(set(planned)) == len(planned)


def test_a_release_names_its_look(tmp_path):
    made = dpbn.learn(network(5.0).sample(400, seed=1), STRUCTURE, 1.0, noise=dpbn.InsecureNoise(0))
    (looked,) = made.looks
    path = made.save(tmp_path / "x.json")
    again = dpbn.load_release(path)
    assert again.id == made.id and again.looks == made.looks
    told = f"one number that tells how sparse {len(looked.look.tables)} tables would be"
    assert f"Discrete Laplace noise on the number of records (twice) and {told}, and integer noise" in made.statement
    assert "The noisy tables and numbers are in the file" in made.statement
    several = replace(made, looks=(looked, looked)).statement
    assert f"2 numbers that tell how sparse {2 * len(looked.look.tables)} tables would be" in several
    assert "No noise was drawn" not in replace(made, measurements=()).statement
    less = dpbn.learn(load_network("cancer").sample(20_000, seed=0), load_network("cancer"), 1.0)
    assert "noise on the number of records" in less.statement and "(twice)" not in less.statement
    assert "looks" not in to_dict(less)  # so that it has the id it always had
    write_report(again, tmp_path / "x.html", intervals=False)
    document = json.loads((tmp_path / "privacy.json").read_text())
    assert [look["loss"] for look in document["looks"]] == [looked.loss]
    groups = {t["noise_group"] or index: t["loss"] for index, t in enumerate(document["tables"])}
    assert sum(groups.values()) + looked.loss == pytest.approx(made.guarantee.epsilon)
    low, high = dpbn.Inference(again).query("c0").interval(0.9)
    assert (low < high).all()
