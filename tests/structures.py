"""Structures as tests make them: from numbers of states, which are called 0, 1, 2 and so on."""

from collections.abc import Mapping, Sequence

from dpbn import Dag, Schema, Structure, Variable


def structure_of(sizes: Mapping[str, int], parents: Mapping[str, Sequence[str]]) -> Structure:
    schema = Schema(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in sizes.items()))
    return Structure(schema, Dag(tuple(sizes), parents))
