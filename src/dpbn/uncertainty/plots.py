"""Pictures of forecasts (extra `plots`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpbn.errors import InputError, extra
from dpbn.statement import visible

if TYPE_CHECKING:
    from dpbn.uncertainty.forecast import Forecast

LONGEST_NAME = 40
BLUE, ORANGE = "#0072B2", "#D55E00"  # Okabe and Ito: told apart by every eye


def plot_forecast(forecast: Forecast, path: str | Path) -> Path:
    """Bars of expected error per node, largest first; nodes with rows below the noise in another colour."""
    with extra("matplotlib", "plots"):
        from matplotlib.figure import Figure
    path = Path(path)
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"a picture must end in .png or .svg, got {path.name!r}")
    nodes = sorted(forecast.node_errors, key=lambda n: forecast.node_errors[n])
    errors = [forecast.node_errors[n] for n in nodes]
    colours = [ORANGE if forecast.rare_rows[n] > 0.5 else BLUE for n in nodes]
    figure = Figure(figsize=(7, max(2.5, 0.22 * len(nodes) + 1.2)), layout="constrained")
    axes = figure.add_subplot()
    bars = axes.barh(range(len(nodes)), errors, color=colours, height=0.7)
    for bar, colour in zip(bars, colours, strict=True):
        bar.set(hatch="///" if colour == ORANGE else None, edgecolor="white", linewidth=0)
    shown = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…" for name in map(visible, nodes)]
    axes.set_yticks(range(len(nodes)), shown, parse_math=False)  # a name may hold dollars
    axes.set_axisbelow(True)
    axes.set_xlabel("expected error (L1 distance of a CPT row, rows weighted by how often they occur)", fontsize=8)
    axes.set_title(forecast.headline, fontsize=9, loc="left", wrap=True)
    axes.tick_params(axis="y", labelsize=8)
    axes.margins(y=0.01)
    axes.grid(axis="x", alpha=0.3)
    if ORANGE in colours:
        note = "orange, hatched: most of its rows lie below the noise"
        axes.text(0.98, 0.03, note, transform=axes.transAxes, ha="right", color=ORANGE, fontsize=8)
    figure.savefig(path, dpi=130)
    return path
