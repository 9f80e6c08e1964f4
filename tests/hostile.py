"""Names and labels as an enemy would choose them."""

import numpy as np

import dpbn

LABELS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(2)</script>",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "javascript:alert(1)",
    "[link](https://example.invalid/x)",
    "![x](https://example.invalid/y.png)",
    "`code` | pipe",
    "a\nb\r\nc",
    "\u202egnp.exe",
    "\x07bell\x00nul",
    "x" * 300,
    "日本語",
    "=1+1",
    "{node}",
)


def hostile_network():
    """A chain whose every name and label is hostile."""
    first, second = LABELS[0], LABELS[1]
    schema = dpbn.Schema(
        (dpbn.Variable(first, LABELS), dpbn.Variable(second, LABELS[2:6]), dpbn.Variable("{node}", ("a", "b")))
    )
    dag = dpbn.Dag((first, second, "{node}"), {second: (first,), "{node}": (second,)})
    structure = dpbn.Structure(schema, dag)
    cpts = {node: np.full(structure.shape(node), 1 / structure.shape(node)[-1]) for node in structure.nodes}
    return dpbn.BayesianNetwork(structure, cpts)
