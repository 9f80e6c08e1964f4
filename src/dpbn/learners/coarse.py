"""CPTs that are told apart by some of their parents only, where noise would drown the whole family.

A family of many cells and few records is lost in its noise: hardly a row of it can be told from any other. A table
with fewer of the parents has the same noise on fewer, fuller cells. So parents are left out, the one with the most
states first, while r, the noise on a cell of the family over its average count, is beyond a limit. The rows of such a
CPT that differ only in a parent left out are the same.

Beyond HOPELESS nothing is to be hoped for. Below, it depends on how the records are spread over the cells: where most
are in few, these stand out of the noise. So where families lie between DOUBTFUL and HOPELESS, a small part of epsilon
buys one number: the part of their records in cells that noise drowns (no more of a cell than one deviation counts, and
that is all of it up to there), on average. It is taken to follow r / (r + b) with one b for the network, and parents
are left out where that is beyond DROWNED. A node keeps its last parent longer, up to LAST: without any it is
independent of all that comes before it.

Which parents those are can be read off the tables of a release: those that no table holds together with the node.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpbn.graph import Dag
from dpbn.learners.groups import Grouping, noise_to_signal, plan_groups
from dpbn.learners.strategy import holders_of
from dpbn.measurement import LARGEST_CAP, Look, Names
from dpbn.network import Structure

Array = NDArray[np.float64]

HOPELESS = 32.0  # deviations of the noise on a cell, as a part of an average count
DOUBTFUL = 3.0  # the least of these that a family is looked at for
LAST = 8.0  # the least that costs a node its last parent
DROWNED = 0.75  # of a family's records: then it is better told with fewer parents
WORTH = 15.0  # of a look: its part of epsilon times the records; its deviation is then a tenth of them
LEAST_PART, MOST_PART = 0.002, 0.05  # of epsilon that it may take
USUAL, SPREAD = 0.5, 0.2  # what is thought before the look: the part that is drowned, and how far from that it may be
ROUNDS = 8  # of leaving out and planning again: others get what a large family leaves


def plan_coarse(
    structure: Structure,
    signal: float,
    public: Collection[str] = (),
    weights: Mapping[str, float] | None = None,
    whole: Collection[str] = (),
    limit: float = math.inf,
) -> Grouping:
    """What `plan_groups` makes of the families without the parents left out beyond HOPELESS, or beyond `limit`.

    Those of the nodes `whole` keep theirs.
    """
    last = max(limit, LAST)
    for _ in range(ROUNDS):
        plan = plan_groups(structure, signal, public, weights)
        lost = noise_to_signal(structure, plan, signal)
        shared = _shared_noise(structure, lost)
        parents = {
            node: _without_largest(structure, node)
            for node, its in structure.dag.parents.items()
            if its and node not in public and node not in whole
            if lost[node] > HOPELESS or shared[node] > (limit if len(its) > 1 else last)
        }
        if not parents:
            return plan
        structure = _with_parents(structure, parents)
    return plan_groups(structure, signal, public, weights)


@dataclass(frozen=True)
class Doubt:
    """Families that may have parents too many under a plan: as they are measured there, and their r."""

    families: tuple[Names, ...]
    cells: tuple[int, ...]
    ratios: tuple[float, ...]

    def look(self, rows: float, scale: float) -> Look:
        """How many of the records are in cells that noise drowns."""
        deviations = [ratio * rows / cells for ratio, cells in zip(self.ratios, self.cells, strict=True)]
        return Look(self.families, tuple(min(math.ceil(d), LARGEST_CAP) for d in deviations), scale)

    def limit(self, drowned: float, deviation: float) -> float:
        """Of r, beyond which parents are left out, when the part `drowned` was seen with noise of this deviation."""
        certain, before = deviation**-2, SPREAD**-2
        believed = (certain * drowned + before * USUAL) / (certain + before)
        low, high = 0.0, HOPELESS  # of b
        for _ in range(40):
            middle = 0.5 * (low + high)
            if sum(ratio / (ratio + middle) for ratio in self.ratios) > believed * len(self.ratios):
                low = middle
            else:
                high = middle
        return min(max(DROWNED / (1.0 - DROWNED) * high, DOUBTFUL), HOPELESS)


def doubtful(
    structure: Structure, plan: Grouping, signal: float, public: Collection[str] = (), whole: Collection[str] = ()
) -> Doubt:
    """The families beyond DOUBTFUL under a plan of `plan_coarse`."""
    told = as_told(structure, [names for group in plan.groups for names in group], structure.nodes)
    lost = noise_to_signal(told, plan, signal)
    shared = _shared_noise(told, lost)
    found = [
        node
        for node in told.nodes
        if told.parents(node) and node not in public and node not in whole and shared[node] > DOUBTFUL
    ]
    return Doubt(
        tuple(told.family(node).names for node in found),
        tuple(told.cells(node) for node in found),
        tuple(lost[node] for node in found),
    )


def _shared_noise(structure: Structure, lost: Mapping[str, float]) -> dict[str, float]:
    """r as it would be if a quarter of the nodes whose CPTs have one shape shared them (`twins`)."""
    shapes = {node: (structure.schema[node].size, *sorted(structure.shape(node)[:-1])) for node in structure.nodes}
    alike = Counter(shapes.values())
    return {node: lost[node] / math.sqrt(max(alike[shape] / 4.0, 1.0)) for node, shape in shapes.items()}


def _without_largest(structure: Structure, node: str) -> Names:
    """The parents of a node but the one with the most states, the last of several."""
    parents = structure.parents(node)
    largest = max(parents, key=lambda name: (structure.schema[name].size, parents.index(name)))
    return tuple(name for name in parents if name != largest)


def as_told(structure: Structure, tables: Iterable[Names], nodes: Iterable[str]) -> Structure:
    """`structure` with the parents that `tables` tell apart: for each of `nodes` those of the table that holds most.

    Nodes that no table holds, and all others, keep theirs.
    """
    sets = [frozenset(names) for names in tables]
    holders = holders_of(dict(enumerate(sets)))
    parents = {}
    for node in nodes:
        its = structure.parents(node)
        found = {tuple(name for name in its if name in sets[index]) for index in holders.get(node, ())}
        if found and its not in found:
            parents[node] = max(found, key=lambda names: (structure.schema.cells(names), names))
    return _with_parents(structure, parents) if parents else structure


def widened(structure: Structure, coarse: Structure, cpts: Mapping[str, Array]) -> dict[str, Array]:
    """CPTs over `coarse` in the shapes of `structure`, equal along parents left out; any leading axis stays."""
    return {node: _widened(structure, coarse, node, cpt) for node, cpt in cpts.items()}


def narrowed(structure: Structure, coarse: Structure, prior: Mapping[str, Array]) -> dict[str, Array]:
    """Pseudo-counts of the CPTs of `structure` for those of `coarse`: the mean of the rows that become one."""
    result = {}
    for node, alpha in prior.items():
        its, kept = structure.parents(node), coarse.parents(node)
        gone = tuple(axis for axis, name in enumerate(its) if name not in kept)
        result[node] = np.broadcast_to(alpha, structure.shape(node)).mean(axis=gone) if gone else alpha
    return result


def _widened(structure: Structure, coarse: Structure, node: str, cpt: Array) -> Array:
    its, kept = structure.parents(node), coarse.parents(node)
    if its == kept:
        return cpt
    before = cpt.shape[: cpt.ndim - len(kept) - 1]
    sizes = structure.schema.shape(its)
    open_axes = [size if name in kept else 1 for name, size in zip(its, sizes, strict=True)]
    return np.broadcast_to(cpt.reshape(*before, *open_axes, cpt.shape[-1]), (*before, *sizes, cpt.shape[-1]))


def _with_parents(structure: Structure, parents: Mapping[str, Names]) -> Structure:
    dag = structure.dag
    return Structure(
        structure.schema, Dag(dag.nodes, {node: parents.get(node, dag.parents[node]) for node in dag.nodes})
    )
