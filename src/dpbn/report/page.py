"""The report as one HTML page: no script, no address, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from importlib import resources

from dpbn.display import Mark, escaped, graph_svg, html_table
from dpbn.errors import counted
from dpbn.formats import NOT_PRIVATE
from dpbn.report.facts import CONTENT_ID, Facts
from dpbn.report.tables import probability_tables
from dpbn.statement import comma_list, method_in_words, points, summary

COLOURS = {"good": "#2e7d4f", "fair": "#b07a1e", "poor": "#b3403a", "public": "#5a6877", "exact": "#5a6877"}
MOST_WEAK_ROWS = 200


def page(facts: Facts) -> str:
    """The whole page. Its style sheet is allowed by hash; everything else is forbidden by policy."""
    style = (resources.files("dpbn.report") / "assets" / "report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    sections = [
        f'<section id="{anchor}"><h2>{heading}</h2>{body(facts)}</section>' for anchor, _, heading, body in _SECTIONS
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escaped(facts.title)} – dpbn report</title><style>{style}</style></head><body><main>"
        + "".join([_head(facts), *sections])
        + "</main></body></html>\n"
    )


def _head(facts: Facts) -> str:
    release, network = facts.release, facts.release.network
    badge = "private" if release.private else "danger"
    alert = "" if release.private else f'<p class="alert">{NOT_PRIVATE}</p>'
    figures = [
        ("nodes", len(network.nodes)),
        ("arcs", len(release.structure.dag.arcs)),
        ("free parameters", network.free_parameters),
        ("published noisy tables", len(release.measurements)),
        ("rows below the noise floor", f"{len(facts.weak_rows)} of {facts.rows}"),
    ]
    tiles = "".join(
        f"<div><b>{value}</b><span>{label[:-1] if value == 1 else label}</span></div>" for label, value in figures
    )
    links = " ".join(f'<a href="#{anchor}">{text}</a>' for anchor, text, _, _ in _SECTIONS)
    return (
        f'<header><p class="kind">dpbn release report</p><h1>{escaped(facts.title)}</h1>'
        f'<p><span class="badge {badge}">{escaped(summary(release))}</span></p>{alert}'
        "<p>A Bayesian network whose structure was public and whose probabilities were learned from a private table: "
        f'{escaped(method_in_words(release))}.</p><div class="tiles">{tiles}</div><nav>{links}</nav></header>'
    )


def _guarantee(facts: Facts) -> str:
    items = "".join(f"<dt>{escaped(p.question)}</dt><dd>{escaped(p.answer)}</dd>" for p in points(facts.release))
    return f"<dl>{items}</dl><p class='note'>The questions follow NIST SP 800-226.</p>"


def _graph(facts: Facts) -> str:
    allocation = facts.release.allocation
    most = max(allocation.values(), default=0.0)
    marks = {}
    for node in facts.release.network.nodes:
        share, grade = allocation.get(node), facts.reliability(node)
        spent = "" if share is None else f"ε {share:.3g} · "
        marks[node] = Mark(f"{spent}{grade}", share / most if share and most else None, COLOURS[grade])
    legend = (
        "<p>Each node shows the budget spent on tables that hold its family (the bar is relative to the largest; a "
        "table may serve several nodes, so these need not add up to ε) and "
        "how well the noise lets it be known: <b class='good'>good</b> under 2 %, <b class='fair'>fair</b> under 10 %, "
        "<b class='poor'>poor</b> above, of probability put in the wrong place on average, before smoothing.</p>"
    )
    drawing = graph_svg(facts.release.structure, marks, "the graph")
    wide = re.match(r'<svg \S+ class="wide" viewBox="\S+ \S+ (\d+) (\d+)"', drawing)
    if not wide:
        return f'{legend}<div class="figure">{drawing}</div>'
    named = drawing.replace("<svg ", '<svg id="drawing" ', 1)
    return (  # what a page shows first of a drawing that is scrolled may be an empty corner
        f'{legend}<div class="figure"><svg viewBox="0 0 {wide[1]} {wide[2]}" width="{wide[1]}" height="{wide[2]}" '
        'role="img" aria-label="the whole graph"><use href="#drawing"/></svg></div>'
        f'<details><summary>Full size, to scroll</summary><div class="figure">{named}</div></details>'
    )


def _nodes(facts: Facts) -> str:
    release, rows = facts.release, []
    for node in release.network.nodes:
        grade, support = facts.reliability(node), facts.support.get(node)
        share = release.allocation.get(node)
        noise, error, weak = "–", "–", "–"
        if support:
            noise, error = f"± {support.cell_deviation:.3g}", f"{support.expected_error:.1%}"
            weak = f"{int(support.below_floor.sum())} of {support.below_floor.size}"
        rows.append(
            (
                f"<b>{escaped(node)}</b>",
                escaped(comma_list(release.network.parents(node))) or "–",
                str(len(release.network.states(node))),
                "–" if share is None else f"{share:.4g}",
                noise,
                error,
                weak,
                f'<span class="{grade}">{grade}</span>',
            )
        )
    columns = [
        "node",
        "parents",
        "states",
        "epsilon",
        "noise per cell",
        "expected misplaced",
        "weak rows",
        "reliability",
    ]
    words = (
        "<p>± is one standard deviation of the noise, in records. Misplaced is the probability put in the wrong place; "
        "weak rows are those below the noise floor.</p>"
    )
    return f'{words if facts.support else ""}<div class="scroll">{html_table(columns, rows)}</div>'


def _weak(facts: Facts) -> str:
    if not facts.support:
        return "<p>No noise was drawn, so there is no floor.</p>"
    if not facts.weak_rows:
        return "<p>None: behind every row stand clearly more records than noise.</p>"
    rows = [
        (
            f"<b>{escaped(row.node)}</b>",
            escaped(", ".join(f"{parent} = {state}" for parent, state in row.parents)) or "(no parents)",
            f"{row.count:.0f} ± {row.deviation:.0f}",
        )
        for row in facts.weak_rows[:MOST_WEAK_ROWS]
    ]
    left = len(facts.weak_rows) - len(rows)
    more = f"<p>and {counted(left, 'row')} more; all are in the file.</p>" if left else ""
    intro = (
        "<p>So few records stand behind these rows (less than two deviations of the noise) that they cannot be told "
        "from empty ones, or from each other. Their probabilities are close to a guess; answers that lean on them are "
        "too.</p>"
    )
    table = html_table(["node", "parents are", "noisy records"], rows)
    opened, size = " open" if len(rows) <= 20 else "", counted(len(facts.weak_rows), "row")
    return f'{intro}<details{opened}><summary>{size}</summary><div class="scroll">{table}</div>{more}</details>'


def _load(facts: Facts) -> str:
    name = shlex.quote(facts.file)
    lines = (
        "# Python",
        "import dpbn",
        f"ask = dpbn.Inference(dpbn.load_release({facts.file!r}))",
        f"print(ask.query([{facts.release.network.nodes[0]!r}]).values)",
        "",
        "# a what-if page in the browser",
        f"dpbn serve {name}",
        "",
        "# pgmpy, pyAgrum, bnlearn (R), GeNIe and others read BIF or XMLBIF",
        f"dpbn convert {name} model.bif",
    )
    return "<pre>" + "\n".join(map(escaped, lines)) + "</pre>"


def _made(facts: Facts) -> str:
    release = facts.release
    options = ", ".join(f"{name} = {value}" for name, value in release.options.items()) or "none"
    public = ", ".join(release.public_nodes) or "none"
    entries = [
        ("Method", f"{release.method}: {method_in_words(release)}"),
        ("Options", options),
        ("Public probabilities taken as given", public),
        ("Public Dirichlet prior", "yes" if release.prior else "none"),
        ("Library", release.library),
        ("Content id", f"{release.id} ({CONTENT_ID})"),
    ]
    return "<dl>" + "".join(f"<dt>{escaped(k)}</dt><dd>{escaped(v)}</dd>" for k, v in entries) + "</dl>"


_SECTIONS = (  # anchor, text of the link to it, heading, what it holds
    ("guarantee", "Guarantee", "The guarantee in plain words", _guarantee),
    ("graph", "Graph", "The graph and where the budget went", _graph),
    ("nodes", "Nodes", "Nodes", _nodes),
    ("floor", "Noise floor", "Rows below the noise floor", _weak),
    ("tables", "Tables", "Probability tables", probability_tables),
    ("load", "Load it", "How to load the file elsewhere", _load),
    ("made", "How it was made", "How it was made", _made),
)
