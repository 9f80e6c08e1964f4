"""Conversion to and from pgmpy's DiscreteBayesianNetwork."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbn.domain import Schema, Variable
from dpbn.errors import FormatError, extra
from dpbn.graph import Dag
from dpbn.network import BayesianNetwork, Structure, check_cells


def to_pgmpy(network: BayesianNetwork) -> Any:
    """The same network as a pgmpy DiscreteBayesianNetwork."""
    with extra("pgmpy", "pgmpy"):
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(network.nodes)
    model.add_edges_from(network.structure.dag.arcs)
    for node in network.nodes:
        cpt, parents = network.cpt(node), network.parents(node)
        model.add_cpds(
            TabularCPD(
                node,
                cpt.shape[-1],
                cpt.reshape(-1, cpt.shape[-1]).T,  # pgmpy: child's states down, parent configurations across
                evidence=list(parents) or None,
                evidence_card=list(cpt.shape[:-1]) or None,
                state_names={name: list(network.states(name)) for name in (node, *parents)},
            )
        )
    return model


def from_pgmpy(model: Any) -> BayesianNetwork:
    """The network in a pgmpy model that has a TabularCPD for every node; state names become strings."""
    try:
        nodes, cpds = list(model.nodes()), {cpd.variable: cpd for cpd in model.get_cpds()}
    except AttributeError:
        raise FormatError(f"a model must be a pgmpy DiscreteBayesianNetwork, got {type(model).__name__}") from None
    missing = [node for node in nodes if node not in cpds]
    if missing:
        raise FormatError(f"node {missing[0]!r} must have a CPD, got none")
    variables = tuple(Variable(node, tuple(str(state) for state in cpds[node].state_names[node])) for node in nodes)
    parents = {node: tuple(cpds[node].variables[1:]) for node in nodes}
    structure = Structure(Schema(variables), Dag(tuple(nodes), parents))
    check_cells(structure)
    return BayesianNetwork(structure, {node: np.moveaxis(cpds[node].values, 0, -1) for node in nodes})
