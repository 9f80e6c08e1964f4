"""How networks, releases, answers and budgets show themselves: SVG and HTML without scripts or addresses.

Every name and label passes through `escaped`. Used by notebooks (`_repr_html_`, `_repr_svg_`) and by the report.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.layout import Arc, Box, layered_layout
from dpbn.network import BayesianNetwork, Structure
from dpbn.statement import summary, visible

if TYPE_CHECKING:
    from dpbn.inference import Answer, Comparison
    from dpbn.release import Release

INK, LINE, PAPER, MUTED = "#1c2530", "#8393a5", "#ffffff", "#5a6877"
ACCENT = "#2f6db5"
_LETTER, _LONGEST, _SHOWN_ROWS = 7.3, 26, 40
LEGIBLE = 1600.0  # width of a drawing that can still be read when it is shrunk to a page


def escaped(text: object) -> str:
    """Safe inside HTML and SVG, in text and in attributes."""
    return html.escape(visible(str(text)), quote=True)


def shortened(text: str) -> str:
    """Cut in the middle: names of one table often begin alike."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[1 - half :]}"


def letters(text: str) -> float:
    """About how many small letters are as wide as `text`."""
    return sum(
        1.4 if c in "mwMW" else 1.0 if c.islower() or c.isdigit() else 1.24 if c.isascii() else 1.7 for c in text
    )


def probability(value: float) -> str:
    """Three decimals, as HTML; tiny and nearly certain values say so instead of 0 or 1."""
    if 0 < value < 0.0005:
        return "&lt;0.001"
    if 0.9995 <= value < 1:
        return "&gt;0.999"
    return f"{value:.3f}"


@dataclass(frozen=True, slots=True)
class Mark:
    """What a drawing says about a node besides its name: a line of text, a bar in [0, 1], a colour."""

    caption: str = ""
    share: float | None = None
    colour: str = ACCENT


def graph_svg(structure: Structure, marks: Mapping[str, Mark] | None = None, title: str = "graph") -> str:
    """The graph in layers, parents above children."""
    marks = marks or {}
    tall = any(mark.caption for mark in marks.values())
    sizes = {node: (_width(node, marks.get(node, Mark())), 48.0 if tall else 30.0) for node in structure.nodes}
    drawing = layered_layout(structure.dag, sizes, gap=18.0, layer_gap=38.0)
    width, height = drawing.width + 16, drawing.height + 16
    wide = "" if width <= LEGIBLE else ' class="wide"'  # a page scrolls what would be too small to read
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg"{wide} viewBox="-8 -8 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escaped(title)}" font-family="system-ui, sans-serif">',
        f"<title>{escaped(title)}</title>",
        *(_arc(arc) for arc in drawing.arcs),
        *(_node(node, drawing.boxes[node], marks.get(node, Mark())) for node in structure.nodes),
        "</svg>",
    ]
    return "".join(parts)


def _width(node: str, mark: Mark) -> float:
    wide = letters(shortened(visible(node)))
    return max(54.0, 20 + _LETTER * max(1.1 * wide, len(mark.caption) * 0.84))  # names are bold


def _arc(arc: Arc) -> str:
    (x, y), *rest = arc.points
    path = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in rest:
        middle = (y + to_y) / 2
        path.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    head = f"{x - 3.5:.1f},{y - 7:.1f} {x + 3.5:.1f},{y - 7:.1f} {x:.1f},{y:.1f}"
    line = f'<path d="{"".join(path)}" fill="none" stroke="{LINE}" stroke-width="1.2"/>'
    return f'{line}<polygon points="{head}" fill="{LINE}"/>'


def _node(node: str, box: Box, mark: Mark) -> str:
    x, y = box.x, box.y
    name = escaped(shortened(visible(node)))
    lines = [
        f"<g><title>{escaped(node)}{': ' + escaped(mark.caption) if mark.caption else ''}</title>",
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6" fill="{PAPER}" '
        f'stroke="{mark.colour}" stroke-width="1.6"/>',
        f'<text x="{x + box.width / 2:.1f}" y="{y + (19 if mark.caption else box.height / 2 + 4):.1f}" '
        f'text-anchor="middle" font-size="12.5" font-weight="600" fill="{INK}">{name}</text>',
    ]
    if mark.caption:
        lines.append(
            f'<text x="{x + box.width / 2:.1f}" y="{y + 34:.1f}" text-anchor="middle" font-size="11" '
            f'fill="{MUTED}">{escaped(mark.caption)}</text>'
        )
    if mark.share is not None:
        full = box.width - 16
        lines.append(f'<rect x="{x + 8:.1f}" y="{y + 40:.1f}" width="{full:.1f}" height="3" fill="#e3e8ee"/>')
        lines.append(
            f'<rect x="{x + 8:.1f}" y="{y + 40:.1f}" width="{full * mark.share:.1f}" height="3" fill="{mark.colour}"/>'
        )
    return "".join([*lines, "</g>"])


