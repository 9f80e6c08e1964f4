"""Conversion to and from pyAgrum's BayesNet."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbn.domain import Schema, Variable
from dpbn.errors import FormatError, extra
from dpbn.graph import Dag
from dpbn.network import BayesianNetwork, Structure, check_cells


def to_pyagrum(network: BayesianNetwork) -> Any:
    """The same network as a pyAgrum BayesNet."""
    with extra("pyagrum", "pyagrum"):
        import pyagrum
    model = pyagrum.BayesNet()
    for node in network.nodes:
        cut = next((label for label in (node, *network.states(node)) if "\0" in label), None)
        if cut is not None:  # pyAgrum would keep only what stands before it
            raise FormatError(f"a label in pyAgrum must not hold the character NUL, got {cut!r}")
        model.add(pyagrum.LabelizedVariable(node, node, list(network.states(node))))
    for parent, node in network.structure.dag.arcs:
        model.addArc(parent, node)
    for node in network.nodes:
        tensor, family = model.cpt(node), network.structure.family(node).names
        # a pyAgrum tensor lists its variables fastest first: its numpy axes are those names reversed
        order = [family.index(name) for name in reversed(tensor.names)]
        tensor[:] = np.ascontiguousarray(np.transpose(network.cpt(node), order))
    return model


def from_pyagrum(model: Any) -> BayesianNetwork:
    """The network in a pyAgrum BayesNet; states are its variables' labels."""
    try:
        nodes = [model.variable(number).name() for number in model.nodes()]
        variables = tuple(Variable(node, tuple(model.variable(node).labels())) for node in nodes)
        tensors = {node: model.cpt(node) for node in nodes}
    except AttributeError:
        raise FormatError(f"a model must be a pyagrum.BayesNet, got {type(model).__name__}") from None
    parents = {node: tuple(tensor.names[1:]) for node, tensor in tensors.items()}
    structure = Structure(Schema(variables), Dag(tuple(nodes), parents))
    check_cells(structure)
    cpts = {}
    for node, tensor in tensors.items():
        axes = list(reversed(tensor.names))
        order = [axes.index(name) for name in structure.family(node).names]
        cpts[node] = np.transpose(tensor.toarray(), order)
    return BayesianNetwork(structure, cpts)
