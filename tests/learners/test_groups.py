"""Tables whose noise is drawn together: what stands in for a Laplace table, how shares are found, what is chosen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from dpbn import learn, load_network
from dpbn.domain import Schema, Variable
from dpbn.graph import Dag
from dpbn.learners import groups as groups_module
from dpbn.learners.groups import equivalents, plan_groups, saturating_shares
from dpbn.learners.optimized import can_share, learn_optimized
from dpbn.learners.strategy import LARGEST_MERGED, plan_tables
from dpbn.measure import Curator
from dpbn.measurement import total_loss
from dpbn.network import MAX_TABLE_AXES, Structure, check_cells
from dpbn.privacy import joint
from dpbn.privacy.blocks import common_names
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.joint import check_joint
from dpbn.privacy.noise import InsecureNoise
from dpbn.uncertainty.simulate import simulated
from tests.structures import structure_of, structures


@pytest.mark.parametrize(
    "sizes", [(2, 2), (2, 2, 2, 2), (3, 3), (2, 6, 4, 3, 4, 3, 3), (6, 6, 6), (16, 24), (3,) * 17, (1, 4, 5)], ids=str
)
def test_equivalents_have_the_variance_of_the_joint_noise(sizes):
    """A Laplace table with share e of epsilon 1/scale has cell variance 2 (scale/e)^2."""
    scale = 200.0  # large, so that whole numbers do not matter
    _, cells = joint.moments(sizes, scale)
    assert equivalents(sizes) == pytest.approx([math.sqrt(2 * scale**2 / cell) for cell in cells], rel=0.04)
    assert sum(equivalents(sizes)) > 1


def test_one_table_is_a_laplace_table():
    assert equivalents((7,)) == (1.0,)


def test_shares_equal_a_numeric_optimiser():
    generator = np.random.default_rng(5)
    owner = np.repeat(np.arange(6), 3)
    weight, half = generator.uniform(0.5, 2, 18), generator.uniform(0.01, 0.6, 18)
    error, shares = saturating_shares(weight, half, owner, 6)

    def objective(logits: np.ndarray) -> float:
        e = np.exp(logits) / np.exp(logits).sum()
        return float((weight * half / (half + e[owner])).sum())

    found = optimize.minimize(objective, np.zeros(6), tol=1e-12)
    assert error == pytest.approx(found.fun, rel=1e-4)
    assert error == pytest.approx(objective(np.log(shares)))


def test_what_looks_hopeless_keeps_part_of_its_share():
    """Without a limit the shares would be in proportion to the roots 0.1, 0.2 and 10; what one loses the others get."""
    _, shares = saturating_shares(np.ones(3), np.array([0.01, 0.04, 100.0]), np.arange(3), 3)
    clear = np.array([0.1, 0.2, 10.0]) / 10.3
    assert shares[2] == pytest.approx(groups_module.KEEP * clear[2], rel=0.02)
    assert (shares[:2] > clear[:2]).all()


@given(structures(), st.sampled_from([1e-3, 10.0, 1e4, 1e9]))
@settings(deadline=None, max_examples=50)
def test_every_family_is_inside_a_table_and_shares_sum_to_one(structure, signal):
    plan = plan_groups(structure, signal)
    tables = [names for group in plan.groups for names in group]
    assert len(set(tables)) == len(tables)
    for node in structure.nodes:
        assert any(set(structure.family(node).names) <= set(names) for names in tables)
    assert sum(plan.shares) == pytest.approx(1.0)
    assert min(plan.shares) > 0
    assert plan == plan_groups(structure, signal)


def test_tables_with_a_common_parent_are_drawn_together():
    """A naive Bayes model of one class and eight binary features: every feature's family in one group."""
    names = ("class", *(f"x{k}" for k in range(8)))
    structure = structure_of(dict.fromkeys(names, 2), dict.fromkeys(names[1:], ("class",)))
    plan = plan_groups(structure, 1e4)
    assert max(map(len, plan.groups)) > 1
    families = [{"class", name} for name in names[1:]]
    assert all(any(family <= set(table) for group in plan.groups for table in group) for family in families)