def bar_svg(value: float, whisker: Sequence[float] = ()) -> str:
    """A probability as a bar, with a whisker from a low to a high end if given."""
    width = 110
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="12" role="img" aria-label="{value:.3f}">',
        f'<rect x="0" y="2" width="{width}" height="8" fill="#e3e8ee"/>',
        f'<rect x="0" y="2" width="{max(0.0, min(1.0, value)) * width:.1f}" height="8" fill="{ACCENT}"/>',
    ]
    if whisker:
        low, high = whisker
        parts.append(f'<path d="M{low * width:.1f} 6H{high * width:.1f}" stroke="{INK}" stroke-width="1.5"/>')
    return "".join([*parts, "</svg>"])


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table; `columns` and `caption` are text, cells of `rows` are HTML already."""
    head = "".join(f'<th scope="col">{escaped(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def network_html(network: BayesianNetwork) -> str:
    return f"<div><p><code>{escaped(repr(network))}</code></p>{graph_svg(network.structure)}</div>"


def release_html(release: Release) -> str:
    """The guarantee in one line, then the graph with each node's share of the budget."""
    return (
        f"<div><p><b>{escaped(summary(release))}</b> · method {escaped(release.method)} · "
        f"{escaped(repr(release.network))}</p>{graph_svg(release.structure, budget_marks(release.allocation))}</div>"
    )


def budget_marks(allocation: Mapping[str, float]) -> dict[str, Mark]:
    most = max(allocation.values(), default=0.0)
    return {node: Mark(f"ε {share:.3g}", share / most if most else 0.0) for node, share in allocation.items()}


def allocation_html(allocation: Mapping[str, float]) -> str:
    """Nodes by share of the budget, largest first."""
    most = max(allocation.values(), default=0.0) or 1.0
    ordered = sorted(allocation.items(), key=lambda item: -item[1])
    rows = [(escaped(node), f"{share:.4g}", bar_svg(share / most)) for node, share in ordered]
    caption = "ε of the tables that hold each node's family; nodes share tables, so these do not add up"
    return html_table(["node", "epsilon", "share of the largest"], rows, caption)


def answer_html(answer: Answer, bars: tuple[NDArray[np.float64], NDArray[np.float64]] | None) -> str:
    """One line per combination of states, most probable first, at most 40."""
    cells, left = answer.most_probable(_SHOWN_ROWS)
    rows = []
    for cell in cells:
        labels = [escaped(states[i]) for states, i in zip(answer.states, cell, strict=True)]
        value = float(answer.values[cell])
        ends = [float(end[cell]) for end in bars] if bars else []
        shown = [" – ".join(map(probability, ends))] if bars else []
        rows.append((*labels, probability(value), *shown, bar_svg(value, ends)))
    columns = [*answer.variables, "probability", *(["90% interval"] if bars else []), ""]
    return html_table(columns, rows, _asked(answer)) + _left_out(left)


def comparison_html(found: Comparison, bars: tuple[NDArray[np.float64], NDArray[np.float64]] | None) -> str:
    """The same for two answers and their difference, by the first answer."""
    cells, left = found.first.most_probable(_SHOWN_ROWS)
    rows = []
    for cell in cells:
        labels = [escaped(states[i]) for states, i in zip(found.states, cell, strict=True)]
        shown = [probability(float(answer.values[cell])) for answer in (found.first, found.second)]
        ends = [" – ".join(f"{end[cell]:+.3f}" for end in bars)] if bars else []
        rows.append((*labels, *shown, f"{found.values[cell]:+.3f}", *ends))
    columns = [*found.variables, "first", "second", "difference", *(["90% interval"] if bars else [])]
    return html_table(columns, rows, f"{_asked(found.first)} − {_asked(found.second)}") + _left_out(left)


def _asked(answer: Answer) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in answer.evidence.items())
    return f"P({', '.join(answer.variables)}{' | ' + given if given else ''})"


def _left_out(left: int) -> str:
    return f"<p>and {left} combinations that are less probable</p>" if left else ""
