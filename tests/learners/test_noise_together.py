"""Noise drawn together is dependent: what the estimate makes of it, against the moments of real draws."""

import numpy as np
import pytest

from dpbn import Schema, Variable
from dpbn.learners.consistency import least_squares, overlaps, precisions
from dpbn.learners.stein import PROBE, probed
from dpbn.measurement import Measurement, Moments, Together
from dpbn.uncertainty.simulate import simulated_noise

SCHEMA = Schema(tuple(Variable(name, tuple("123"[:size])) for name, size in zip("abcd", (2, 3, 2, 2), strict=True)))
GROUP = (("a", "b"), ("a", "c"))
OTHER = (("c", "d"), ("b", "c"))  # the names common to these meet those of the group in one table each
SCALE = 6.0


def measurements():
    result = []
    for which, tables in enumerate((GROUP, OTHER)):
        common = [name for name in tables[0] if name in tables[1]]
        sizes = tuple(SCHEMA.cells(names) // SCHEMA.cells(common) for names in tables)
        for names in tables:
            values = np.zeros(SCHEMA.shape(names), dtype=np.int64)
            together = Together(str(which), tables, sizes)
            result.append(Measurement(names, values, "joint", SCALE, 1 / SCALE, together=together))
    alone = ("a", "d")
    return [*result, Measurement(alone, np.zeros(SCHEMA.shape(alone), dtype=np.int64), "laplace", 9.0, 1 / 9)]


def covariance(measured):
    """Of all cells of all tables, one after the other, as the moments state it."""
    noises, shapes = [m.moments for m in measured], [m.values.shape for m in measured]
    starts = np.cumsum([0, *(m.values.size for m in measured)])
    result = np.zeros((starts[-1], starts[-1]))
    for i, one in enumerate(measured):
        for j, two in enumerate(measured):
            if noises[i].group != noises[j].group or (not noises[i].group and i != j):
                continue
            for first, at in enumerate(np.ndindex(shapes[i])):
                for second, here in enumerate(np.ndindex(shapes[j])):
                    states, others = dict(zip(one.names, at, strict=True)), dict(zip(two.names, here, strict=True))
                    value = 0.0
                    if not noises[i].group:
                        value = noises[i].variance * (first == second)
                    elif all(states[name] == others[name] for name in noises[i].common):
                        sizes = [m.values.size // m.moments.blocks for m in (one, two)]
                        value = noises[i].total / sizes[0] / sizes[1]
                        if i == j:
                            value += noises[i].within * ((first == second) - 1 / sizes[0])
                    result[starts[i] + first, starts[j] + second] = value
    return result


def test_the_moments_are_those_of_real_draws():
    measured = measurements()
    draws = 3_000
    counts = [np.full((m.values.size), 0).reshape(m.values.shape) for m in measured]
    noisy = np.array([np.concatenate([t.ravel() for t in simulated_noise(counts, measured, s)]) for s in range(draws)])
    stated = covariance(measured)
    found = noisy.T @ noisy / draws
    spread = np.sqrt(np.outer(np.diag(stated), np.diag(stated)) * 6 / draws)  # squares of Laplace noise vary by 5 v^2
    assert np.abs(found - stated).max() < 5 * spread.max()
    assert np.abs(found - stated)[stated != 0].max() / spread.max() < 5
    starts = np.cumsum([0, *(m.values.size for m in measured)])
    for index, m in enumerate(measured):
        block = stated[starts[index] : starts[index + 1], starts[index] : starts[index + 1]]
        assert np.diag(block) == pytest.approx(m.variance)
        assert block.sum() == pytest.approx(m.summed_variance(()))


def test_least_squares_is_the_best_linear_estimate_under_dependent_noise():
    """Against the textbook: whitened by the stated covariance, solved for the joint counts."""
    measured = measurements()
    tables = [m.names for m in measured]
    counts = [np.zeros(m.values.shape, dtype=np.int64) for m in measured]
    noisy = [table[None].astype(float) for table in simulated_noise(counts, measured, seed=3)]
    found = least_squares(noisy, [m.moments for m in measured], overlaps(SCHEMA, tables))
    whole = SCHEMA.names
    design = np.eye(SCHEMA.cells(whole)).reshape(-1, *SCHEMA.shape(whole))
    rows = [
        design.sum(axis=tuple(1 + i for i, name in enumerate(whole) if name not in names)).reshape(len(design), -1).T
        for names in tables
    ]
    values, vectors = np.linalg.eigh(covariance(measured))
    kept = values > 1e-9 * values.max()  # sums that two tables share exactly are one observation, not two
    white = (vectors[:, kept] / np.sqrt(values[kept])).T
    target = np.concatenate([table.ravel() for table in noisy])
    joint, *_ = np.linalg.lstsq(white @ np.vstack(rows), white @ target, rcond=None)
    for row, table in zip(rows, found, strict=True):
        assert row @ joint == pytest.approx(table.ravel(), abs=1e-8)


def test_tables_of_a_group_count_once_for_what_they_share():
    measured = measurements()
    noises, cells = [m.moments for m in measured], [m.values.size for m in measured]
    own = precisions(noises, cells, [0], ("a",))[0]
    assert precisions(noises, cells, [0, 1], ("a",)) == pytest.approx([own / 2, own / 2])
    assert own == pytest.approx(1 / (2 * measured[0].summed_variance(("a",))))
    assert precisions(noises, cells, [0, 3], ("b",)) == pytest.approx(
        [1 / (noises[t].within * cells[t]) for t in (0, 3)]
    )
    assert precisions([Moments.alone(4.0)], [6], [0], ()) == pytest.approx([1 / 24])


def test_the_public_change_has_the_moments_of_the_noise():
    measured = measurements()
    tables = [m.names for m in measured]
    noisy = [np.zeros((1, *m.values.shape)) for m in measured]
    change = [table[1] / PROBE for table in probed(noisy, [m.moments for m in measured], tables)]
    totals = change[0].sum(axis=1)
    assert totals == pytest.approx(change[1].sum(axis=1))  # tables drawn together change together
    assert np.abs(totals) == pytest.approx(np.sqrt(measured[0].moments.total))
    assert np.abs(change[4]) == pytest.approx(np.sqrt(measured[4].variance))
    inside = change[0] - change[0].mean(axis=1, keepdims=True)
    assert np.square(inside).sum() <= measured[0].moments.within * inside.size


def test_the_smallest_variance_is_kept_for_all_moments():
    tiny = Moments(1e-9, 1e-9, "g", ("a",), 2, 1e-9).at_least(1e-4)
    assert (tiny.variance, tiny.within, tiny.total, tiny.group) == (1e-4, 1e-4, 1e-4, "g")
