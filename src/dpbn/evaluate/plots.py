"""Figures of experiments: labelled, with error bars, safe for colour-blind readers, as SVG and PNG.

Colours are Okabe and Ito's; every method also has its own marker, so that the figures read in grey.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from dpbn.errors import extra
from dpbn.evaluate.methods import METHODS
from dpbn.evaluate.saving import Saving
from dpbn.evaluate.scaling import NODES_ROWS, ROWS_NODES, Cost

if TYPE_CHECKING:
    import pandas

P = ParamSpec("P")

_STYLE = {
    "uniform": ("#0072B2", "o", "-"),
    "icml2020": ("#D55E00", "s", "--"),
    "optimized": ("#009E73", "D", "-"),
    "optimized-delta": ("#56B4E9", "^", "-."),
    "hdmm": ("#CC79A7", "v", ":"),
    "privbayes": ("#E69F00", "P", ":"),
    "exact": ("#777777", "", (0, (1, 1))),
}
LABELS = {
    "row": "parameter L1 (row)",
    "weighted": "parameter L1 (weighted)",
    "row_kl_printed": "parameter KL",
    "joint_kl": "KL of the joint",
    "query": "query L1",
    "query_kl_printed": "query KL",
}


_RC: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.fonttype": "none",  # text stays text: smaller files, readable to screen readers
    "svg.hashsalt": "dpbn",  # the same figure gives the same file
    "legend.frameon": False,
}


def _styled(draw: Callable[P, Path]) -> Callable[P, Path]:
    """Drawn and saved in our style, which a notebook's own figures do not take on."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Path:
        with extra("matplotlib", "plots"):
            import matplotlib as mpl
        with mpl.rc_context(_RC):
            return draw(*args, **kwargs)

    return drawn


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None}, bbox_inches="tight")
    figure.savefig(path.with_suffix(".png"), dpi=130, bbox_inches="tight")
    return path.with_suffix(".png")


def _logarithmic(axes: Any, side: str) -> None:
    """A logarithmic x or y axis, with ticks at 0.02, 0.05, 0.1 instead of powers of ten."""
    from matplotlib import ticker

    axes.set(**{f"{side}scale": "log"})
    axis = getattr(axes, f"{side}axis")
    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high / low < 150 else (1.0,)
    axis.set_major_locator(ticker.LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}" if value < 1e3 else _thousands(value)))
    axis.set_minor_locator(ticker.NullLocator())


def _thousands(value: float) -> str:
    return f"{value / 1e3:g}k" if value < 1e6 else f"{value / 1e6:g}M"


def _line(axis: Any, table: pandas.DataFrame, method: str, across: str, measure: str) -> None:
    mine = table[table["method"] == method].sort_values(across)
    mine = mine[mine[measure].notna()]
    if not len(mine):
        return
    colour, marker, dash = _STYLE[method]
    if method == "exact" and mine[across].nunique() == 1 and across == "epsilon":
        axis.axhline(float(mine[measure].iloc[0]), color=colour, linestyle=dash, label=METHODS[method].title)
        return
    errors = mine[f"{measure}_se"].fillna(0.0)
    lower = np.minimum(errors, 0.9 * mine[measure])  # a bar may not reach 0 on a logarithmic axis
    axis.errorbar(
        mine[across], mine[measure], yerr=[lower, errors], color=colour, marker=marker, linestyle=dash,
        markersize=4.5, linewidth=1.4, capsize=2.5, label=METHODS[method].title,
    )  # fmt: skip


@_styled
def curves(
    table: pandas.DataFrame,
    path: Path,
    *,
    networks: Sequence[str],
    measures: Mapping[str, str],
    across: str,
    methods: Sequence[str],
    label: str,
    logarithmic: bool = False,
) -> Path:
    """One panel per measure (down) and network (across): the mean of a measure with its standard error."""
    shape = (len(measures), len(networks))
    figure = _figure(3.1 * shape[1] + 0.6, 2.4 * shape[0] + 0.8)
    axes = figure.subplots(*shape, squeeze=False)
    for i, (measure, title) in enumerate(measures.items()):
        for j, network in enumerate(networks):
            axis = axes[i][j]
            for method in methods:
                _line(axis, table[table["network"] == network], method, across, measure)
            if logarithmic:
                _logarithmic(axis, "x")
            _logarithmic(axis, "y")
            if i == 0:
                axis.set_title(network)
            if j == 0:
                axis.set_ylabel(title)
            if i == shape[0] - 1:
                axis.set_xlabel(label)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.tight_layout()
    figure.legend(handles, labels, loc="lower center", ncol=min(len(labels), 3), bbox_to_anchor=(0.5, 1.0))
    return _save(figure, path)


