"""Sums and products over cliques of every size and split, against numpy on the whole array."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn.inference import projection as module
from dpbn.inference.projection import Projection
from dpbn.inference.shadows import Shadows, piece_rows


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=7),
    st.integers(0, 10**6),
    st.sampled_from([(9_000, 1 << 18), (0, 1 << 18), (0, 1_000), (0, 40)]),
)
def test_a_projection_sums_and_spreads(axes, seed, work):
    """Cliques taken as one block, in blocks, and in pieces of blocks."""
    generator, sizes = np.random.default_rng(seed), [size for size, _ in axes]
    onto = tuple(axis for axis, (_, kept) in enumerate(axes) if kept)
    gone = tuple(axis for axis, (_, kept) in enumerate(axes) if not kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE", work[0])
        patch.setattr(module, "MATRIX_WORK", work[1])
        found = Projection(tuple(range(len(axes))), onto, sizes)
    table, factor = generator.random(sizes), generator.random([sizes[axis] for axis in onto])
    np.testing.assert_allclose(found.sum(table.ravel()), table.sum(axis=gone).ravel(), rtol=1e-12)
    product = table * np.expand_dims(factor, gone)
    np.testing.assert_allclose(found.multiply(table.ravel(), factor.ravel()), product.ravel(), rtol=1e-12)
    cells = np.expand_dims(np.arange(factor.size).reshape(factor.shape), gone)
    np.testing.assert_array_equal(found.index, np.broadcast_to(cells, sizes).ravel())


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (7, 3), (90, 450), (97, 450), (4, 20_000)])
def test_a_matrix_in_pieces_tells_the_same(rows, columns):
    class Edge:
        shadow = np.random.default_rng(1).random((rows, columns))

    whole, message = Edge.shadow, np.random.default_rng(2).random(rows)
    Edge.shadow = whole.reshape(*piece_rows(rows, columns), columns)
    np.testing.assert_allclose(Shadows.seen_through(Edge, message), message @ whole, rtol=1e-12)
