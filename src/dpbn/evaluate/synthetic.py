"""Random networks of any size, for scaling curves."""

from __future__ import annotations

import numpy as np

from dpbn.domain import Schema, Variable
from dpbn.errors import InputError
from dpbn.graph import Dag
from dpbn.network import BayesianNetwork, Structure

MOST_PARENTS, MOST_STATES = 3, 4


def random_network(nodes: int, seed: int) -> BayesianNetwork:
    """Parents among the ten nodes before, two states or more, flat Dirichlet rows."""
    if nodes < 1:
        raise InputError(f"nodes must be at least 1, got {nodes}")
    generator = np.random.default_rng(seed)
    names = tuple(f"n{i}" for i in range(nodes))
    sizes = generator.integers(2, MOST_STATES + 1, size=nodes)
    parents = {}
    for i, name in enumerate(names):
        near = names[max(0, i - 10) : i]
        count = min(len(near), int(generator.integers(0, MOST_PARENTS + 1)))
        parents[name] = tuple(near[j] for j in generator.choice(len(near), count, replace=False)) if count else ()
    schema = Schema(
        tuple(Variable(n, tuple(f"s{k}" for k in range(size))) for n, size in zip(names, sizes, strict=True))
    )
    structure = Structure(schema, Dag(names, parents))
    cpts = {n: generator.dirichlet(np.ones(schema[n].size), size=schema.shape(parents[n])) for n in names}
    return BayesianNetwork(structure, cpts)
