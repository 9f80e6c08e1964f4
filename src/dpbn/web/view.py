"""The release as the page draws it: boxes, arcs, states, badges, the guarantee in words. Public facts only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dpbn.display import letters
from dpbn.inference import Inference
from dpbn.layout import layered_layout
from dpbn.release import Release
from dpbn.statement import points
from dpbn.support import supports

NODE_WIDTH, WIDEST, HEADER_HEIGHT, ROW_HEIGHT, FOOT, MOST_ROWS = 160.0, 240.0, 18.0, 14.0, 3.0, 12
BESIDE_LABEL, BESIDE_TITLE = 106.0, 48.0  # room for the bar and its number, for the badges


def shown_states(count: int) -> int:
    """How many states a box shows; the rest is in the side panel."""
    return count if count <= MOST_ROWS else MOST_ROWS - 1


def box_size(name: str, states: Sequence[str]) -> tuple[float, float]:
    """Wide enough for the name and the states shown, within limits."""
    label = max(map(letters, states[: shown_states(len(states))]))
    wanted = max(BESIDE_LABEL + 7.4 * label, BESIDE_TITLE + 8.0 * letters(name))
    width = float(round(min(max(wanted, NODE_WIDTH), WIDEST)))
    return width, HEADER_HEIGHT + min(len(states), MOST_ROWS) * ROW_HEIGHT + FOOT


def probabilities(values: Iterable[float]) -> list[float]:
    """As JSON numbers; rounding may leave the last digit of a certain state above 1."""
    return [min(float(p), 1.0) for p in values]


def release_view(release: Release, inference: Inference, name: str) -> dict[str, Any]:
    """Everything the page needs once; the document of GET /api/release."""
    network = release.network
    sizes = {node: box_size(node, network.states(node)) for node in network.nodes}
    layout = layered_layout(network.structure.dag, sizes, gap=14, layer_gap=19, aspect=1.5)
    prior, behind = inference.posteriors({}), supports(release.structure, release.measurements, release.public_nodes)
    nodes = [
        {
            "name": node,
            "states": list(network.states(node)),
            "ranges": release.structure.schema[node].ranges,
            "shown": shown_states(len(network.states(node))),
            "parents": list(network.parents(node)),
            "prior": probabilities(prior[node]),
            "epsilon": release.allocation.get(node),
            "public": node in release.public_nodes,
            "rows": network.cpt(node).size // len(network.states(node)),
            "weak_rows": int(behind[node].below_floor.sum()) if node in behind else None,
            "box": _box(layout.boxes[node]),
        }
        for node in network.nodes
    ]
    return {
        "name": name,
        "id": release.id,
        "private": release.private,
        "method": release.method,
        "statement": release.statement,
        "points": [{"question": point.question, "answer": point.answer} for point in points(release)],
        "guarantee": release.guarantee.to_dict(),
        "offers": {"intervals": bool(release.measurements)},
        "nodes": nodes,
        "arcs": [
            {"parent": a.parent, "child": a.child, "points": [_rounded(point) for point in a.points]}
            for a in layout.arcs
        ],
        "size": _rounded((layout.width, layout.height)),
    }


def _box(box: Any) -> dict[str, float]:
    return {"x": round(box.x, 2), "y": round(box.y, 2), "width": box.width, "height": box.height}


def _rounded(point: tuple[float, float]) -> list[float]:
    return [round(point[0], 2), round(point[1], 2)]
