"""MODEL_CARD.md: what the model is for, how it was made, what it may and may not be used for."""

from __future__ import annotations

import shlex

from dpbn.errors import counted
from dpbn.formats import NOT_PRIVATE
from dpbn.report.facts import CONTENT_ID, Facts
from dpbn.statement import markdown_text, method_in_words, points, summary, visible

MOST_NODES = 200


def model_card(facts: Facts) -> str:
    """The card as Markdown; names and labels are escaped."""
    release = facts.release
    network = release.network
    nodes, arcs = counted(len(network.nodes), "node"), counted(len(release.structure.dag.arcs), "arc")
    free = counted(network.free_parameters, "free parameter")
    warning = "" if release.private else f"> **{NOT_PRIVATE}**\n\n"
    name = visible(shlex.quote(facts.file))
    guarantee = "\n".join(f"- **{p.question}** {markdown_text(p.answer)}" for p in points(release))
    return f"""# Model card: {markdown_text(facts.title)}

{warning}A Bayesian network of {nodes}, {arcs} and {free}.
The structure was public; the probabilities were learned from a private table ({method_in_words(release)}).
Guarantee: {markdown_text(summary(release))}; made with {markdown_text(release.library)}.
Content id of the release: `{release.id}` ({CONTENT_ID}).

## Intended use

- Marginal and conditional queries, most probable explanations, prediction of one node from others, synthetic rows.
- Results about groups and populations. Not for decisions about a person without a human who can overrule them.
- Arcs are statistical. Whether they are causes depends on where the structure came from, not on this file.

## Privacy

{guarantee}

## How good it is

{_quality(facts)}

## How to load it

In Python, in a browser, and for other software:

    dpbn.load_release({facts.file!r})
    dpbn serve {name}
    dpbn convert {name} model.bif
"""


def _quality(facts: Facts) -> str:
    release = facts.release
    weak = len(facts.weak_rows)
    lines = [
        f"{weak} of {facts.rows} rows of the probability tables lie below the noise floor: so few records that the row "
        "cannot be told from an empty one, or from others. Answers that lean on them are guesses.",
        "",
        "| node | epsilon | expected misplaced probability | reliability |",
        "|---|---|---|---|",
    ]
    for node in release.network.nodes[:MOST_NODES]:
        share = release.allocation.get(node)
        error = f"{facts.support[node].expected_error:.1%}" if node in facts.support else "–"
        shown = "–" if share is None else f"{share:.4g}"
        lines.append(f"| {markdown_text(node)} | {shown} | {error} | {facts.reliability(node)} |")
    left = len(release.network.nodes) - MOST_NODES
    if left > 0:
        lines.append(f"\nand {counted(left, 'node')} more.")
    return "\n".join(lines)
