"""A split that depends on the data: it decides within the budget, and only the finest levels count afterwards."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import dpbn
from dpbn import load_network
from dpbn.errors import InputError
from dpbn.learners import stages
from dpbn.learners.estimate import estimate
from dpbn.learners.stages import _weights, best_levels, predicted_errors
from dpbn.learners.strategy import OF_EPSILON, OF_PRECISION, plan_tables
from dpbn.measurement import estimated_rows, finest, total_loss
from dpbn.support import supports
from dpbn.uncertainty.reestimate import estimator_of
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


def test_predicted_errors_are_summed_deviations_of_family_cells():
    structure = load_network("asia").structure
    counts, scales, weights = np.array([[900.0, 90.0], [9.0, 1.0]]), [40.0, 10.0, 2.0], {"asia": 3.0, "tub": 0.5}
    tables = (("asia", "tub"), ("smoke",))
    found, other = predicted_errors(
        structure, tables, [counts[None], np.array([[7.0, 3.0]])], [scales, [1.0]], {**weights, "smoke": 2.0}
    )
    for level, scale in enumerate(scales):
        guess = 1 / (1 / counts + 1 / (2 * scale**2))  # the variance of the best guess of a cell
        tub, asia = np.sqrt(guess).sum(), np.sqrt(guess.sum(axis=1)).sum()
        assert found[level] == pytest.approx(3.0 * asia + 0.5 * tub)
    assert other == pytest.approx([2.0 * (math.sqrt(1 / (1 / 7 + 1 / 2)) + math.sqrt(1 / (1 / 3 + 1 / 2)))])


def test_without_a_prediction_every_table_gets_its_public_share(monkeypatch):
    monkeypatch.setattr(stages, "CHEAP_CELLS", 0)
    network = load_network("asia")
    release = dpbn.learn(network.sample(3_000, seed=1), network, 1.0, stage_one=0.3, noise=dpbn.InsecureNoise(4))
    strategy = plan_tables(network.structure)
    shares = dict(zip(strategy.tables, strategy.shares, strict=True))
    for m in finest(release.measurements):
        assert m.loss == pytest.approx(shares[m.names])


def reached(full, part):
    """What the table of each of six variables is shown at, in equal shares; those not `full` take one of 12 states."""
    names, states = "abcdef", tuple(map(str, range(12)))
    schema = dpbn.Schema(tuple(dpbn.Variable(name, states) for name in names))
    columns = {name: [*states] * 500 if name in full else ["3"] * 6_000 for name in names}
    release = dpbn.learn(
        pd.DataFrame(columns), dpbn.Structure(schema, dpbn.Dag(tuple(names), {})), 1.0, stage_one=part,
        noise=dpbn.InsecureNoise(2),
    )  # fmt: skip
    found = {"".join(m.names): m.loss * 6 for m in finest(release.measurements)}
    assert set(found) == set(names)
    return found


@pytest.mark.parametrize("full", ["a", "d", "f"])
def test_the_budget_goes_to_the_table_that_has_something_to_tell(full):
    """Cells that are empty cost little at any level."""
    found = reached(full, 0.3)
    assert 2.0 < found.pop(full) <= stages.MOST
    assert max(found.values()) < 1.0


def test_a_table_may_stay_as_coarse_as_it_was_shown_first():
    found = reached("abcdf", 0.7)
    assert found.pop("e") == pytest.approx(0.7)
    assert min(found.values()) == pytest.approx(1.0)


def test_a_step_is_judged_by_what_it_buys_for_its_cost():
    """Two cheap steps lower the sum of errors by more than the one that lowers it most by itself."""
    errors = [np.array([10.0, 5.0]), np.array([10.0, 7.0]), np.array([10.0, 7.0])]
    losses = [np.array([0.125, 0.25]), np.array([0.125, 0.1875]), np.array([0.125, 0.1875])]
    affordable = [
        levels for levels in itertools.product((0, 1), repeat=3)
        if sum(loss[level] for loss, level in zip(losses, levels, strict=True)) <= 0.5
    ]  # fmt: skip
    best = min(affordable, key=lambda levels: sum(error[level] for error, level in zip(errors, levels, strict=True)))
    assert tuple(best_levels(errors, losses, 0.5)) == best == (0, 1, 1)


def test_weights_are_for_the_deviation_of_one_cell():
    """Noise on all k even cells of a root moves its answer by k root(1 - 1/k) deviations, so by root(1 - 1/k) each."""
    schema = dpbn.Schema((dpbn.Variable("a", ("x", "y")), dpbn.Variable("b", tuple("12345678"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("a", "b"), {}))
    found = _weights(structure, (Query(("a",)), Query(("b",))), {"a": np.full(2, 1 / 2), "b": np.full(8, 1 / 8)})
    assert found["b"] / found["a"] == pytest.approx(math.sqrt((7 / 8) / (1 / 2)), rel=0.2)  # of 200 simulated
    assert _weights(structure, None, {}) == {"a": 1.0, "b": 1.0}


def test_tables_that_do_not_matter_keep_a_hundredth_of_an_equal_share():
    """With next to nothing their noise, a hundred times the records, once carried over to the tables that matter."""
    structure = load_network("alarm").structure
    weights = dict.fromkeys(structure.nodes, 1e-8) | {"HR": 1.0}
    for power in (OF_EPSILON, OF_PRECISION):
        shares = plan_tables(structure, weights=weights, power=power).shares
        assert min(shares) > 0.009 / len(shares)
        assert max(shares) > 0.8
        assert sum(shares) == pytest.approx(1.0)
