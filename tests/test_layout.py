"""The layered drawing: boxes never overlap, arcs go down, few crossings, always the same."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.crossings import Slot, _swap_neighbours, count_crossings
from dpbn.layout import Layout, layered_layout


def _sizes(network):
    return {node: (148.0, 17 + 14.0 * len(network.states(node))) for node in network.nodes}


def _check(dag: dpbn.Dag, layout: Layout, gap: float) -> None:
    assert set(layout.boxes) == set(dag.nodes)
    assert [(arc.parent, arc.child) for arc in layout.arcs] == list(dag.arcs)
    for box in layout.boxes.values():
        assert box.x >= -1e-6 and box.y >= 0
        assert box.x + box.width <= layout.width + 1e-6 and box.y + box.height <= layout.height + 1e-6
    for one, two in itertools.combinations(layout.boxes.values(), 2):
        apart = max(one.x, two.x) - min(one.x + one.width, two.x + two.width)
        assert apart >= gap - 1e-6 or one.y + one.height <= two.y or two.y + two.height <= one.y
    for arc in layout.arcs:
        start, end = layout.boxes[arc.parent], layout.boxes[arc.child]
        assert start.y + start.height < end.y
        heights = [y for _, y in arc.points]
        assert heights == sorted(heights)
        assert start.x <= arc.points[0][0] <= start.x + start.width
        assert end.x <= arc.points[-1][0] <= end.x + end.width


@pytest.mark.parametrize(("name", "most"), [("asia", 0), ("cancer", 0), ("child", 6), ("alarm", 12)])
def test_few_crossings_on_the_bundled_networks(name: str, most: int) -> None:
    network = dpbn.load_network(name)
    layout = layered_layout(network.structure.dag, _sizes(network), gap=14)
    _check(network.structure.dag, layout, gap=14)
    assert layout.crossings <= most
    assert layout == layered_layout(network.structure.dag, _sizes(network), gap=14)


def test_crossings_are_counted_where_they_cannot_be_avoided() -> None:
    tops, bottoms = ("a", "b", "c"), ("x", "y", "z")
    complete = dpbn.Dag((*tops, *bottoms), dict.fromkeys(bottoms, tops))
    assert layered_layout(complete).crossings == 9  # K(3,3) in two layers: C(3,2)^2


@st.composite
def dags(draw: st.DrawFn) -> dpbn.Dag:
    count = draw(st.integers(1, 14))
    nodes = tuple(f"n{i}" for i in range(count))
    parents = {
        node: tuple(draw(st.lists(st.sampled_from(nodes[:i]), unique=True, max_size=3)))
        for i, node in enumerate(nodes)
        if i
    }
    return dpbn.Dag(nodes, parents)


@given(dags())
@settings(deadline=None, max_examples=50)
def test_any_graph_is_drawn_without_overlap(dag: dpbn.Dag) -> None:
    _check(dag, layered_layout(dag), gap=24)


@given(dags())
@settings(deadline=None, max_examples=50)
def test_parts_that_no_arc_joins_stand_side_by_side(dag: dpbn.Dag) -> None:
    layout = layered_layout(dag)
    spans = [(box.x, box.x + box.width) for box in layout.boxes.values()]
    spans += [
        (min(one, two), max(one, two)) for arc in layout.arcs for (one, _), (two, _) in itertools.pairwise(arc.points)
    ]
    reach = 0.0
    for low, high in sorted(spans):
        assert low - reach <= 24 + 1e-6
        reach = max(reach, high)


def test_a_graph_of_many_roots_and_long_arcs_is_not_a_narrow_strip() -> None:
    draw, names = random.Random(0), tuple(f"n{i}" for i in range(76))
    dag = dpbn.Dag(names, {names[i]: tuple(draw.sample(names[:i], draw.randint(1, 4))) for i in range(40, 76)})
    layout = layered_layout(dag, aspect=1.5)
    assert layout.width < 2 * layout.height


def test_edge_cases() -> None:
    assert layered_layout(dpbn.Dag((), {})).boxes == {}
    alone = layered_layout(dpbn.Dag(("a",), {}))
    assert (alone.width, alone.height) == (120, 40)
    chain = dpbn.Dag(tuple(f"n{i}" for i in range(500)), {f"n{i}": (f"n{i - 1}",) for i in range(1, 500)})
    long = layered_layout(chain)
    assert long.crossings == 0 and long.width == pytest.approx(120)


def test_where_links_end_is_looked_up_once_per_layer() -> None:
    rows = [[f"a{i}" for i in range(9)], [f"b{i}" for i in range(9)]]
    asked: list[Slot] = []

    class Counted(dict[Slot, list[Slot]]):
        def __getitem__(self, slot: Slot) -> list[Slot]:
            asked.append(slot)
            return super().__getitem__(slot)

    up = Counted({f"b{i}": [f"a{8 - i}"] for i in range(9)})
    down = Counted({f"a{i}": [f"b{8 - i}"] for i in range(9)})
    _swap_neighbours(rows, up, down)
    assert len(asked) == 18
    assert count_crossings(rows, down) < 36
