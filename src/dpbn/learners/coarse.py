"""CPTs that are told apart by some of their parents only, where noise would drown the whole family.

A family of many cells and few records is lost in its noise: hardly a row of it can be told from any other. A table
with fewer of the parents has the same noise on fewer, fuller cells. So parents are left out, the one with the most
states first, while the noise on a cell of the family is more than HOPELESS times its average count. Public sizes and
the noisy number of rows decide. The rows of such a CPT that differ only in a parent left out are the same.

Which parents those are can be read off the tables of a release: those that no table holds together with the node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpbn.graph import Dag
from dpbn.learners.groups import Grouping, noise_to_signal, plan_groups
from dpbn.learners.strategy import holders_of
from dpbn.measurement import Names
from dpbn.network import Structure

Array = NDArray[np.float64]

HOPELESS = 32.0  # deviations of the noise on a cell, as a part of an average count
ROUNDS = 8  # of leaving out and planning again: others get what a large family leaves


def plan_coarse(
    structure: Structure,
    signal: float,
    public: Collection[str] = (),
    weights: Mapping[str, float] | None = None,
    whole: Collection[str] = (),
) -> Grouping:
    """What `plan_groups` makes of the families without hopeless parents; those of the nodes `whole` keep theirs."""
    for _ in range(ROUNDS):
        plan = plan_groups(structure, signal, public, weights)
        lost = noise_to_signal(structure, plan, signal)
        parents = {
            node: _without_largest(structure, node)
            for node in structure.nodes
            if node not in public and node not in whole and lost[node] > HOPELESS and structure.parents(node)
        }
        if not parents:
            return plan
        structure = _with_parents(structure, parents)
    return plan_groups(structure, signal, public, weights)


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
