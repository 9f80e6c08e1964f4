"""Elimination orders and treewidth against brute force and known graphs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.elimination import HEURISTICS, _Greedy, bits, eliminate, treewidth_bounds
from dpbn.errors import InputError, StructureError
from dpbn.graph import treewidth
from dpbn.inference import error_bounds


def graph(count, edges):
    masks = [0] * count
    for a, b in edges:
        masks[a] |= 1 << b
        masks[b] |= 1 << a
    return masks


def brute_force_treewidth(masks):
    best = len(masks)
    for order in itertools.permutations(range(len(masks))):
        left, width = list(masks), 0
        for v in order:
            width = max(width, left[v].bit_count())
            for u in bits(left[v]):
                left[u] = (left[u] | left[v]) & ~(1 << v) & ~(1 << u)
            if width >= best:
                break
        best = min(best, width)
    return best


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_exact_treewidth_is_the_best_of_all_orders(count, seed):
    generator = np.random.default_rng(seed)
    masks = graph(count, [e for e in itertools.combinations(range(count), 2) if generator.random() < 0.6])
    exact = brute_force_treewidth(masks)
    assert treewidth_bounds(masks, effort=50_000) == (exact, exact)
    low, high = treewidth_bounds(masks, effort=0)
    assert low <= exact <= high
    for heuristic in HEURISTICS:
        found = eliminate(masks, [2] * count, heuristic)
        assert sorted(found.order) == list(range(count))
        assert found.width >= exact
        assert found.cells == sum(2 ** c.bit_count() for c in found.cliques)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.integers(0, 10**6), st.sampled_from(HEURISTICS))
def test_scores_kept_up_to_date_are_the_scores(count, seed, heuristic):
    generator = np.random.default_rng(seed)
    masks = graph(count, [e for e in itertools.combinations(range(count), 2) if generator.random() < 0.35])
    sizes, keep = generator.integers(2, 5, count).tolist(), int(generator.integers(0, 2**count)) & seed
    found = eliminate(masks, sizes, heuristic, keep=keep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Greedy, "without", lambda greedy, old, other, *_: greedy.score(other))
        assert found == eliminate(masks, sizes, heuristic, keep=keep)


def test_a_hub_is_not_scored_again_for_every_leaf(monkeypatch):
    calls, leaves = [], 300
    for name in ("_min_fill", "_weighted_min_fill"):
        scored = getattr(_Greedy, name)
        monkeypatch.setattr(_Greedy, name, lambda greedy, v, scored=scored: calls.append(v) or scored(greedy, v))
    star = graph(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)])
    for heuristic in HEURISTICS:
        assert eliminate(star, [2] * len(star), heuristic).width == 1
    assert calls.count(0) == 2


def test_known_treewidths():
    grid = graph(16, [(4 * r + c, 4 * r + c + 1) for r in range(4) for c in range(3)]
                 + [(4 * r + c, 4 * r + c + 4) for r in range(3) for c in range(4)])  # fmt: skip
    assert treewidth_bounds(grid, effort=50_000) == (4, 4)
    cycle = graph(9, [(i, (i + 1) % 9) for i in range(9)])
    assert treewidth_bounds(cycle, effort=50_000) == (2, 2)
    petersen = graph(10, [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)]
                     + [(5 + i, 5 + (i + 2) % 5) for i in range(5)])  # fmt: skip
    assert treewidth_bounds(petersen, effort=50_000) == (4, 4)
    low, high = treewidth_bounds(petersen, effort=1)
    assert low <= 4 <= high
    for name, width in (("asia", 2), ("sachs", 3), ("child", 3), ("alarm", 4)):
        assert treewidth(dpbn.load_network(name).structure.dag) == (width, width)


def test_bounds_of_the_paper_by_hand():
    true = dpbn.load_network("asia")
    cpts = {n: np.array(true.cpt(n)) for n in true.nodes}
    cpts["smoke"] = [0.4, 0.6]
    released = dpbn.BayesianNetwork(true.structure, cpts)
    bounds = error_bounds(true, released)
    assert (bounds.eta, bounds.kappa, bounds.exact, bounds.largest_domain) == (5, 2, True, 2)  # either: 2 in, 2 out
    assert bounds.delta_min == 0 and bounds.delta_max == pytest.approx(0.1)
    assert bounds.lower == 0 and bounds.upper == pytest.approx(2 * 5 * 2**2 * 0.1)
    assert bounds.normalised(0.2) == pytest.approx(0.05)
    with pytest.raises(InputError):
        bounds.normalised(float("nan"))
    with pytest.raises(InputError):
        error_bounds(true, true).normalised(0.0)
    with pytest.raises(StructureError):
        error_bounds(true, dpbn.load_network("cancer"))


def test_a_lower_bound_above_zero():
    schema = dpbn.Schema(
        (dpbn.Variable("a", ("0", "1")), dpbn.Variable("b", ("0", "1")), dpbn.Variable("c", ("0", "1")))
    )
    structure = dpbn.Structure(schema, dpbn.Dag(("a", "b", "c"), {"b": ("a",), "c": ("b",)}))
    row = [[0.5, 0.5], [0.25, 0.75]]
    moved = [[0.4, 0.6], [0.3, 0.7]]
    true = dpbn.BayesianNetwork(structure, {"a": [0.5, 0.5], "b": row, "c": row})
    released = dpbn.BayesianNetwork(structure, {"a": [0.6, 0.4], "b": moved, "c": moved})
    bounds = error_bounds(true, released)
    assert bounds.eta == 3 and bounds.kappa == 1
    assert bounds.lower == pytest.approx(2**0.5 * 0.05 * 0.25)
    assert bounds.upper == pytest.approx(2 * 3 * 2 * 0.1)


def test_bounds_of_a_network_without_arcs_and_of_one_whose_width_is_not_known():
    two = dpbn.Schema(tuple(dpbn.Variable(name, ("0", "1")) for name in ("a", "b")))
    apart = dpbn.Structure(two, dpbn.Dag(("a", "b"), {}))
    true = dpbn.BayesianNetwork(apart, {"a": [0.0, 1.0], "b": [0.5, 0.5]})
    released = dpbn.BayesianNetwork(apart, {"a": [0.1, 0.9], "b": [0.4, 0.6]})
    bounds = error_bounds(true, released)
    assert (bounds.eta, bounds.kappa, bounds.lower) == (1, 0, 0.0)
    assert bounds.upper == pytest.approx(2 * 0.1)

    side = 6
    names = tuple(f"{row}{column}" for row in range(side) for column in range(side))
    parents = {
        f"{row}{column}": (
            *((f"{row - 1}{column}",) if row else ()),
            *((f"{row}{column - 1}",) if column else ()),
        )
        for row in range(side)
        for column in range(side)
    }
    schema = dpbn.Schema(tuple(dpbn.Variable(name, ("0", "1")) for name in names))
    structure = dpbn.Structure(schema, dpbn.Dag(names, parents))
    grid = dpbn.BayesianNetwork(structure, {n: np.full((2,) * (len(parents[n]) + 1), 0.5) for n in names})
    moved = dpbn.BayesianNetwork(
        structure, {n: np.stack([grid.cpt(n)[..., 0] - 0.1, grid.cpt(n)[..., 1] + 0.1], -1) for n in names}
    )
    low, high = treewidth(structure.dag, effort=0)
    assert low < high
    bounds = error_bounds(grid, moved, effort=0)
    assert (bounds.kappa, bounds.exact) == (high, False)
    assert bounds.upper == pytest.approx(2 * bounds.eta * 2**high * 0.1)
