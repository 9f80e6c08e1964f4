"""The forecast agrees with what happens, answers the inverse question, and refuses nonsense."""

import dataclasses
import json
import pickle

import numpy as np
import pytest

import dpbn
from dpbn.errors import InputError, PrivacyError, TooLargeError
from dpbn.evaluate.metrics import weighted
from dpbn.uncertainty.forecast import LEAST_EPSILON
from dpbn.uncertainty.guess import LEAST_EVEN, MOST_EVEN, typical_network
from dpbn.workload import Query
from tests.structures import structure_of


def realised(network, epsilon, rows, method, runs=4):
    ask = dpbn.Inference(network)
    mass = {n: ask.query(list(network.parents(n))).values if network.parents(n) else 1.0 for n in network.nodes}
    errors = []
    for seed in range(runs):
        data = network.sample(rows, seed=seed + 50)
        learned = dpbn.learn(data, network, epsilon=epsilon, method=method, noise=dpbn.InsecureNoise(seed)).network
        errors.append(weighted(network, learned, mass))
    return float(np.mean(errors))


@pytest.mark.parametrize("name", ["asia", "sachs", "child"])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_forecast_agrees_with_what_happens(name, epsilon):
    network = dpbn.load_network(name)
    for method in ("uniform", "optimized"):
        forecast = dpbn.plan(network.structure, epsilon, 5_000, method=method).error
        assert 1 / 1.5 < forecast / realised(network, epsilon, 5_000, method) < 1.5


def test_a_guess_and_a_workload_are_used():
    network = dpbn.load_network("asia")
    query = Query(("lung",), {"smoke": "yes"})
    forecast = dpbn.plan(network.structure, 1.0, 5_000, method="uniform", guess=network, workload=[query])
    assert 0 < forecast.query_errors[query] < 0.2
    assert forecast.to_dict()["queries"][0]["error"] == forecast.query_errors[query]
    assert "lung" in str(forecast)


def test_the_inverse_question():
    structure = dpbn.load_network("asia").structure
    forecast = dpbn.plan(structure, 1.0, 5_000, method="uniform", simulations=4)
    epsilon = forecast.epsilon_for(0.03)
    assert forecast.again(epsilon).error <= 0.03 < forecast.again(epsilon / 1.1).error
    with pytest.raises(InputError, match="in reach"):
        forecast.epsilon_for(1e-6)
    assert forecast.epsilon_for(1.9) == LEAST_EPSILON
    with pytest.raises(InputError, match="below 2"):
        forecast.epsilon_for(2.0)


@pytest.mark.parametrize(
    "asked",
    [
        {"error": "x"},
        {"error": True},
        {"error": 0.1, "lowest": 0},
        {"error": 0.1, "lowest": 2, "highest": 1},
        {"error": 0.1, "highest": "x"},
        {"error": 0.1, "highest": float("inf")},
    ],
)
def test_an_inverse_question_that_makes_no_sense(asked):
    forecast = dpbn.plan("asia", 1.0, 100, method="uniform", simulations=1)
    with pytest.raises(InputError, match=r"^a wanted error must|^lowest and highest must"):
        forecast.epsilon_for(**asked)


def test_evidence_that_a_simulated_release_calls_impossible_counts_as_uniform():
    structure = structure_of({"a": 2, "b": 2}, {"b": ("a",)})
    guess = dpbn.BayesianNetwork(structure, {"a": [0.999, 0.001], "b": [[0.9, 0.1], [0.0, 1.0]]})
    query = Query(("b",), {"a": "1"})
    forecast = dpbn.plan(structure, 1000.0, 5, method="uniform", guess=guess, workload=[query], simulations=2)
    assert forecast.query_errors[query] == pytest.approx(1.0)


def test_a_forecast_shows_its_headline():
    forecast = dpbn.plan("asia", 1.0, 100, method="uniform", simulations=1)
    assert repr(forecast) == f"Forecast({forecast.headline})" and "\n" not in repr(forecast)


def test_rare_rows_grow_as_epsilon_falls():
    structure = dpbn.load_network("child").structure
    shares = [
        np.mean(list(dpbn.plan(structure, e, 2_000, method="uniform", simulations=2).rare_rows.values()))
        for e in (0.1, 10)
    ]
    assert shares[0] > shares[1]


def test_plot(tmp_path):
    forecast = dpbn.plan(dpbn.load_network("asia").structure, 1.0, 1_000, method="uniform", simulations=1)
    assert forecast.plot(tmp_path / "plan.png").stat().st_size > 5_000
    with pytest.raises(InputError):
        forecast.plot(tmp_path / "plan.exe")
    name = r"a$b$\frac{$c" + "x" * 300  # matplotlib would read formulas
    odd = dpbn.Structure(dpbn.Schema((dpbn.Variable(name, ("y", "n")),)), dpbn.Dag((name,), {}))
    assert dpbn.plan(odd, 1.0, 100, simulations=1).plot(tmp_path / "odd.png").stat().st_size > 1_000


