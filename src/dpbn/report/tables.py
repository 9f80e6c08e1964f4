"""The probability tables of a release as HTML, one fold per node."""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dpbn.display import escaped, html_table, probability
from dpbn.errors import counted
from dpbn.report.facts import LEVEL, Facts, Interval, parent_rows

MOST_ROWS = 96  # of one table
MOST_CELLS = 60_000  # of the page


def probability_tables(facts: Facts) -> str:
    """Every node's table, folded; long tables are cut and say so."""
    parts: list[str] = []
    cells = 0
    nodes = facts.release.network.nodes
    for node in nodes:
        cells += min(MOST_ROWS, facts.release.network.cpt(node).size) * len(facts.release.network.states(node))
        if cells > MOST_CELLS:
            parts.append(f"<p>The tables of {counted(len(nodes) - len(parts), 'node')} more are in the file.</p>")
            break
        parts.append(_fold(facts, node, opened=len(nodes) <= 10))
    if facts.intervals:
        assumed = " Records are taken as independent: where those of one person are alike, they are too narrow."
        several = assumed if facts.release.guarantee.max_contributions > 1 else ""
        parts.insert(
            0,
            f"<p>Beside each probability: its {LEVEL:.0%} interval, privacy noise and sampling error together. "
            f"Intervals are computed from the published noise laws; they cost no budget.{several}</p>",
        )
    return "".join(parts)


def _fold(facts: Facts, node: str, opened: bool) -> str:
    network, support = facts.release.network, facts.support.get(node)
    cpt, parents, ends = network.cpt(node), network.parents(node), facts.intervals.get(node)
    rows = []
    for index, pairs in islice(parent_rows(facts.release, node), MOST_ROWS):
        labels = [f"<i>{escaped(state)}</i>" for _, state in pairs]
        values = [_cell(cpt, (*index, i), ends) for i in range(cpt.shape[-1])]
        behind = []
        if support:
            weak = bool(support.below_floor[index])
            flag = ' <span class="poor">below the floor</span>' if weak else ""
            behind = [f"{support.counts[index]:.0f} ± {support.row_deviation:.0f}{flag}"]
        rows.append((*labels, *values, *behind))
    total = cpt.size // cpt.shape[-1]
    more = f"<p>and {counted(total - len(rows), 'row')} more; all are in the file.</p>" if total > len(rows) else ""
    columns = [*parents, *network.states(node), *(["noisy records"] if support else [])]
    title = f"<b>{escaped(node)}</b>{' given ' + escaped(', '.join(parents)) if parents else ''}"
    size = f"{counted(total, 'row')} × {counted(cpt.shape[-1], 'state')}"
    variable = facts.release.structure.schema[node]
    column = "" if variable.source_column == node else f"column: {variable.column}"
    states = ", ".join(f"{state}: {meaning}" for state, meaning in variable.meanings.items())
    words = "; ".join(filter(None, (column, states)))
    ranges = f'<p class="note">{escaped(words)}</p>' if words else ""
    if support and support.left_out:
        alike = escaped(", ".join(support.left_out))
        ranges += f'<p class="note">The same whatever the states of {alike}: noise would have drowned such rows.</p>'
    return (
        f"<details{' open' if opened else ''}><summary>{title} <small>{size}</small></summary>"
        f'{ranges}<div class="scroll">{html_table(columns, rows)}</div>{more}</details>'
    )


def _cell(cpt: NDArray[np.float64], at: tuple[int, ...], ends: Interval | None) -> str:
    value = float(cpt[at])
    shown = f'<span class="v{round(value * 10)}">{probability(value)}</span>'
    return f"{shown} <small>{ends[0][at]:.3f}–{ends[1][at]:.3f}</small>" if ends else shown
