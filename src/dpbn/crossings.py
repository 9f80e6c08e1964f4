"""The order of each layer of a drawing so that few arcs cross: barycentre sweeps and exchanges of neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

Slot = str | tuple[int, int]  # a node, or the place (arc number, layer) where a long arc passes a layer
Links = dict[Slot, list[Slot]]  # a slot's neighbours in the layer above, or below
_SWEEPS, _PATIENCE, _LARGE = 24, 5, 4000


def few_crossings(rows: list[list[Slot]], up: Links, down: Links) -> tuple[list[list[Slot]], int]:
    """Orders with few crossings: barycentre sweeps from four starts, neighbours swapped where it helps."""
    small = sum(map(len, rows)) <= _LARGE
    best, fewest = rows, count_crossings(rows, down)
    crossings_at_start = fewest
    for start in range(4 if small else 1):
        current = [list(reversed(row)) if start % 2 else list(row) for row in rows]
        own, since = crossings_at_start, 0
        for sweep in range(_SWEEPS if small else 4):
            since += 1
            if since > _PATIENCE:
                break
            downward = (sweep + start // 2) % 2 == 0
            _sweep(current, up if downward else down, downward)
            if small:
                _swap_neighbours(current, up, down)
            crossings = count_crossings(current, down)
            if crossings < own:
                own, since = crossings, 0
            if crossings < fewest:
                best, fewest = [list(row) for row in current], crossings
            if fewest == 0:
                return best, 0
    return best, fewest


def _sweep(rows: list[list[Slot]], links: Links, downward: bool) -> None:
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


def _swap_neighbours(rows: list[list[Slot]], up: Links, down: Links) -> None:
    """Exchange adjacent slots while that removes crossings."""
    for layer, row in enumerate(rows):
        sides = [_ends(row, rows[layer - 1], up)] if layer else []
        sides += [_ends(row, rows[layer + 1], down)] if layer + 1 < len(rows) else []
        for _ in range(4):
            improved = False
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                gain = 0
                for ends in sides:
                    for p in ends[a]:
                        for q in ends[b]:
                            gain += (p > q) - (p < q)
                if gain > 0:
                    row[i], row[i + 1] = b, a
                    improved = True
            if not improved:
                break


def _ends(row: Sequence[Slot], other: Sequence[Slot], links: Links) -> dict[Slot, list[int]]:
    """Where in the layer `other` the links of each slot end."""
    places = {slot: i for i, slot in enumerate(other)}
    return {slot: [places[end] for end in links[slot]] for slot in row}


def count_crossings(rows: Sequence[Sequence[Slot]], down: Links) -> int:
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