@_styled
def saving_plot(found: Sequence[Saving], path: Path, *, network: str, epsilon: float, measures: Sequence[str]) -> Path:
    """One network: per method and measure, how many times D-Ind's budget it is worth."""
    mine = [s for s in found if s.network == network and s.epsilon == epsilon and s.measure in measures]
    methods = sorted(
        {s.method for s in mine if s.method != "uniform"},
        key=lambda m: float(np.mean([np.log(s.factor) for s in mine if s.method == m])),
    )
    figure = _figure(8.2, 0.52 * len(methods) + 1.6)
    axis = figure.subplots()
    colours, markers = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"), "osD^v"
    for k, measure in enumerate(measures):
        for place, method in enumerate(methods):
            saving = next((s for s in mine if s.method == method and s.measure == measure), None)
            if saving is None:
                continue
            height = place - (k - (len(measures) - 1) / 2) * 0.16  # from above, as in the legend
            low, high = (saving.factor if np.isnan(v) else v for v in (saving.low, saving.high))
            axis.errorbar(
                saving.factor, height, xerr=[[max(saving.factor - low, 0)], [max(high - saving.factor, 0)]],
                fmt=markers[k], color=colours[k], capsize=2, markersize=5, linewidth=1.1,
                fillstyle="none" if saving.bound else "full", label=LABELS[measure] if not place else None,
            )  # fmt: skip
    axis.axvline(1.0, color="#333333", linewidth=1, linestyle="--")
    axis.annotate("D-Ind", (1.0, len(methods) - 0.38), ha="center", va="bottom", fontsize=9, annotation_clip=False)
    axis.set_xscale("log")
    axis.set_ylim(-0.6, len(methods) - 0.4)
    axis.set_yticks(range(len(methods)), [METHODS[m].title for m in methods])
    ticks = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
    low_end, high_end = axis.get_xlim()
    axis.set_xticks([t for t in ticks if low_end <= t <= high_end])
    axis.set_xticklabels([f"{t:g}×" for t in ticks if low_end <= t <= high_end])
    axis.minorticks_off()
    axis.set_xlabel(f"budget D-Ind needs for the same error, as a multiple of ε = {epsilon:g} (hollow: bound only)")
    axis.set_title(f"{network}: budget saving", pad=16)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return _save(figure, path)


@_styled
def cost_plot(costs: Sequence[Cost], path: Path) -> Path:
    """Seconds and megabytes of one learning, against nodes and against rows."""
    figure = _figure(8.4, 5.6)
    axes = figure.subplots(2, 2, sharex="col")
    for j, (across, fixed, value) in enumerate((("nodes", "rows", NODES_ROWS), ("rows", "nodes", ROWS_NODES))):
        for method in dict.fromkeys(cost.method for cost in costs):
            mine = sorted(
                (c for c in costs if c.method == method and getattr(c, fixed) == value),
                key=lambda c: getattr(c, across),
            )
            colour, marker, dash = _STYLE[method]
            for i, quantity in enumerate(("seconds", "megabytes")):
                heights = [max(getattr(c, quantity), 0.1 if i else 1e-3) for c in mine]
                axes[i][j].plot(
                    [getattr(c, across) for c in mine], heights,
                    color=colour, marker=marker, linestyle=dash, label=METHODS[method].title,
                )  # fmt: skip
        axes[0][j].set_title(f"{value:,} {fixed}")
        axes[1][j].set_xlabel(across)
    for axis in axes.ravel():
        _logarithmic(axis, "x")
        _logarithmic(axis, "y")
    axes[0][0].set_ylabel("seconds")
    axes[1][0].set_ylabel("megabytes above the start")
    axes[0][0].legend(loc="upper left")
    figure.tight_layout()
    return _save(figure, path)