ASIA = dpbn.load_network("asia")
UNRELATED = dpbn.Structure(ASIA.structure.schema, dpbn.Dag(ASIA.nodes, {}))
OTHER = dpbn.BayesianNetwork(UNRELATED, {node: [0.5, 0.5] for node in ASIA.nodes})  # the same nodes, no arcs


@pytest.mark.parametrize(
    "bad", [{"rows": 0}, {"rows": 1.5}, {"simulations": 0}, {"guess": 3}, {"guess": OTHER}, {"method": "exact"}]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(InputError):
        dpbn.plan(dpbn.load_network("asia").structure, **{"method": "uniform", **bad})
    with pytest.raises(PrivacyError):
        dpbn.plan(dpbn.load_network("asia").structure, -1.0, method="uniform")


@pytest.mark.parametrize("name", ["earthquake", "cancer", "survey"])
def test_the_range_holds_networks_whose_cpts_the_structure_does_not_tell(name):
    network = dpbn.load_network(name)
    low, high = dpbn.plan(network.structure, 1.0, 5_000).error_range
    assert low < realised(network, 1.0, 5_000, "optimized", runs=8) < high


def test_the_range_holds_what_was_simulated_and_both_ends():
    forecast = dpbn.plan("cancer", 1.0, 500, method="uniform", simulations=2)
    ends = [forecast.again(1.0, evenness).simulated for evenness in (LEAST_EVEN, MOST_EVEN)]
    every = [*forecast.simulated, *ends[0], *ends[1]]
    assert forecast.error_range == (min(every), max(every))
    assert max(ends[0]) < min(ends[1])


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "uniform"},
        {"method": "uniform", "neighbors": "replace"},
        {"method": "optimized", "delta": 1e-3},
        {"method": "optimized", "workload": [Query(("Disease",), {"Sick": "yes"})]},
    ],
)
def test_tables_and_their_noise_are_those_that_learn_measures(settings):
    network = dpbn.load_network("child")
    planned = dpbn.plan(network.structure, 1.0, 1_000, guess=network, simulations=1, **settings).tables
    release = dpbn.learn(network.sample(1_000, seed=0), network, 1.0, noise=dpbn.InsecureNoise(0), **settings)
    for table, m in zip(planned, release.measurements, strict=True):
        assert (table.names, table.mechanism, table.cells) == (m.names, m.mechanism, m.values.size)
        assert table.deviation == pytest.approx(m.variance**0.5)


def test_a_table_shown_at_two_levels_is_one_table():
    tables = dpbn.plan("asia", 1.0, 2_000, simulations=1, stage_one=0.3).tables
    assert len({table.names for table in tables}) == len(tables)


def test_more_records_of_a_person_need_as_much_more_noise():
    once, thrice = (dpbn.plan("cancer", 1.0, 100, method="uniform", simulations=1, max_contributions=k) for k in (1, 3))
    for table, wider in zip(once.tables, thrice.tables, strict=True):
        assert wider.scale == pytest.approx(3 * table.scale)


def test_rare_rows_are_those_below_two_deviations():
    """A root of one row, and its child of two: one has next to all records, one next to none."""
    schema = dpbn.Schema((dpbn.Variable("a", ("x", "y")), dpbn.Variable("b", ("x", "y"))))
    structure = dpbn.Structure(schema, dpbn.Dag(("a", "b"), {"b": ("a",)}))
    for rows, share in ((1_000, 0.5), (100_000, 0.0)):
        guess = dpbn.BayesianNetwork(structure, {"a": [0.99, 0.01], "b": [[0.5, 0.5]] * 2})
        forecast = dpbn.plan(structure, 1.3, rows, method="uniform", guess=guess, simulations=1)
        noise = 2**0.5 * next(t.deviation for t in forecast.tables if t.names == ("a", "b"))  # of two cells
        assert 2**0.5 * noise < 0.01 * rows and (0.01 * rows < 2 * noise) == (share > 0)
        assert forecast.rare_rows == {"a": 0.0, "b": share}


def test_nothing_is_impossible_in_a_network_that_stands_for_unknown_cpts():
    """However many states share so little: else evidence of a workload might be."""
    schema = dpbn.Schema((dpbn.Variable("a", tuple(map(str, range(400)))), dpbn.Variable("b", ("x",))))
    structure = dpbn.Structure(schema, dpbn.Dag(("a", "b"), {"b": ("a",)}))
    for concentration in (LEAST_EVEN, MOST_EVEN):
        network = typical_network(structure, 1, concentration)
        assert (network.cpt("a") > 0).all() and network.cpt("a").sum() == pytest.approx(1.0)


def test_there_is_nothing_to_forecast_of_no_nodes():
    with pytest.raises(InputError, match="at least one node"):
        dpbn.plan(dpbn.Structure(dpbn.Schema(()), dpbn.Dag((), {})))


