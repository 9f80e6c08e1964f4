"""Elimination orders and treewidth against brute force and known graphs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.elimination import HEURISTICS, _Greedy, bits, eliminate, treewidth_bounds
from dpbn.graph import treewidth


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
