"""A split that depends on the data: it decides within the budget, and only the finest levels count afterwards."""

import math

import numpy as np
import pytest

import dpbn
from dpbn import load_network
from dpbn.errors import InputError
from dpbn.learners.estimate import estimate
from dpbn.learners.stages import best_levels, predicted_errors
from dpbn.measurement import finest, total_loss
from dpbn.support import supports
from dpbn.uncertainty.reestimate import estimator_of
from dpbn.uncertainty.simulate import estimated_rows
from dpbn.workload import Query

RUNGS = np.array([0.125, 0.25, 0.375, 0.5])


@pytest.fixture(scope="module")
def released():
    network = load_network("asia")
    data = network.sample(3_000, seed=1)
    return dpbn.learn(data, network, 1.0, stage_one=0.3, noise=dpbn.InsecureNoise(4), prior=0.5)


def test_the_whole_release_costs_its_finest_levels_and_stays_within_the_budget(released):
    assert {m.stage for m in released.measurements} == {"one", "two"}
    used = finest(released.measurements)
    assert len({m.names for m in used}) == len(used) < len(released.measurements)
    assert total_loss(used) == pytest.approx(math.fsum(m.loss for m in used))
    assert 0.8 < released.guarantee.epsilon <= 1.0
    assert total_loss(released.measurements) == total_loss(used) == released.guarantee.epsilon
    coarse = [m for m in released.measurements if m.stage == "one"]
    assert math.fsum(m.loss for m in coarse) == pytest.approx(0.3)


def test_the_network_and_its_error_bars_are_made_of_the_finest_levels(released, tmp_path):
    used = finest(released.measurements)
    structure = released.structure
    again = estimate(
        structure, used, prior={n: np.full(structure.shape(n), 0.5) for n in structure.nodes}, public_cpts={}
    )
    loaded = dpbn.load_release(released.save(tmp_path / "asia.release.json"))
    repeated = estimator_of(loaded)([m.values[None] for m in loaded.measurements])
    for node in structure.nodes:
        np.testing.assert_allclose(again[node], released.network.cpt(node), atol=1e-9)
        np.testing.assert_allclose(repeated[node][0], released.network.cpt(node), atol=1e-9)
    assert estimated_rows(released.measurements) == estimated_rows(used)
    np.testing.assert_array_equal(
        supports(structure, released.measurements)["dysp"].counts, supports(structure, used)["dysp"].counts
    )
    low, high = dpbn.Inference(loaded).query(["dysp"]).interval(0.9)
    assert (low < high).all()


def test_every_release_reaches_finer_than_it_looked_and_no_share_is_lost(released):
    """What is left over is less than the cheapest step that was still open."""
    assert 1.0 - released.guarantee.epsilon < 0.25 * max(m.loss for m in finest(released.measurements))


def test_levels_go_where_the_error_falls_most():
    steep, flat = np.array([10.0, 5.0, 2.0, 1.0]), np.array([1.0, 0.9, 0.8, 0.7])
    assert best_levels([steep, flat], [RUNGS, RUNGS], 0.625) == [3, 0]
    assert best_levels([flat, steep], [RUNGS, RUNGS], 0.75) == [1, 3]
    assert best_levels([steep, flat], [RUNGS, RUNGS], 5.0) == [3, 3]


def test_levels_look_past_a_flat_stretch():
    """One rung buys nothing, three buy a lot: steps of several rungs are considered."""
    late, slow = np.array([10.0, 10.0, 10.0, 0.0]), np.array([3.0, 2.0, 1.0, 0.5])
    assert best_levels([late, slow], [RUNGS, RUNGS], 0.625) == [3, 0]


def test_levels_are_exact_in_the_budget():
    """0.1 + 0.2 > 0.3 in exact arithmetic of floats: not affordable."""
    assert best_levels([np.ones(1), np.array([1.0, 0.5])], [np.array([0.1]), np.array([0.1, 0.2])], 0.3) == [0, 0]
    assert best_levels([np.array([1.0, 0.5])], [np.array([0.5, 1.0])], 1.0) == [1]


def test_predicted_errors_fall_with_the_scale_and_saturate_at_the_counts():
    structure = load_network("asia").structure
    tables = (("asia", "tub"),)
    expected = [np.array([[[900.0, 90.0], [9.0, 1.0]]])]
    errors = predicted_errors(structure, tables, expected, [[1e6, 10.0, 0.1]], dict.fromkeys(structure.nodes, 1.0))[0]
    assert errors[0] > errors[1] > errors[2] > 0
    families = [expected[0].sum(axis=2), expected[0]]  # asia, and tub with its parent: no more than Poisson deviations
    assert errors[0] == pytest.approx(sum(np.sqrt(family).sum() for family in families), rel=1e-3)


def test_a_workload_is_weighed_at_the_estimated_network():
    network = load_network("asia")
    asked = [Query(("asia",)), Query(("tub",), {"asia": "yes"})]
    release = dpbn.learn(
        network.sample(3_000, seed=1), network, 1.0, stage_one=0.3, workload=asked, noise=dpbn.InsecureNoise(1)
    )
    assert release.allocation["tub"] > 2 * release.allocation["bronc"]


@pytest.mark.parametrize("part", [0.0, 1.0, -1.0, math.nan])
def test_a_part_outside_its_range_is_refused_before_anything_is_counted(part):
    network = load_network("asia")
    with pytest.raises(InputError, match="stage_one"):
        dpbn.learn(network.sample(10, seed=0), network, 1.0, stage_one=part)


def test_next_to_no_noise():
    network = load_network("asia")
    rows = network.sample(500, seed=0)
    release = dpbn.learn(rows, network, 1e6, stage_one=0.3)
    assert release.network.cpt("smoke")[0] == pytest.approx((rows["smoke"] == "yes").mean(), abs=0.01)


def test_gaussian_noise_has_no_ladder():
    network = load_network("asia")
    with pytest.raises(InputError, match="delta"):
        dpbn.learn(network.sample(10, seed=0), network, 1.0, 1e-6, stage_one=0.3)
