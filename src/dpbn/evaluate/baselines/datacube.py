"""Data-cube selection: which marginals to measure so that the worst family is least noisy.

Output: CPTs from the measured cuboids made consistent, clipped at 0 and normalised.
Guarantee: epsilon-DP, discrete Laplace noise on every cell of s cuboids, epsilon / s each.
Sensitivity: adding or removing a record changes one cell of each cuboid by 1; cuboids compose.
Source: Ding, Winslett, Han, Li, "Differentially private data cubes: optimizing noise sources and consistency"
(SIGMOD 2011), bound-max (BMAX): a family F read off a cuboid A has variance proportional to s^2 |A|/|F|; choose s and
the cuboids so that the largest is smallest, by greedy cover for each s and ratio. The search runs over the whole
lattice of 2^n cuboids, exponential in the nodes: small networks only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import TooLargeError
from dpbn.evaluate.baselines.common import Array, cpts_from_tables, families, maximal, measure_tables, smallest_cover
from dpbn.learners.consistency import make_consistent
from dpbn.margins import Names
from dpbn.measure import CountSource
from dpbn.network import Structure

MOST_NODES = 14


@lru_cache(maxsize=32)
def chosen_cuboids(structure: Structure) -> tuple[Names, ...]:
    """The cuboids to measure."""
    nodes = structure.nodes
    if len(nodes) > MOST_NODES:
        raise TooLargeError(
            f"data-cube selection searches all 2^n cuboids and must have at most {MOST_NODES} nodes, got {len(nodes)}"
        )
    targets = maximal(list(families(structure).values()))
    position = {name: i for i, name in enumerate(nodes)}
    masks = np.array([sum(1 << position[name] for name in target) for target in targets], dtype=np.int64)
    lattice = np.arange(1, 2 ** len(nodes), dtype=np.int64)
    sizes = np.array(structure.schema.shape(nodes), dtype=np.float64)
    bits = (lattice[:, None] >> np.arange(len(nodes))) & 1
    cells = np.exp(bits @ np.log(sizes))
    ratio = np.where((lattice[:, None] & masks) == masks, cells[:, None] / cells[masks - 1], np.inf)
    best: tuple[float, list[int]] = (np.inf, [])
    for bound in np.unique(np.round(ratio[np.isfinite(ratio)], 6)):
        if bound > best[0]:
            break  # with one cuboid the objective is already at least the bound
        cover = _greedy_cover(ratio <= bound * (1 + 1e-6))
        worst = max(float(ratio[cover, target].min()) for target in range(len(targets)))
        best = min(best, (len(cover) ** 2 * worst, cover), key=lambda pair: pair[0]) if cover else best
    return tuple(tuple(name for i, name in enumerate(nodes) if bits[index, i]) for index in best[1])


def _greedy_cover(covers: NDArray[np.bool_]) -> list[int]:
    """Cuboids (rows) chosen one by one, most still uncovered targets (columns) first."""
    uncovered = np.ones(covers.shape[1], dtype=bool)
    chosen: list[int] = []
    while uncovered.any():
        gain = covers[:, uncovered].sum(axis=1)
        index = int(gain.argmax())
        chosen.append(index)
        uncovered &= ~covers[index]
    return chosen


def learn_datacube(structure: Structure, source: CountSource, epsilon: float, seed: int) -> dict[str, Array]:
    """Measure the chosen cuboids equally, make them agree, sum out the families."""
    cuboids = chosen_cuboids(structure)
    noisy = measure_tables(source, epsilon, seed, dict.fromkeys(cuboids, epsilon / len(cuboids)))
    weights = {names: 1.0 / table.size for names, table in noisy.items()}
    agreed = make_consistent({names: (names, table) for names, table in noisy.items()}, weights)
    return cpts_from_tables(smallest_cover(structure, agreed))
