"""Structures as tests make them: from numbers of states, which are called 0, 1, 2 and so on."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from dpbn import Dag, Schema, Structure, Variable


def structure_of(sizes: Mapping[str, int], parents: Mapping[str, Sequence[str]]) -> Structure:
    schema = Schema(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in sizes.items()))
    return Structure(schema, Dag(tuple(sizes), parents))


@st.composite
def structures(draw) -> Structure:
    count = draw(st.integers(1, 7))
    sizes = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    names = tuple(f"v{i}" for i in range(count))
    parents = {}
    for i, name in enumerate(names):
        parents[name] = draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=3)) if i else []
    return structure_of(dict(zip(names, sizes, strict=True)), parents)
