"""Random networks and the brute-force oracle every strategy is checked against."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable
from dpbn.inference import BatchInference


def random_network(seed: int, nodes: int, zeros: float = 0.0, max_size: int = 3, density: float = 0.4):
    """A DAG with mixed domains (single states included), isolated nodes, and a share of zero cells."""
    generator = np.random.default_rng(seed)
    names = tuple(f"n{i}" for i in range(nodes))
    sizes = generator.integers(1, max_size + 1, nodes)
    parents, cpts = {}, {}
    for i, name in enumerate(names):
        candidates = [j for j in range(i) if generator.random() < density][-3:]
        generator.shuffle(candidates)
        parents[name] = tuple(names[j] for j in candidates)
        table = generator.gamma(0.7, size=(*(sizes[j] for j in candidates), sizes[i])) + 1e-9
        table[generator.random(table.shape) < zeros] = 0.0
        table[..., 0] += table.sum(axis=-1) == 0
        cpts[name] = table / table.sum(axis=-1, keepdims=True)
    order = generator.permutation(nodes)  # node order need not be topological
    schema = Schema(tuple(Variable(names[i], tuple(f"s{k}" for k in range(sizes[i]))) for i in order))
    dag = Dag(tuple(names[i] for i in order), parents)
    return BayesianNetwork(Structure(schema, dag), cpts)


def joint_table(network: BayesianNetwork) -> np.ndarray:
    """The whole joint, one axis per node in node order, by plain multiplication."""
    nodes = network.nodes
    joint = np.ones([len(network.states(n)) for n in nodes])
    for node in nodes:
        names = (*network.parents(node), node)
        cpt = network.cpt(node)
        for cell in itertools.product(*(range(len(network.states(n))) for n in names)):
            index = tuple(cell[names.index(n)] if n in names else slice(None) for n in nodes)
            joint[index] *= cpt[cell]
    return joint


def with_evidence(network: BayesianNetwork, joint: np.ndarray, evidence: dict) -> np.ndarray:
    """The joint multiplied by indicators (labels) and likelihoods."""
    for name, value in evidence.items():
        axis = network.nodes.index(name)
        states = network.states(name)
        likelihood = np.array([float(s == value) for s in states]) if isinstance(value, str) else np.asarray(value)
        shape = [1] * joint.ndim
        shape[axis] = len(states)
        joint = joint * likelihood.reshape(shape)
    return joint


def random_evidence(network: BayesianNetwork, seed: int, hard: int = 2, soft: int = 1, exclude=()) -> dict:
    generator = np.random.default_rng(seed)
    free = [n for n in network.nodes if n not in exclude]
    chosen = [free[i] for i in generator.permutation(len(free))[: hard + soft]]
    evidence: dict = {}
    for k, name in enumerate(chosen):
        states = network.states(name)
        if k < hard:
            evidence[name] = states[generator.integers(len(states))]
        else:
            evidence[name] = generator.random(len(states)) + 0.01
    return evidence


def networks(max_nodes: int = 7):
    return st.builds(
        random_network,
        seed=st.integers(0, 10**6),
        nodes=st.integers(1, max_nodes),
        zeros=st.sampled_from([0.0, 0.0, 0.4]),
        density=st.sampled_from([0.2, 0.5, 0.9]),
    )


def stacked(networks):
    """A batch of networks that share one structure."""
    structure = networks[0].structure
    return BatchInference(structure, {n: np.stack([network.cpt(n) for network in networks]) for n in structure.nodes})
