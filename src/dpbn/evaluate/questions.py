"""The questions of an experiment: marginal, conditional and MAP, from single nodes up; the same for every method."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.network import Structure
from dpbn.workload import Query, Workload

# (targets, observed) by turns; a network with fewer nodes gets smaller sets
MARGINAL = ((1, 0), (2, 0), (3, 0))
CONDITIONAL = ((1, 1), (1, 2), (2, 1), (2, 2))
MAP = ((1, 1), (2, 1), (2, 2), (3, 2))


@dataclass(frozen=True)
class Questions:
    """`queries` ask for distributions (half marginal, half conditional), `maps` for most probable assignments."""

    queries: Workload
    maps: Workload


def derived_seed(*parts: object) -> int:
    """A 63-bit seed that depends on nothing but `parts`: equal on every machine and in every order of runs."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def draw_questions(structure: Structure, count: int, seed: int, codes: Mapping[str, NDArray[np.integer]]) -> Questions:
    """`count` queries and as many MAP questions. Evidence is read off records (`codes`), so it is possible."""
    generator = np.random.default_rng(seed)
    marginals = (count + 1) // 2
    kinds = [MARGINAL[i % len(MARGINAL)] for i in range(marginals)]
    kinds += [CONDITIONAL[i % len(CONDITIONAL)] for i in range(count - marginals)]
    queries = tuple(_draw(structure, *kind, generator, codes) for kind in kinds)
    maps = tuple(_draw(structure, *MAP[i % len(MAP)], generator, codes) for i in range(count))
    return Questions(queries, maps)


def _draw(
    structure: Structure,
    targets: int,
    observed: int,
    generator: np.random.Generator,
    codes: Mapping[str, NDArray[np.integer]],
) -> Query:
    nodes = structure.nodes
    targets = min(targets, len(nodes))
    observed = min(observed, len(nodes) - targets)
    chosen = [nodes[i] for i in generator.choice(len(nodes), targets + observed, replace=False)]
    record = int(generator.integers(len(codes[nodes[0]])))
    evidence = {name: structure.states(name)[int(codes[name][record])] for name in chosen[targets:]}
    return Query(tuple(chosen[:targets]), evidence)
