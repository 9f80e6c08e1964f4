"""Least squares by one pass over the intersections is the estimate that normal equations give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbn.learners.consistency import least_squares, overlaps
from dpbn.learners.strategy import plan_tables
from dpbn.measurement import Moments
from tests.structures import structure_of, structures

SCHEMA = structure_of({"a": 2, "b": 3, "c": 2, "d": 2}, {}).schema


def by_normal_equations(schema, tables, values, variances):
    """Weighted least squares for the cells of all variables together."""
    cells = np.eye(schema.cells(schema.names)).reshape(-1, *schema.shape(schema.names))
    sums = []
    for names in tables:
        axes = tuple(1 + i for i, name in enumerate(schema.names) if name not in names)
        sums.append(cells.sum(axis=axes).reshape(len(cells), -1).T)
    design, noisy = np.vstack(sums), np.concatenate([table.ravel() for table in values])
    scale = np.repeat(np.array(variances) ** -0.5, [table.size for table in values])
    return design @ np.linalg.lstsq(design * scale[:, None], noisy * scale, rcond=None)[0]


def check(schema, tables, values, variances):
    shared = overlaps(schema, tables)
    found = least_squares([table[None] for table in values], [Moments.alone(v) for v in variances], shared)
    for overlap in shared:
        first, *others = [m.margin(found[m.table]) for m in overlap.members]
        for other in others:
            np.testing.assert_allclose(other, first, atol=1e-6)
    if schema.cells(schema.names) <= 400:
        best = by_normal_equations(schema, tables, values, variances)
        np.testing.assert_allclose(np.concatenate([table.ravel() for table in found]), best, atol=1e-6)


@pytest.mark.parametrize(
    "tables",
    [
        [("a", "b", "c"), ("a", "b", "d"), ("a", "c")],  # one intersection inside another: a of ab and ac
        [("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d")],  # a is shared by all three, but by no two alone
        [("a", "b"), ("b", "c"), ("c", "d"), ("d",)],
    ],
)
def test_least_squares_is_exact(tables):
    random = np.random.default_rng(0)
    values = [random.normal(size=SCHEMA.shape(names)) for names in tables]
    check(SCHEMA, tables, values, [1.0, 4.0, 9.0, 2.0][: len(tables)])


@given(structures(), st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_least_squares_is_exact_for_the_tables_of_any_structure(structure, seed):
    tables, generator = plan_tables(structure).tables, np.random.default_rng(seed)
    values = [generator.normal(0, 50, structure.schema.shape(names)) for names in tables]
    check(structure.schema, tables, values, list(generator.uniform(0.5, 20, len(tables))))
