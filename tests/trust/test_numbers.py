"""Numbers at the edge: every method learns or refuses with a reason, and every answer is a probability."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import dpbn
from dpbn.errors import DpbnError, ImpossibleEvidenceError, PrivacyError, QueryError, TooLargeError
from dpbn.learners.registry import learner_of
from dpbn.measure import Curator
from dpbn.measurement import total_loss
from dpbn.privacy.guarantee import Budget, Sensitivity
from tests.structures import structure_of

METHODS = [("uniform", 0.0), ("icml2020", 0.0), ("optimized", 0.0), ("optimized", 1e-6)]
ASIA = dpbn.load_network("asia")
ROWS = ASIA.sample(200, seed=0)


def chain(nodes, states=2):
    names = [f"c{i}" for i in range(nodes)]
    structure = structure_of(dict.fromkeys(names, states), {b: (a,) for a, b in itertools.pairwise(names)})
    draw = np.random.default_rng(0).dirichlet
    cpts = {n: draw(np.ones(states), size=structure.shape(n)[:-1]).reshape(structure.shape(n)) for n in names}
    return dpbn.BayesianNetwork(structure, cpts)


def ask_everything(model, *, interval=True):
    """Every kind of query once; whatever comes back is finite and adds up."""
    ask = dpbn.Inference(model)
    network = getattr(model, "network", model)
    nodes = network.nodes
    answer = ask.query([nodes[-1]])
    assert answer.values.sum() == pytest.approx(1)
    if interval:
        low, high = answer.interval(0.9)
        assert np.isfinite(low).all() and (low >= 0).all() and (low <= high).all() and (high <= 1).all()
    evidence = {nodes[0]: network.states(nodes[0])[0]}
    if ask.probability(evidence) > 0 and len(nodes) > 1:
        for values in ask.posteriors(evidence).values():
            assert values.sum() == pytest.approx(1)
        best, probability = ask.mpe(evidence)
        assert set(best) | set(evidence) == set(nodes) and 0 <= probability <= 1
        assert 0 <= ask.map([nodes[-1]], evidence)[1] <= 1
        assert ask.predict_proba(pd.DataFrame([evidence]), nodes[-1]).sum() == pytest.approx(1)


def learned(data, structure, epsilon, method, delta, noise=None):
    release = dpbn.learn(data, structure, epsilon, delta, method=method, noise=noise)
    for node in release.network.nodes:
        assert np.isfinite(release.network.cpt(node)).all()
    assert release.guarantee.epsilon <= epsilon
    return release


@pytest.mark.parametrize(("method", "delta"), METHODS)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 100.0, 1e4])
def test_every_epsilon(epsilon, method, delta):
    ask_everything(learned(ROWS, ASIA.structure, epsilon, method, delta), interval=epsilon in (1e-6, 1e4))


@pytest.mark.parametrize("delta", [1e-300, 1e-30, 0.5, 0.999])
def test_every_delta_costs_no_more_than_was_granted(delta):
    release = learned(ROWS, ASIA.structure, 1.0, "optimized", delta)
    assert total_loss(release.measurements, delta) <= 1.0


@pytest.mark.parametrize("method", ["uniform", "optimized"])
@pytest.mark.parametrize("epsilon", [0, -1, 5e-324, 1e-17, math.inf, math.nan, True, "1"])
def test_an_epsilon_out_of_reach_is_refused_with_a_reason(epsilon, method):
    with pytest.raises(DpbnError, match=r"epsilon|share of|scale|budget"):
        dpbn.learn(ROWS, ASIA.structure, epsilon, method=method)


@pytest.mark.parametrize(("method", "delta"), METHODS)
@pytest.mark.parametrize(
    "rows", [ROWS.iloc[:0], ROWS.iloc[:1], pd.concat([ROWS.iloc[:1]] * 300)], ids=["none", "one", "all equal"]
)
def test_few_and_equal_rows(rows, method, delta):
    ask_everything(learned(rows.reset_index(drop=True), ASIA.structure, 1.0, method, delta), interval=False)


@pytest.mark.parametrize(("method", "delta"), METHODS)
def test_single_states_and_isolated_nodes(method, delta):
    structure = structure_of({"one": 1, "two": 2, "alone": 3, "also": 1}, {"two": ("one", "also")})
    rows = pd.DataFrame(
        {n: [structure.states(n)[i % structure.schema[n].size] for i in range(9)] for n in structure.nodes}
    )
    ask_everything(learned(rows, structure, 1.0, method, delta))
    only = structure_of({"one": 1}, {})
    ask_everything(learned(rows[["one"]], only, 1.0, method, delta))


def test_an_empty_network_has_no_questions():
    with pytest.raises(QueryError, match="at least one node"):
        dpbn.Inference(dpbn.BayesianNetwork(structure_of({}, {}), {}))


def test_a_thousand_states():
    network = chain(2, 1000)
    release = learned(network.sample(500, seed=0), network.structure, 1.0, "uniform", 0.0, dpbn.InsecureNoise(0))
    ask_everything(release, interval=False)


def test_five_hundred_nodes_in_a_chain():
    network = chain(500)
    for method, delta in (("uniform", 0.0), ("optimized", 0.0)):
        release = learned(network.sample(200, seed=0), network.structure, 1.0, method, delta, dpbn.InsecureNoise(0))
        ask_everything(release, interval=False)
    everything = dict.fromkeys(network.nodes, "0")
    logs = sum(math.log(network.cpt(n)[(0,) * network.cpt(n).ndim]) for n in network.nodes)
    assert math.log(dpbn.Inference(network).probability(everything)) == pytest.approx(logs)


def test_deterministic_tables():
    network = chain(40)
    cpts = {n: np.eye(2) if network.parents(n) else np.array([1.0, 0.0]) for n in network.nodes}
    fixed = dpbn.BayesianNetwork(network.structure, cpts)
    ask_everything(fixed, interval=False)
    ask = dpbn.Inference(fixed)
    assert ask.query(["c39"]).values.tolist() == [1.0, 0.0]
    assert ask.probability({"c3": "1"}) == 0
    for question in (
        lambda: ask.query(["c39"], {"c3": "1"}),
        lambda: ask.posteriors({"c3": "1"}),
        lambda: ask.mpe({"c3": "1"}),
        lambda: ask.map(["c39"], {"c3": "1"}),
        lambda: ask.sample(3, {"c3": "1"}),
    ):
        with pytest.raises(ImpossibleEvidenceError):
            question()


class Even:
    """A source of `value` records, as many in each cell of a table; tables are of 2, 4, 8, ... cells."""

    can_sample_rows = False

    def __init__(self, structure, value):
        self.structure, self.value = structure, value

    def counts(self, sets):
        shapes = {n: self.structure.schema.shape(n) for n in sets}
        return {n: np.full(shape, self.value // np.prod(shape, dtype=np.int64)) for n, shape in shapes.items()}


@pytest.mark.parametrize("value", [2**31, 2**53 + 2**10, 2**61, 2**62 - 2**10])
@pytest.mark.parametrize(("method", "delta"), [m for m in METHODS if m[0] != "icml2020"])
def test_counts_up_to_two_to_the_sixty_two(value, method, delta):
    structure = ASIA.structure
    curator = Curator(Even(structure, value), dpbn.SecureNoise(), Budget(1.0, delta), Sensitivity())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = learner_of(method, {}, delta, None)(structure, curator, prior={}, public_cpts={})
    for node in structure.nodes:
        assert found.cpts[node] == pytest.approx(np.full(structure.shape(node), 0.5), abs=1e-3)


@pytest.mark.parametrize("rows", [1, 10**30])
def test_a_plan_for_any_number_of_rows_or_a_reason(rows):
    if rows == 1:
        assert np.isfinite(dpbn.plan(ASIA, 1.0, rows, simulations=2).error)
    else:
        with pytest.raises(TooLargeError, match="rows"):
            dpbn.plan(ASIA, 1.0, rows)


@pytest.mark.parametrize("epsilon", [1e-6, 1e4])
def test_plans_at_the_ends(epsilon):
    for delta in (0.0, 1e-6):
        assert np.isfinite(dpbn.plan(ASIA, epsilon, 500, delta=delta, simulations=2).error)


def test_a_budget_is_never_passed_by_rounding():
    for epsilon in (0.1, 1 / 3, 1e-6, 7.7, 1e4):
        release = dpbn.learn(ROWS, ASIA.structure, epsilon, method="uniform")
        assert total_loss(release.measurements) <= epsilon
    with pytest.raises(PrivacyError):
        Budget(1.0, 1.0)


@pytest.mark.parametrize(
    ("epsilon", "options"),
    [
        (1.0, {"method": "icml2020", "stage_one": 1 - 2**-53}),
        (1.0, {"method": "icml2020", "stage_one": 1 - 1e-10}),
        (1e-12, {"method": "icml2020"}),
        (1e-300, {"method": "icml2020"}),
        (1e-14, {"method": "uniform"}),
        (1e-15, {"method": "optimized"}),
        (1e-15, {"method": "optimized", "stage_one": 0.5}),
        (1.0, {"method": "optimized", "stage_one": "half"}),
        (1.0, {"method": "icml2020", "stage_one": True}),
        (1.0, {"method": "icml2020", "sampling_rate": 1e-12}),
    ],
)
def test_what_cannot_be_measured_is_refused_before_the_charge(epsilon, options, tmp_path):
    ledger = dpbn.Ledger(tmp_path / "budget.db")
    ledger.open_dataset("ward", 10)
    with pytest.raises(DpbnError) as caught:
        dpbn.learn(ROWS, ASIA, epsilon, ledger=ledger, dataset="ward", **options)
    assert ledger.remaining("ward").spent_epsilon == 0 and not getattr(caught.value, "__notes__", [])


def test_stage_two_never_asks_for_noise_that_cannot_be_drawn(monkeypatch):
    """Whatever stage I says of the errors: a budget that was let through can be measured with."""
    from dpbn.learners import icml2020

    for error in (1e-320, 1e-30, 1e30):
        errors = iter([error] + [1.0] * 100)
        monkeypatch.setattr(icml2020, "parameter_error", lambda *_, found=errors: next(found))
        for stage_one in (0.1, 1 - 1e-6):
            dpbn.learn(ROWS, ASIA, 1.0, method="icml2020", stage_one=stage_one)
    shares = icml2020.optimal_shares({"a": 1e-300, "b": 1e300, "c": 0.0}, 1e-3)
    assert min(shares.values()) >= 0.99e-9
