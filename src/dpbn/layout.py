"""A layered drawing of a graph with few crossings (Sugiyama's method), computed from public facts only.

Four steps, one function each: put nodes into layers with short arcs; order each layer so that few arcs
cross; give every node a place; bend the arcs around the boxes in between. Deterministic: equal graphs
give equal drawings.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpbn.crossings import Links, Slot, few_crossings
from dpbn.graph import Dag, heights

Point = tuple[float, float]
_SMALL_GRAPH = 150


@dataclass(frozen=True, slots=True)
class Box:
    """Where a node is drawn: top left corner and size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Arc:
    """An arc as the points it runs through, from the lower edge of the parent to the upper edge of the child."""

    parent: str
    child: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing: boxes, arcs, and the size of the whole; `crossings` counts pairs of arcs that cross."""

    boxes: Mapping[str, Box]
    arcs: tuple[Arc, ...]
    width: float
    height: float
    crossings: int


def layered_layout(
    dag: Dag,
    sizes: Mapping[str, tuple[float, float]] | None = None,
    *,
    gap: float = 24.0,
    layer_gap: float = 40.0,
    aspect: float = 1.6,
) -> Layout:
    """Parents above children; `sizes` are (width, height) of each box, `aspect` the wanted width / height.

    A graph that would be much too wide gets more layers: several widths are tried, and the drawing that can be
    shown largest in a window of this aspect is kept.
    """
    boxes = dict(sizes or dict.fromkeys(dag.nodes, (120.0, 40.0)))
    best = _drawn(dag, boxes, gap, layer_gap, math.inf)
    widest = best.width
    square = math.sqrt(aspect * best.height / max(widest, 1.0))  # what would suit if narrower were just as much taller
    tries = (0.75, 0.6, 0.5, 0.4, 0.3, 0.22, 0.16) if len(dag.nodes) <= _SMALL_GRAPH else (square,)
    for share in tries:
        if best.width <= aspect * best.height * 1.15:
            break
        narrower = _drawn(dag, boxes, gap, layer_gap, widest * share)
        if _shown_size(narrower, aspect) > 1.08 * _shown_size(best, aspect):
            best = narrower
    return _stretched(best, aspect, layer_gap)


def _stretched(layout: Layout, aspect: float, layer_gap: float) -> Layout:
    """Spend height that a wide drawing leaves free on the gaps between layers, where the arcs are."""
    layer_at = {y: i for i, y in enumerate(sorted({box.y for box in layout.boxes.values()}))}
    if len(layer_at) < 2 or layout.width <= aspect * layout.height:
        return layout
    extra = min((layout.width / aspect - layout.height) / (len(layer_at) - 1), layer_gap)
    boxes = {node: replace(box, y=box.y + extra * layer_at[box.y]) for node, box in layout.boxes.items()}
    arcs = []
    for arc in layout.arcs:
        first = layer_at[layout.boxes[arc.parent].y]  # then two points per layer passed
        points = tuple((x, y + extra * (first + (i + 1) // 2)) for i, (x, y) in enumerate(arc.points))
        arcs.append(replace(arc, points=points))
    return replace(layout, boxes=boxes, arcs=tuple(arcs), height=layout.height + extra * (len(layer_at) - 1))


def _shown_size(layout: Layout, aspect: float) -> float:
    """The scale at which a drawing fits a window of width `aspect` and height 1."""
    return min(aspect / max(layout.width, 1.0), 1.0 / max(layout.height, 1.0))


def _drawn(dag: Dag, boxes: Mapping[str, tuple[float, float]], gap: float, layer_gap: float, room: float) -> Layout:
    """The drawing with layers of boxes at most about `room` wide."""
    layer_of = _layers(dag, boxes, gap, room)
    rows, up, down = _slots(dag, layer_of)
    rows, crossings = few_crossings(rows, up, down)
    widths: dict[Slot, float] = {slot: boxes[slot][0] if isinstance(slot, str) else 0.0 for row in rows for slot in row}
    centres = _places(rows, up, down, widths, gap)
    left = min((centres[slot] - widths[slot] / 2 for slot in centres), default=0.0)
    tops, height = _tops(rows, boxes, layer_gap)
    placed = {
        node: Box(centres[node] - left - boxes[node][0] / 2, tops[layer_of[node]], *boxes[node]) for node in dag.nodes
    }
    bottoms = [top + _row_height(row, boxes) for top, row in zip(tops, rows, strict=True)]
    arcs = _arcs(dag, layer_of, placed, {slot: x - left for slot, x in centres.items()}, tops, bottoms)
    right = max((centres[slot] - left + widths[slot] / 2 for slot in centres), default=0.0)
    return Layout(placed, arcs, right, height, crossings)


def _layers(dag: Dag, sizes: Mapping[str, tuple[float, float]], gap: float, room: float) -> dict[str, int]:
    """Earliest layers with room left (longest paths first), then each node moved to where its arcs are shortest."""
    depth = heights(dag)
    layer: dict[str, int] = {}
    used: list[float] = []
    waiting = {node: len(dag.parents[node]) for node in dag.nodes}
    ready = [(-depth[node], i, node) for i, node in enumerate(dag.nodes) if not waiting[node]]
    heapq.heapify(ready)
    while ready:
        _, number, node = heapq.heappop(ready)
        size = sizes[node][0] + gap
        at = max((layer[parent] + 1 for parent in dag.parents[node]), default=0)
        while at < len(used) and used[at] > 0 and used[at] + size > room:
            at += 1
        used += [0.0] * (at + 1 - len(used))
        used[at] += size
        layer[node] = at
        for child in dag.children(node):
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, (-depth[child], number, child))
    for sweep in range(8):
        if not _moved(dag, layer, used, sizes, gap, room, sweep):
            break
    kept = {old: new for new, old in enumerate(sorted(set(layer.values())))}
    return {node: kept[at] for node, at in layer.items()}


def _moved(
    dag: Dag,
    layer: dict[str, int],
    used: list[float],
    sizes: Mapping[str, tuple[float, float]],
    gap: float,
    room: float,
    sweep: int,
) -> bool:
    """One pass over all nodes, each to the layer between its parents and children that suits it best."""
    moved = False
    for node in dag.order if sweep % 2 else reversed(dag.order):
        low = max((layer[parent] + 1 for parent in dag.parents[node]), default=0)
        high = min((layer[child] - 1 for child in dag.children(node)), default=len(used) - 1)
        size = sizes[node][0] + gap
        slope = len(dag.parents[node]) - len(dag.children(node))  # arcs get longer by this per layer down
        here = layer[node]
        used[here] -= size
        costs = (
            (slope * (at - low) + 4 * max(0.0, used[at] + size - room) / size, used[at] * (slope == 0), at)
            for at in range(low, high + 1)
        )
        best = min(costs)[-1]
        used[best] += size
        layer[node] = best
        moved |= best != here
    return moved


def _slots(dag: Dag, layer_of: Mapping[str, int]) -> tuple[list[list[Slot]], Links, Links]:
    """The layers as lists of nodes and passing places, with the links to the layer above and below."""
    rows: list[list[Slot]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for node in _depth_first(dag):
        rows[layer_of[node]].append(node)
    up: Links = {node: [] for node in dag.nodes}
    down: Links = {node: [] for node in dag.nodes}
    for number, (parent, child) in enumerate(dag.arcs):
        last: Slot = parent
        for layer in range(layer_of[parent] + 1, layer_of[child]):
            passing: Slot = (number, layer)
            rows[layer].append(passing)
            up[passing], down[passing] = [last], []
            down[last].append(passing)
            last = passing
        down[last].append(child)
        up[child].append(last)
    return rows, up, down


def _depth_first(dag: Dag) -> list[str]:
    """Nodes in the order of an undirected depth-first walk: relatives start side by side."""
    seen: dict[str, None] = {}
    for root in dag.order:
        stack = [root]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen[node] = None
                stack.extend(reversed((*dag.parents[node], *dag.children(node))))
    return list(seen)


def _places(
    rows: Sequence[Sequence[Slot]], up: Links, down: Links, widths: Mapping[Slot, float], gap: float
) -> dict[Slot, float]:
    """Centres: every layer in turn as near to its neighbours as order and gaps allow (isotonic regression)."""
    centre: dict[Slot, float] = {}
    offsets: list[list[float]] = []
    for row in rows:
        at, offset = 0.0, []
        for i, slot in enumerate(row):
            if i:
                at += _space(row[i - 1], slot, widths, gap)
            offset.append(at)
        offsets.append(offset)
        for slot, place in zip(row, offset, strict=True):
            centre[slot] = place - at / 2
    for sweep in range(16):
        downward = sweep % 2 == 0
        for layer in range(len(rows)) if downward else range(len(rows) - 1, -1, -1):
            row, offset = rows[layer], offsets[layer]
            wanted, weight = [], []
            for slot in row:
                near = (up[slot] if downward else down[slot]) if sweep < 8 else [*up[slot], *down[slot]]
                wanted.append(sum(centre[other] for other in near) / len(near) if near else centre[slot])
                weight.append(8.0 if not isinstance(slot, str) else 1.0 + len(near) if near else 0.5)
            fitted = _isotonic([w - o for w, o in zip(wanted, offset, strict=True)], weight)
            for slot, place, o in zip(row, fitted, offset, strict=True):
                centre[slot] = place + o
    _straighten(rows, centre, widths, gap)
    return _closed_up(centre, up, widths, gap)


def _closed_up(centre: Mapping[Slot, float], up: Links, widths: Mapping[Slot, float], gap: float) -> dict[Slot, float]:
    """The same places without the empty strips between parts of the graph that no arc joins."""
    spans = [(x - widths[slot] / 2, x + widths[slot] / 2) for slot, x in centre.items()]
    spans += [(min(centre[slot], centre[other]), max(centre[slot], centre[other])) for slot in up for other in up[slot]]
    parts, shifts = [-math.inf], [0.0]  # where a part begins, and how far it moves to the left
    reach = min(centre.values(), default=0.0)
    for low, high in sorted(spans):
        if low > reach + gap:
            parts.append(low)
            shifts.append(shifts[-1] + low - reach - gap)
        reach = max(reach, high)
    return {slot: x - shifts[bisect.bisect_right(parts, x) - 1] for slot, x in centre.items()}


def _space(left: Slot, right: Slot, widths: Mapping[Slot, float], gap: float) -> float:
    """Least distance of two centres side by side; passing arcs may run closer to boxes than boxes to each other."""
    free = gap if isinstance(left, str) and isinstance(right, str) else 0.7 * gap
    return (widths[left] + widths[right]) / 2 + free


def _straighten(
    rows: Sequence[Sequence[Slot]], centre: dict[Slot, float], widths: Mapping[Slot, float], gap: float
) -> None:
    """Let long arcs run straight down as far as their neighbours leave room, the longest first."""
    room: dict[Slot, tuple[Slot | None, Slot | None]] = {}
    chains: dict[int, list[Slot]] = {}
    for row in rows:
        for i, slot in enumerate(row):
            room[slot] = (row[i - 1] if i else None, row[i + 1] if i + 1 < len(row) else None)
            if not isinstance(slot, str):
                chains.setdefault(slot[0], []).append(slot)

    def place(run: list[Slot], low: float, high: float) -> None:
        middle = sum(centre[slot] for slot in run) / len(run)
        centre.update(dict.fromkeys(run, min(max(middle, low), high)))

    for _ in range(3):
        for chain in sorted(chains.values(), key=len, reverse=True):
            run: list[Slot] = []
            low, high = -math.inf, math.inf
            for slot in chain:
                left, right = room[slot]
                floor = -math.inf if left is None else centre[left] + _space(left, slot, widths, gap)
                roof = math.inf if right is None else centre[right] - _space(slot, right, widths, gap)
                if run and max(low, floor) > min(high, roof):
                    place(run, low, high)
                    run, low, high = [], -math.inf, math.inf
                run.append(slot)
                low, high = max(low, floor), min(high, roof)
            place(run, low, high)


def _isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing sequence nearest to `values` in weighted squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values, weights, strict=True):
        mean, total, length = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, its, many = blocks.pop()
            mean = (mean * total + other * its) / (total + its)
            total, length = total + its, length + many
        blocks.append((mean, total, length))
    return [mean for mean, _, length in blocks for _ in range(length)]


def _row_height(row: Sequence[Slot], sizes: Mapping[str, tuple[float, float]]) -> float:
    return max((sizes[slot][1] for slot in row if isinstance(slot, str)), default=0.0)


def _tops(
    rows: Sequence[Sequence[Slot]], sizes: Mapping[str, tuple[float, float]], layer_gap: float
) -> tuple[list[float], float]:
    """Upper edges of the layers, and the height of the whole."""
    tops, y = [], 0.0
    for row in rows:
        tops.append(y)
        y += _row_height(row, sizes) + layer_gap
    return tops, max(y - layer_gap, 0.0)


def _arcs(
    dag: Dag,
    layer_of: Mapping[str, int],
    boxes: Mapping[str, Box],
    centres: Mapping[Slot, float],
    tops: Sequence[float],
    bottoms: Sequence[float],
) -> tuple[Arc, ...]:
    """Arcs with their ends spread along the edges of the boxes, in the order of where they come from."""
    passing = [
        [(number, layer) for layer in range(layer_of[parent] + 1, layer_of[child])]
        for number, (parent, child) in enumerate(dag.arcs)
    ]
    leaving: dict[str, list[tuple[float, int]]] = {node: [] for node in dag.nodes}
    entering: dict[str, list[tuple[float, int]]] = {node: [] for node in dag.nodes}
    for number, (parent, child) in enumerate(dag.arcs):
        leaving[parent].append((centres[passing[number][0] if passing[number] else child], number))
        entering[child].append((centres[passing[number][-1] if passing[number] else parent], number))
    start = {number: x for node in dag.nodes for number, x in _ports(boxes[node], leaving[node])}
    end = {number: x for node in dag.nodes for number, x in _ports(boxes[node], entering[node])}
    arcs = []
    for number, (parent, child) in enumerate(dag.arcs):
        points = [(start[number], boxes[parent].y + boxes[parent].height)]
        for slot in passing[number]:
            x = centres[slot]
            points += [(x, tops[slot[1]]), (x, bottoms[slot[1]])]
        points.append((end[number], boxes[child].y))
        arcs.append(Arc(parent, child, tuple(points)))
    return tuple(arcs)


def _ports(box: Box, neighbours: list[tuple[float, int]]) -> list[tuple[int, float]]:
    """One x on the box's edge per arc: around the middle, sorted by the other end."""
    step = min(14.0, box.width * 0.7 / max(len(neighbours), 1))
    first = box.x + box.width / 2 - step * (len(neighbours) - 1) / 2
    return [(number, first + step * i) for i, (_, number) in enumerate(sorted(neighbours))]
