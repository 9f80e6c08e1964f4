"""A layered drawing of a graph with few crossings (Sugiyama's method), computed from public facts only.

Four steps, one function each: put nodes into layers with short arcs; order each layer so that few arcs
cross; give every node a place; bend the arcs around the boxes in between. Deterministic: equal graphs
give equal drawings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpbn.graph import Dag

Point = tuple[float, float]
Slot = str | tuple[int, int]  # a node, or the place (arc number, layer) where a long arc passes a layer
_SWEEPS, _LARGE = 24, 4000


@dataclass(frozen=True, slots=True)
class Box:
    """Where a node is drawn: top left corner and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> Point:
        return (self.x + self.width / 2, self.y + self.height / 2)


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
    """Parents above children; `sizes` are (width, height) of each box, `aspect` the wanted width / height."""
    boxes = dict(sizes or dict.fromkeys(dag.nodes, (120.0, 40.0)))
    layer_of = _layers(dag, boxes, gap, layer_gap, aspect)
    rows, up, down = _slots(dag, layer_of)
    rows, crossings = _ordered(rows, up, down)
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


def _layers(
    dag: Dag, sizes: Mapping[str, tuple[float, float]], gap: float, layer_gap: float, aspect: float
) -> dict[str, int]:
    """Longest-path layers, then each node moved to where its arcs are shortest and the layer has room."""
    layer: dict[str, int] = {}
    for node in dag.order:
        layer[node] = max((layer[parent] + 1 for parent in dag.parents[node]), default=0)
    count = max(layer.values(), default=-1) + 1
    used = [0.0] * count
    tall = [0.0] * count
    for node, at in layer.items():
        used[at] += sizes[node][0] + gap
        tall[at] = max(tall[at], sizes[node][1] + layer_gap)
    room = max(sum(tall) * aspect, sum(used) / max(count, 1))  # wider than this is a layer only if it must be
    for sweep in range(8):
        moved = False
        for node in dag.order if sweep % 2 else reversed(dag.order):
            low = max((layer[parent] + 1 for parent in dag.parents[node]), default=0)
            high = min((layer[child] - 1 for child in dag.children(node)), default=count - 1)
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
        if not moved:
            break
    kept = {old: new for new, old in enumerate(sorted(set(layer.values())))}
    return {node: kept[at] for node, at in layer.items()}


_Links = dict[Slot, list[Slot]]


def _slots(dag: Dag, layer_of: Mapping[str, int]) -> tuple[list[list[Slot]], _Links, _Links]:
    """The layers as lists of nodes and passing places, with the links to the layer above and below."""
    rows: list[list[Slot]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for node in _depth_first(dag):
        rows[layer_of[node]].append(node)
    up: _Links = {node: [] for node in dag.nodes}
    down: _Links = {node: [] for node in dag.nodes}
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


def _ordered(rows: list[list[Slot]], up: _Links, down: _Links) -> tuple[list[list[Slot]], int]:
    """Orders with few crossings: barycentre sweeps from four starts, neighbours swapped where it helps."""
    small = sum(map(len, rows)) <= _LARGE
    best, fewest = rows, _crossings(rows, down)
    for start in range(4 if small else 1):
        current = [list(reversed(row)) if start % 2 else list(row) for row in rows]
        for sweep in range(_SWEEPS if small else 4):
            downward = (sweep + start // 2) % 2 == 0
            _sweep(current, up if downward else down, downward)
            if small:
                _swap_neighbours(current, up, down)
            crossings = _crossings(current, down)
            if crossings < fewest:
                best, fewest = [list(row) for row in current], crossings
            if fewest == 0:
                return best, 0
    return best, fewest


def _sweep(rows: list[list[Slot]], links: _Links, downward: bool) -> None:
    """Sort every layer by the mean position of its neighbours in the layer just done."""
    layers = range(1, len(rows)) if downward else range(len(rows) - 2, -1, -1)
    for layer in layers:
        fixed = {slot: i for i, slot in enumerate(rows[layer - 1 if downward else layer + 1])}
        row = rows[layer]
        stretch = len(fixed) / max(len(row), 1)
        mean = {
            slot: sum(fixed[other] for other in links[slot]) / len(links[slot]) if links[slot] else i * stretch
            for i, slot in enumerate(row)
        }
        row.sort(key=mean.__getitem__)


def _swap_neighbours(rows: list[list[Slot]], up: _Links, down: _Links) -> None:
    """Exchange adjacent slots while that removes crossings."""
    for layer, row in enumerate(rows):
        above = {slot: i for i, slot in enumerate(rows[layer - 1])} if layer else {}
        below = {slot: i for i, slot in enumerate(rows[layer + 1])} if layer + 1 < len(rows) else {}
        for _ in range(4):
            improved = False
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                gain = 0
                for links, places in ((up, above), (down, below)):
                    first, second = [places[s] for s in links[a]], [places[s] for s in links[b]]
                    gain += sum((p > q) - (p < q) for p in first for q in second)
                if gain > 0:
                    row[i], row[i + 1] = b, a
                    improved = True
            if not improved:
                break


def _crossings(rows: Sequence[Sequence[Slot]], down: _Links) -> int:
    """Pairs of crossing links: inversions, counted with a Fenwick tree per layer."""
    total = 0
    for upper, lower in itertools.pairwise(rows):
        place = {slot: i for i, slot in enumerate(lower)}
        tree, seen = [0] * (len(lower) + 1), 0
        for slot in upper:
            ends = sorted(place[other] for other in down[slot])
            for end in ends:  # links seen so far that end to the right of this one
                i, left = end + 1, 0
                while i:
                    left += tree[i]
                    i -= i & -i
                total += seen - left
            for end in ends:
                i = end + 1
                while i <= len(lower):
                    tree[i] += 1
                    i += i & -i
            seen += len(ends)
    return total


def _places(
    rows: Sequence[Sequence[Slot]], up: _Links, down: _Links, widths: Mapping[Slot, float], gap: float
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
    return centre


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
    for _ in range(3):
        for chain in sorted(chains.values(), key=len, reverse=True):
            run: list[Slot] = []
            low, high = -math.inf, math.inf
            links: list[Slot | None] = [*chain, None]  # None: the end, where the last run is placed
            for place in links:
                left, right = room[place] if place is not None else (None, None)
                floor = -math.inf if left is None or place is None else centre[left] + _space(left, place, widths, gap)
                roof = math.inf if right is None or place is None else centre[right] - _space(place, right, widths, gap)
                if run and (place is None or max(low, floor) > min(high, roof)):
                    middle = sum(centre[member] for member in run) / len(run)
                    centre.update(dict.fromkeys(run, min(max(middle, low), high)))
                    run, low, high = [], -math.inf, math.inf
                if place is not None:
                    run.append(place)
                    low, high = max(low, floor), min(high, roof)


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