def test_tables_without_a_common_name_are_drawn_together_too():
    """Six binary variables apart: together each has the noise of a third of the budget, alone that of a sixth."""
    names = tuple("abcdef")
    plan = plan_groups(structure_of(dict.fromkeys(names, 2), {}), 1e4)
    assert plan.groups == (tuple((name,) for name in names),) and plan.shares == (1.0,)
    assert min(equivalents((2,) * 6)) > 2 / 6


@pytest.mark.parametrize("name", ["asia", "child", "sachs"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("signal", [100.0, 1e12])
def test_where_errors_have_no_limit_no_other_split_has_a_smaller_sum(name, weighted, signal, monkeypatch):
    monkeypatch.setattr(groups_module, "NOISE", 1e-9)
    structure = load_network(name).structure
    schema = structure.schema
    weights = {node: 1.0 + index % 3 if weighted else 1.0 for index, node in enumerate(structure.nodes)}
    plan = plan_groups(structure, signal, weights=weights)
    places = {}  # of every table: its group, and its part of the group's share
    for index, group in enumerate(plan.groups):
        common = schema.cells(set.intersection(*map(set, group)))
        parts = equivalents(tuple(schema.cells(names) // common for names in group))
        places |= {names: (index, part) for names, part in zip(group, parts, strict=True)}

    def error(shares):
        total = 0.0
        for node in structure.nodes:
            family = structure.family(node).names
            home = min((names for names in places if set(family) <= set(names)), key=lambda n: (schema.cells(n), n))
            index, part = places[home]
            cells = schema.cells(family)
            counts = (1 / (1 / cells + 1 / (2 * math.sqrt(signal)))) ** 0.8
            read = (schema.cells(home) / cells) ** (0.35 if len(family) > 1 else 0.42)
            total += weights[node] * counts * read / (part * shares[index])
        return total

    best = error(plan.shares)
    assert name == "asia" or len(plan.groups) > 1
    for one, other in itertools.permutations(range(len(plan.groups)), 2):
        moved = list(plan.shares)
        moved[one] *= 0.98
        moved[other] += plan.shares[one] - moved[one]
        assert error(moved) > best


def _tables(plan):
    return {frozenset(names) for group in plan.groups for names in group}


def _layers(width: int, depth: int) -> Structure:
    """Binary nodes in layers, each with two parents in the layer before."""
    parents = {
        f"x{layer}_{place}": (f"x{layer - 1}_{place}", f"x{layer - 1}_{(place + 1) % width}") if layer else ()
        for layer in range(depth)
        for place in range(width)
    }
    return structure_of(dict.fromkeys(parents, 2), parents)


def test_fewer_tables_merge_where_drawing_them_together_is_predicted_to_be_better(monkeypatch):
    structure = _layers(10, 3)
    chosen = plan_groups(structure, 1e4)
    monkeypatch.setattr(groups_module, "LESS_MERGED", ())
    merged = plan_groups(structure, 1e4)
    assert len(_tables(chosen)) > len(_tables(merged))
    assert all(any(small <= large for large in _tables(merged)) for small in _tables(chosen))


@pytest.mark.parametrize("name", ["asia", "sachs", "child", "alarm"])
def test_a_small_difference_in_prediction_does_not_undo_a_merge(name, monkeypatch):
    structure = load_network(name).structure
    chosen = [plan_groups(structure, signal) for signal in (1e3, 1e4, 1e5)]
    monkeypatch.setattr(groups_module, "LESS_MERGED", ())
    assert chosen == [plan_groups(structure, signal) for signal in (1e3, 1e4, 1e5)]


def test_nodes_in_large_tables_keep_their_own_when_fewer_tables_merge(monkeypatch):
    """What is predicted must be comparable: the margins that count are those of the tables as usually merged."""
    monkeypatch.setattr("dpbn.learners.strategy.LARGE", 40)
    structure = _layers(5, 4)
    chosen = _tables(plan_groups(structure, 1e4))
    monkeypatch.setattr(groups_module, "LESS_MERGED", ())
    usual = _tables(plan_groups(structure, 1e4))
    own = {names for names in usual if len(names) == 1}
    assert chosen != usual and own and own <= chosen


def test_with_few_rows_roots_in_large_tables_get_tables_of_their_own():
    structure = load_network("alarm").structure
    few, many = (
        {names for group in plan_groups(structure, signal).groups for names in group} for signal in (300.0, 1e7)
    )
    roots = [node for node in structure.nodes if not structure.parents(node)]
    assert sum((root,) in few for root in roots) > sum((root,) in many for root in roots)


def test_nothing_is_spent_on_public_roots():
    structure = load_network("alarm").structure
    roots = [node for node in structure.nodes if not structure.parents(node)]
    assert any((root,) in group for group in plan_groups(structure, 300.0).groups for root in roots)
    assert not any((root,) in group for group in plan_groups(structure, 300.0, public=roots).groups for root in roots)
    apart = structure_of({"a": 2, "b": 2}, {})
    assert plan_groups(apart, 100.0, public=["a"]).groups == ((("b",),),)


def test_a_family_that_is_hopeless_does_not_choose_between_plans():
    """Beyond LARGE cells the predicted error does not grow, so twice the cells change nothing."""
    errors = []
    for states in (40, 80):
        structure = structure_of({"a": 40, "b": states, "c": 2}, {"b": ("a",)})
        errors.append(groups_module.clear_error(structure, [["ab"], ["c"], ["a"]], [0.5, 0.3, 0.2]))
    assert errors[0] == pytest.approx(errors[1])


def test_weights_move_the_budget():
    structure = load_network("alarm").structure
    weights = dict.fromkeys(structure.nodes, 1e-6) | {"HR": 1.0}
    plan = plan_groups(structure, 1e4, weights=weights)
    family = set(structure.family("HR").names)
    share = sum(
        s for group, s in zip(plan.groups, plan.shares, strict=True) if any(family <= set(names) for names in group)
    )
    assert share > 0.5


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 0.05, 1e4])
def test_any_budget_any_count_of_rows(epsilon):
    """A budget too small for joint noise takes tables with noise of their own; no count makes the rest fail."""
    network = load_network("child")
    curator = Curator(simulated(network, 50, 1), InsecureNoise(1), Budget(epsilon), Sensitivity())
    learned = learn_optimized(network.structure, curator, prior={}, public_cpts={})
    drawn = {m.mechanism for m in curator.measurements}
    assert ("joint" in drawn) == groups_module.can_draw(network.structure, 0.99 * epsilon, 1)
    assert all((cpt > 0).all() for cpt in learned.cpts.values())


@pytest.mark.parametrize("epsilon", [1e105, 1e305])
def test_a_budget_beyond_all_reason_is_shared_too(epsilon):
    """The count of rows is charged for by then: what comes after must not fail."""
    network = load_network("asia")
    curator = Curator(simulated(network, 50_000, 1), InsecureNoise(1), Budget(epsilon), Sensitivity())
    learned = learn_optimized(network.structure, curator, prior={}, public_cpts={})
    assert all(np.isfinite(cpt).all() for cpt in learned.cpts.values())


def test_tables_near_the_limit_of_cells_are_chosen_without_a_count():
    """Merging adds cells, and how much of it pays depends on the count: too late to refuse."""
    names = tuple(f"x{k}" for k in range(20))
    sizes = dict.fromkeys(names, 3161)  # ten families of 3161 * 3161 cells are just below 10^8
    parents = {name: (names[k - 1],) if k % 2 else () for k, name in enumerate(names)}
    nearly_full = structure_of(sizes, parents)
    check_cells(nearly_full)
    assert not groups_module.can_draw(nearly_full, 1.0, 1)
    half = structure_of(*({name: its[name] for name in names[:10]} for its in (sizes, parents)))
    assert groups_module.can_draw(half, 1.0, 1)
    shared = [can_share(structure, Budget(1.0, 1e-6), Sensitivity(), ()) for structure in (nearly_full, half)]
    assert shared == [False, True]


def test_states_that_never_vary_do_not_pile_up_axes():
    """Tables of variables with one state are small however many they name; arrays have only so many axes."""
    parents = {f"c{c}": ("r", *(f"p{c}_{k}" for k in range(25))) for c in range(6)}
    roots = ("r", *(name for its in parents.values() for name in its[1:]))
    names = (*roots, *parents)
    states = {name: ("x",) if name.startswith("p") else ("a", "b") for name in names}
    schema = Schema(tuple(Variable(name, states[name]) for name in names))
    structure = Structure(schema, Dag(names, dict.fromkeys(roots, ()) | parents))
    generator = np.random.default_rng(2)
    frame = pd.DataFrame({name: generator.choice(states[name], 300) for name in names})
    for method in ("optimized", "uniform"):
        release = learn(frame, structure, 1.0, method=method)
        assert max(len(m.names) for m in release.measurements) <= MAX_TABLE_AXES


def test_the_whole_budget_is_spent_and_no_more():
    network = load_network("child")
    curator = Curator(simulated(network, 1000, 1), InsecureNoise(1), Budget(1.0), Sensitivity())
    learned = learn_optimized(network.structure, curator, prior={}, public_cpts={})
    spent = total_loss(curator.measurements)
    assert 1 - 1e-9 < spent <= 1
    assert curator.measurements[0].names == () and curator.measurements[0].stage == "count"
    assert {m.mechanism for m in curator.measurements} == {"laplace", "joint"}
    assert all(0 < learned.allocation[node] <= 1 for node in network.nodes)


@pytest.mark.parametrize("parents", [("class",), ()])
@pytest.mark.parametrize("signal", [1e-3, 1e9])
def test_no_group_has_more_dimensions_than_can_be_drawn(parents, signal):
    """Else a release would fail after its charge."""
    names = ("class", *(f"x{k}" for k in range(200)))
    structure = structure_of(dict.fromkeys(names, 2), dict.fromkeys(names[1:], parents))
    for group in plan_groups(structure, signal).groups:
        blocks = structure.schema.cells(common_names(group))
        check_joint([structure.schema.cells(table) // blocks for table in group], 1.0, blocks)


@pytest.mark.parametrize("l1", [1, 2, 7])
def test_where_noise_may_be_drawn_together_it_can_be_at_the_least_share(l1):
    """A group for every node and one for every root: else a release would fail after its charge."""
    structure = load_network("alarm").structure
    least = groups_module.LEAST / (2 * len(structure.nodes))
    allowed = [epsilon for epsilon in np.geomspace(1e-6, 10, 300) if groups_module.can_draw(structure, epsilon, l1)]
    assert 10 < len(allowed) < 290
    check_joint([2, 2], l1 / (least * min(allowed)), groups_module.LARGEST_GROUP // 4)


def test_no_group_has_more_cells_than_were_allowed_for():
    """Two children of a root of many states: a common draw would gain, but takes too long."""
    structure = structure_of({"r": 600, "a": 10, "b": 10}, {"a": ("r",), "b": ("r",)})
    for signal in (1e3, 1e6):
        together = [group for group in plan_groups(structure, signal).groups if len(group) > 1]
        assert all(sum(map(structure.schema.cells, group)) <= groups_module.LARGEST_GROUP for group in together)


def test_no_tables_merge_to_more_cells_than_were_allowed_for():
    """Two children of the same two parents: one table of both would gain, but is larger than `can_draw` answers for."""
    structure = structure_of({"b": 40, "c": 40, "a": 2, "d": 2}, {"a": ("b", "c"), "d": ("b", "c")})
    assert structure.schema.cells(structure.nodes) > LARGEST_MERGED > 2 * 40 * 40
    tables = [*plan_tables(structure).tables, *(t for group in plan_groups(structure, 1e4).groups for t in group)]
    assert max(map(structure.schema.cells, tables)) <= LARGEST_MERGED


def test_a_table_that_hardly_matters_still_gets_its_least_share():
    """`can_draw` answers for no smaller one."""
    structure = load_network("alarm").structure
    weights = {node: 1.0 if node == "BP" else 1e-30 for node in structure.nodes}
    shares = plan_groups(structure, 1e4, weights=weights).shares
    assert len(shares) > 1 and min(shares) >= groups_module.LEAST / len(shares) * (1 - 1e-9)
