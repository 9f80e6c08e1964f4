"""Names and states as an enemy would choose them."""

from __future__ import annotations

import dpbn

_SCRIPT = "window.hacked=1"
_SEEDS = (
    f"<script>{_SCRIPT}</script>",
    f"<img src=x onerror={_SCRIPT}>",
    f'"><svg onload={_SCRIPT}>',
    f"'><body onload='{_SCRIPT}'>",
    f"<iframe srcdoc='<script>parent.{_SCRIPT}</script>'>",
    f"javascript:{_SCRIPT}",
    f"</text><foreignObject><script>{_SCRIPT}</script></foreignObject>",
    f"</title><script>{_SCRIPT}</script>",
    f"<style>@import 'javascript:{_SCRIPT}'</style>",
    f"<a href='javascript:{_SCRIPT}'>x</a>",
    f"${{{_SCRIPT}}}",
    f"{{{{constructor.constructor('{_SCRIPT}')()}}}}",
    f"`;{_SCRIPT};`",
    f"');{_SCRIPT};//",
    f"]]><script>{_SCRIPT}</script>",
    f"<!--<script>-->{_SCRIPT}",
    f"<math><mtext><script>{_SCRIPT}</script></mtext></math>",
    f"<template><script>{_SCRIPT}</script></template>",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "\u202eevil\u202c",
    "a\u0000b\u0007c",
    "line\nbreak\r\ttab",
    "\u2028\u2029",
    "\u200b\ufeff",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "%3Cscript%3E",
    "&lt;script&gt;&#x3C;",
    "🧬👩‍🔬",
    "ﷺ" * 20,
    "Z̷̡͔̗̯̘̭" * 10,
    "x" * 5000,
    '"',
    "'",
    "\\",
    "#",
    "0",
)
_WRAPS = ("{}", " {}", "{} ", "<b>{}</b>", '"{}"', "{}\u202e")


def hostile_labels() -> list[str]:
    """At least 200 distinct labels."""
    return list(dict.fromkeys(wrap.replace("{}", seed) for wrap in _WRAPS for seed in _SEEDS))


def hostile_release(labels: list[str]) -> dpbn.Release:
    """A chain with a node of every name, whose states are hostile as well."""
    variables = [
        dpbn.Variable(name, (labels[(i * 3) % len(labels)], f"{labels[(i * 3 + 1) % len(labels)]}!"))
        for i, name in enumerate(labels)
    ]
    parents = {name: (labels[i - 1],) for i, name in enumerate(labels) if i % 8}
    structure = dpbn.Structure(dpbn.Schema(tuple(variables)), dpbn.Dag(tuple(labels), parents))
    cpts = {name: [[0.7, 0.3], [0.2, 0.8]] if structure.parents(name) else [0.6, 0.4] for name in structure.nodes}
    network = dpbn.BayesianNetwork(structure, cpts)
    return dpbn.learn(network.sample(1000, seed=0), structure, epsilon=5000.0, method="uniform")
