"""A network in numbers, as every strategy of inference reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from dpbn.errors import QueryError
from dpbn.inference.contraction import Array, Scope
from dpbn.inference.evidence import Findings, Vocabulary
from dpbn.network import BayesianNetwork, Structure


class Model:
    """Families as scopes (parents in order, child last) and CPTs by number."""

    __slots__ = ("children", "cpts", "parents", "scopes", "sizes", "structure", "vocabulary", "zeros")

    def __init__(self, structure: Structure, cpts: Iterable[Array] = ()):
        vocabulary = Vocabulary(structure)
        self.structure = structure
        self.vocabulary = vocabulary
        self.sizes = vocabulary.sizes
        position = vocabulary.positions
        self.parents: list[Scope] = [tuple(position[p] for p in structure.parents(n)) for n in structure.nodes]
        self.children: list[Scope] = [tuple(position[c] for c in structure.dag.children(n)) for n in structure.nodes]
        self.scopes: list[Scope] = [(*its, v) for v, its in enumerate(self.parents)]
        self.cpts = list(cpts)
        self.zeros = frozenset(v for v, cpt in enumerate(self.cpts) if not cpt.all())

    def factors(self, nodes: Iterable[int], hard: Collection[int], soft: Collection[int]) -> list[Scope]:
        """The CPTs of `nodes` at observed states, then the likelihoods of soft findings on what they mention."""
        scopes = [tuple(v for v in self.scopes[node] if v not in hard) for node in nodes]
        mentioned = {v for scope in scopes for v in scope}
        return [*scopes, *((v,) for v in sorted(soft) if v in mentioned)]

    def tables(self, nodes: Sequence[int], factors: Sequence[Scope], findings: Findings) -> list[Array]:
        """One for each of the `factors` of `nodes`."""
        likelihoods = [findings.soft[v] for scope in factors[len(nodes) :] for v in scope]
        return [*(self._sliced(node, findings.hard) for node in nodes), *likelihoods]

    def _sliced(self, node: int, hard: Mapping[int, int]) -> Array:
        """The CPT of `node` at the observed states; observed axes are gone."""
        scope = self.scopes[node]
        if not any(v in hard for v in scope):
            return self.cpts[node]
        return self.cpts[node][tuple(hard.get(v, slice(None)) for v in scope)]


def root_ancestors(model: Model) -> list[int]:
    """For each node the mask of its ancestors without parents; nodes that share none are independent a priori."""
    position = model.vocabulary.positions
    roots = [0] * len(model.sizes)
    for name in model.structure.dag.order:
        v = position[name]
        roots[v] = 0 if model.parents[v] else 1 << v
        for parent in model.parents[v]:
            roots[v] |= roots[parent]
    return roots


def model_of(source: Any) -> Model:
    """From a BayesianNetwork, or anything that carries one as `.network` (a release)."""
    network = source if isinstance(source, BayesianNetwork) else getattr(source, "network", None)
    if not isinstance(network, BayesianNetwork):
        raise QueryError(f"inference must be given a network or a release, got {type(source).__name__}")
    # files round their rows to a few digits; exact sums make a barren node the number one in every strategy
    cpts = [cpt / cpt.sum(axis=-1, keepdims=True) for cpt in (network.cpt(node) for node in network.nodes)]
    return Model(network.structure, cpts)
