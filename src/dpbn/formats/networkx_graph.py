"""networkx.DiGraph with the states of each node in its attribute "states", and its CPT, if any, in "cpt"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpbn.domain import Schema, Variable
from dpbn.errors import FormatError, extra
from dpbn.graph import Dag
from dpbn.network import BayesianNetwork, Structure

if TYPE_CHECKING:
    import networkx


def to_networkx(model: Structure | BayesianNetwork) -> networkx.DiGraph:
    """A DiGraph with "states" on every node, and "cpt" (parents in the order of `graph.pred`, child last)."""
    with extra("networkx", "networkx"):
        import networkx
    graph = networkx.DiGraph()
    for node in model.nodes:
        graph.add_node(node, states=model.states(node))
        if isinstance(model, BayesianNetwork):
            graph.nodes[node]["cpt"] = model.cpt(node)
    for node in model.nodes:
        graph.add_edges_from((parent, node) for parent in model.parents(node))
    return graph


def structure_from_networkx(graph: networkx.DiGraph) -> Structure:
    """The structure of a DiGraph; a node's parents stand in the order of `graph.pred`."""
    if not _is(graph, "is_directed") or _is(graph, "is_multigraph"):
        raise FormatError(f"a graph must be a networkx.DiGraph, got {type(graph).__name__}")
    variables = []
    for node, attributes in graph.nodes(data=True):
        if not isinstance(node, str):
            raise FormatError(f"a node must be named by a string, got {node!r}")
        states = attributes.get("states")
        if not isinstance(states, (list, tuple)):
            raise FormatError(f"node {node!r} must have an attribute 'states' with its labels, got {states!r}")
        variables.append(Variable(node, tuple(states)))
    dag = Dag(tuple(graph.nodes), {node: tuple(graph.pred[node]) for node in graph.nodes})
    return Structure(Schema(tuple(variables)), dag)


def network_from_networkx(graph: networkx.DiGraph) -> BayesianNetwork:
    """The network of a DiGraph whose nodes carry "states" and "cpt"."""
    structure = structure_from_networkx(graph)
    missing = [node for node in structure.nodes if "cpt" not in graph.nodes[node]]
    if missing:
        raise FormatError(f"node {missing[0]!r} must have an attribute 'cpt', got none")
    return BayesianNetwork(structure, {node: graph.nodes[node]["cpt"] for node in structure.nodes})


def _is(graph: Any, question: str) -> bool:
    ask = getattr(graph, question, None)
    return bool(ask()) if callable(ask) else False