def test_a_structure_with_too_many_cells_is_refused_before_any_cpt_is_drawn():
    names = tuple(f"x{i}" for i in range(25))
    with pytest.raises(TooLargeError, match="x24"):
        typical_network(structure_of(dict.fromkeys(names, 2), {"x24": names[:24]}), 0)


@pytest.mark.parametrize(("shares", "epsilon"), [([0.0, 1.0], 0.05), ([0.5, 0.5], 1e6)])
def test_simulations_differ_in_their_noise_and_in_their_rows(shares, epsilon):
    """Rows that are all alike differ by noise only; with next to no noise, the rows are left."""
    structure = dpbn.Structure(dpbn.Schema((dpbn.Variable("a", ("x", "y")),)), dpbn.Dag(("a",), {}))
    guess = dpbn.BayesianNetwork(structure, {"a": shares})
    forecast = dpbn.plan(structure, epsilon, 1_000, method="uniform", guess=guess, simulations=8)
    assert len(set(forecast.simulated)) > 3  # noise below zero is cut, so half of it says nothing
    assert forecast.error == pytest.approx(np.mean(forecast.simulated))


def test_a_guess_leaves_no_range():
    network = dpbn.load_network("asia")
    forecast = dpbn.plan(network.structure, 1.0, 1_000, guess=network, simulations=1)
    assert forecast.error_range is None
    assert forecast.span == ""
    assert forecast.to_dict()["error_range"] is None


def test_a_guess_may_have_columns_of_its_own_and_must_have_the_states():
    network = dpbn.load_network("cancer")
    structure = network.structure
    first = structure.schema["Smoker"]

    def declared(**changes):
        changed = dataclasses.replace(first, **changes)
        schema = dpbn.Schema(tuple(changed if v.name == "Smoker" else v for v in structure.schema))
        return dpbn.BayesianNetwork(
            dpbn.Structure(schema, structure.dag), {node: network.cpt(node) for node in structure.nodes}
        )

    raw = dpbn.plan(structure, 1.0, 1_000, guess=declared(column="cigarettes", cut_points=(5,)), simulations=1)
    assert raw.error == dpbn.plan(structure, 1.0, 1_000, guess=network, simulations=1).error
    with pytest.raises(InputError, match=r"states \['True', 'False'\] of 'Smoker', got \['yes', 'no'\]"):
        dpbn.plan(structure, 1.0, 1_000, guess=declared(states=("yes", "no")))
    with pytest.raises(InputError, match="nodes and parents of the structure"):
        dpbn.plan(structure, 1.0, 1_000, guess=dpbn.load_network("asia"))


def test_counts_may_come_from_an_array():
    forecast = dpbn.plan("asia", np.int64(1), rows=np.int64(1_000), simulations=np.int64(1), method="uniform")
    assert json.dumps(forecast.to_dict()) == json.dumps(
        dpbn.plan("asia", 1, rows=1_000, simulations=1, method="uniform").to_dict()
    )


def test_a_forecast_can_be_sent_to_another_process():
    query = Query(("lung",), {"smoke": "yes"})
    forecast = dpbn.plan("asia", 1.0, 200, guess=ASIA, workload=[query], simulations=1, stage_one=0.3)
    copy = pickle.loads(pickle.dumps(forecast))
    assert copy == forecast and copy.again(2.0) == forecast.again(2.0)


def test_a_public_cpt_is_not_measured_and_has_no_error():
    public = {"asia": ASIA.cpt("asia"), "smoke": ASIA.cpt("smoke")}
    settings = {"public_cpts": public, "method": "uniform"}
    forecast = dpbn.plan("asia", 1.0, 1_000, simulations=2, **settings)
    assert forecast.node_errors["asia"] == forecast.node_errors["smoke"] == 0.0
    release = dpbn.learn(ASIA.sample(1_000, seed=0), ASIA, 1.0, noise=dpbn.InsecureNoise(0), **settings)
    assert [(t.names, t.scale) for t in forecast.tables] == [(m.names, m.scale) for m in release.measurements]
    everything = {node: ASIA.cpt(node) for node in ASIA.nodes}
    assert dpbn.plan("asia", 1.0, 100, public_cpts=everything, simulations=1).error == 0.0
    with pytest.raises(InputError, match="public_cpts must map nodes to tables, got int"):
        dpbn.plan("asia", public_cpts=3)


def test_a_prior_draws_what_little_is_known_towards_it():
    even = dpbn.BayesianNetwork(UNRELATED, {node: [0.5, 0.5] for node in ASIA.nodes})
    none, strong = (dpbn.plan(UNRELATED, 0.1, 50, guess=even, simulations=2, prior=p).error for p in (None, 1e6))
    assert strong < 0.01 < none
    with pytest.raises(InputError, match="prior of 'asia' must be in"):
        dpbn.plan("asia", prior=-1)


def test_further_questions_too_do_not_mind_underflow():
    with np.errstate(all="raise"):
        assert dpbn.plan("asia", 1.0, 3_000, simulations=1).epsilon_for(0.2) > 0
