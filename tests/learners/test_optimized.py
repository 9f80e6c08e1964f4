"""The default learner: what it measures, what it makes of it, and how it behaves at the edges."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import dpbn
from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable, load_network
from dpbn.data import open_source
from dpbn.learners import strategy as strategy_module
from dpbn.learners.consistency import member
from dpbn.learners.estimate import MARGIN_STANDS_OUT, _give_back, estimate, estimate_batch, layout
from dpbn.learners.groups import MOST_SIGNAL, clear_error, plan_groups
from dpbn.learners.optimized import apart, learn_optimized, with_delta
from dpbn.learners.strategy import maximal, plan_tables
from dpbn.measure import Curator
from dpbn.measurement import Moments, variance_apart
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.noise import InsecureNoise
from tests.learners.runs import curator
from tests.structures import structure_of, structures


def mechanisms(network: BayesianNetwork, delta: float, **options) -> set[str]:
    source = open_source(network.sample(50, seed=0), network.structure)
    holder = Curator(source, InsecureNoise(0), Budget(1.0, delta), Sensitivity(**options))
    learn_optimized(network.structure, holder, prior={}, public_cpts={})
    return {measurement.mechanism for measurement in holder.measurements}


def random_network(structure: Structure, seed: int) -> BayesianNetwork:
    generator = np.random.default_rng(seed)
    cpts = {}
    for node in structure.nodes:
        shape = structure.shape(node)
        cpts[node] = generator.dirichlet(np.full(shape[-1], 0.5), size=shape[:-1])
    return BayesianNetwork(structure, cpts)


@given(structures())
@settings(deadline=None, max_examples=50)
def test_every_family_is_inside_a_table_and_shares_sum_to_one(structure):
    strategy = plan_tables(structure)
    for node in structure.nodes:
        assert any(set(structure.family(node).names) <= set(names) for names in strategy.tables)
    assert sum(strategy.shares) == pytest.approx(1.0)
    assert min(strategy.shares) > 0
    assert strategy == plan_tables(structure)


@given(structures(), st.integers(0, 100), st.sampled_from([1e-6, 1.0, 1e4]), st.sampled_from([0, 3, 500]))
@settings(deadline=None, max_examples=40)
def test_any_structure_any_budget_gives_positive_cpts(structure, seed, epsilon, rows):
    network = random_network(structure, seed)
    learned = learn_optimized(structure, curator(network, rows, epsilon), prior={}, public_cpts={})
    for node, cpt in BayesianNetwork(structure, learned.cpts).cpts.items():
        assert (cpt > 0).all(), node


def test_shares_equal_a_numeric_optimiser():
    """Costs c/e under shares of epsilon, c/root(p) under shares of the precision."""
    structure = load_network("alarm").structure
    shared = strategy_module.OF_EPSILON, strategy_module.OF_PRECISION
    for power, cost in zip(shared, (lambda share: 1 / share, lambda share: share**-0.5), strict=True):
        strategy = plan_tables(structure, power=power)
        weights = np.array(strategy.shares) ** (1 / power)

        def objective(logits: np.ndarray, cost=cost, weights=weights) -> float:
            shares = np.exp(logits) / np.exp(logits).sum()
            return float((weights * cost(shares)).sum())

        found = optimize.minimize(objective, np.zeros(len(weights)), tol=1e-14)
        shares = np.exp(found.x) / np.exp(found.x).sum()
        assert shares == pytest.approx(np.array(strategy.shares), abs=1e-4)


def test_large_tables_count_as_less_and_nodes_that_stand_only_in_them_get_their_own():
    """x has parents a, b, c (8 * 10^5 cells), y the parents c and d (40 cells)."""
    sizes = {"a": 100, "b": 100, "c": 20, "d": 1, "x": 4, "y": 2}
    strategy = plan_tables(structure_of(sizes, {"x": ("a", "b", "c"), "y": ("c", "d")}))
    share = dict(zip(strategy.tables, strategy.shares, strict=True))
    assert set(share) == {("a", "b", "c", "x"), ("c", "d", "y"), ("a",), ("b",), ("x",)}
    large = strategy_module.LARGE**0.35 * (strategy_module.LARGE**0.25 + 2 * 100**0.25)  # families x, a and b
    assert share["a", "b", "c", "x"] / share["x",] == pytest.approx(math.sqrt(large / 4**0.6))
    assert share["a",] / share["x",] == pytest.approx(math.sqrt(2 * 100**0.6 / 4**0.6))


def test_a_large_table_of_one_node_is_not_counted_twice():
    """Two nodes of 2,000 and 3,000 states, no arcs: beyond LARGE both count alike."""
    variables = tuple(Variable(name, tuple(str(k) for k in range(size))) for name, size in (("a", 2000), ("b", 3000)))
    strategy = plan_tables(Structure(Schema(variables), Dag(("a", "b"), {"a": (), "b": ()})))
    assert strategy.tables == (("a",), ("b",)) and strategy.shares == pytest.approx((0.5, 0.5))


def test_noise_with_delta_only_where_many_tables_share_the_budget():
    assert mechanisms(load_network("asia"), 1e-6) == {"laplace", "joint"}
    assert mechanisms(load_network("sachs"), 1e-6) == {"laplace", "joint"}
    for name in ("child", "alarm"):
        assert mechanisms(load_network(name), 1e-6) == {"laplace", "summed"}  # the count, the tables
        assert mechanisms(load_network(name), 0.0) == {"laplace", "joint"}
        assert mechanisms(load_network(name), 1e-6, neighbors="replace") == {"laplace", "summed"}
    # summed: single records only
    assert mechanisms(load_network("alarm"), 1e-6, max_contributions=2) == {"laplace", "gaussian"}


@pytest.mark.parametrize(("name", "noise"), [("asia", "laplace"), ("alarm", "gaussian")])
def test_where_noise_cannot_be_drawn_together_delta_does_not_ask_for_more_of_it(name, noise):
    """Thousands of records of one person: with few tables Laplace noise apart is less than Gaussian noise."""
    network = load_network(name)
    assert mechanisms(network, 0.0, max_contributions=8000) == {"laplace"}
    assert mechanisms(network, 1e-9, max_contributions=8000) == {"laplace", noise}


def test_parts_of_summed_tables_add_up_to_what_all_of_them_cost():
    network = load_network("alarm")
    holder = curator(network, 10_000, 1.0, delta=1e-6)
    learned = learn_optimized(network.structure, holder, prior={}, public_cpts={})
    (count, *tables) = holder.measurements
    assert {m.mechanism for m in tables} == {"summed"} and not holder.looks
    whole, spent = math.fsum(m.loss for m in tables), holder.spent - count.loss
    assert whole > 2 * spent
    (only,) = (m for m in tables if {"HR", "CATECHOL"} <= set(m.names))
    assert learned.allocation["HR"] == pytest.approx(only.loss / whole * spent)
    assert all(0 < part < 1 for part in learned.allocation.values())


def test_what_is_hopeless_does_not_choose_the_noise():
    """Eighteen nodes of nine states in a chain, and one family of 59,049 cells: apart with delta, as without it."""
    names = [f"v{k}" for k in range(18)]
    chain = {name: (before,) for before, name in itertools.pairwise(names)}
    for more in ({}, {"w": ("v0", "v4", "v8", "v12")}):
        structure = structure_of(dict.fromkeys([*names, "w"], 9), chain | more)
        plan = plan_groups(structure, MOST_SIGNAL)
        strategy = plan_tables(structure, power=strategy_module.OF_PRECISION)
        asked = with_delta(strategy, Budget(1.0, 1e-6), Sensitivity())
        shares = [math.sqrt(2 / variance_apart(r.mechanism, r.scale, r.draws)) for r in asked]
        apart_error = clear_error(structure, [[r.names] for r in asked], shares)
        assert apart_error < clear_error(structure, plan.groups, plan.shares)


def test_many_small_tables_are_drawn_together_even_with_delta():
    """Thirty binary nodes without arcs: one draw for all of them is less noise than any with delta 1e-6."""
    structure = structure_of({f"v{k}": 2 for k in range(30)}, {})
    assert mechanisms(random_network(structure, 0), 1e-6) == {"laplace", "joint"}
    assert mechanisms(random_network(structure, 0), 0.05) == {"summed"}


def test_what_is_summed_has_less_noise_than_gaussian_tables():
    structure = load_network("alarm").structure
    strategy = plan_tables(structure, power=strategy_module.OF_PRECISION)
    summed, gaussian = (
        with_delta(strategy, Budget(1.0, 1e-6), Sensitivity(max_contributions=times)) for times in (1, 2)
    )
    variances = [variance_apart(r.mechanism, r.scale, r.draws) for r in summed]
    assert [r.names for r in summed] == [r.names for r in gaussian]
    assert all(v < 0.985 * (r.scale / 2) ** 2 for v, r in zip(variances, gaussian, strict=True))
    precise = np.array(variances) ** -1.0
    assert precise / precise.sum() == pytest.approx(np.array(strategy.shares), rel=0.01)


def test_nodes_that_do_not_matter_get_less():
    structure = load_network("alarm").structure
    weights = dict.fromkeys(structure.nodes, 1e-6) | {"HR": 1.0}
    strategy = plan_tables(structure, weights=weights)
    mine = [share for names, share in zip(strategy.tables, strategy.shares, strict=True) if "HR" in names]
    assert max(mine) == max(strategy.shares)
    assert max(strategy.shares) > 0.5


def test_maximal_families_only():
    sets = [frozenset("ab"), frozenset("abc"), frozenset("cd"), frozenset("c")]
    assert maximal(sets) == [frozenset("abc"), frozenset("cd")]


def test_large_budget_is_the_exact_estimate():
    network = load_network("child")
    data = network.sample(5000, seed=1)
    exact = dpbn.learn(data, network.structure, method="exact").network
    cpts = learn_optimized(network.structure, curator(network, 5000, 1e5, seed=1), prior={}, public_cpts={}).cpts
    for node in network.nodes:
        names = network.structure.family(node).names
        counts = data.groupby(list(names), observed=False).size().to_numpy().reshape(network.structure.shape(node))
        seen = counts.sum(axis=-1) > 0
        assert np.abs(cpts[node] - exact.cpt(node))[seen].max() < 0.02


def test_budget_is_used_up_and_never_exceeded():
    network = load_network("alarm")
    for epsilon, delta in ((1.0, 0.0), (0.1, 1e-6)):
        strategy, made = plan_tables(network.structure), with_delta if delta else apart
        asked = made(strategy, Budget(epsilon, delta), Sensitivity())
        holder = curator(network, 100, epsilon, delta=delta)
        holder.measure(asked)
        assert 0.999 * epsilon < holder.spent <= epsilon
    learned = learn_optimized(network.structure, curator(network, 100, 1.0), prior={}, public_cpts={})
    assert set(learned.allocation) == set(network.nodes)
    assert all(0 < loss <= 1 for loss in learned.allocation.values())


def test_public_cpts_are_kept_and_cost_nothing():
    network = load_network("asia")
    public = {"smoke": network.cpt("smoke"), "dysp": network.cpt("dysp")}
    learned = learn_optimized(network.structure, curator(network, 1000, 1.0), prior={}, public_cpts=public)
    assert np.array_equal(learned.cpts["dysp"], network.cpt("dysp"))
    assert not any("dysp" in table["names"] for table in learned.details["tables"])
    everything = learn_optimized(network.structure, curator(network, 9, 1.0), prior={}, public_cpts=network.cpts)
    assert not everything.allocation


def test_prior_pulls_towards_itself():
    network = load_network("asia")
    prior = {"xray": np.array([[1e9, 1e9], [1e9, 3e9]])}
    learned = learn_optimized(network.structure, curator(network, 1000, 1.0), prior=prior, public_cpts={})
    assert learned.cpts["xray"] == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75]]), abs=1e-4)


def test_a_batch_is_its_parts():
    network = load_network("child")
    tables = plan_tables(network.structure).tables
    made = [curator(network, 2000, 1.0, seed=seed) for seed in range(3)]
    budget = Budget(1.0)
    lists = [holder.measure(apart(plan_tables(network.structure), budget, Sensitivity())) for holder in made]
    values = [np.stack([ms[i].values.astype(float) for ms in lists]) for i in range(len(tables))]
    noises = [m.moments for m in lists[0]]
    batch = estimate_batch(network.structure, tables, values, noises, prior={}, public_cpts={})
    for k, measurements in enumerate(lists):
        alone = estimate(network.structure, measurements, prior={}, public_cpts={})
        for node in network.nodes:
            assert batch[node][k] == pytest.approx(alone[node], abs=1e-9)


def test_member_margin_and_spread():
    schema = Schema((Variable("a", ("0", "1")), Variable("b", ("0", "1", "2"))))
    seen = member(schema, [("a", "b")], 0, ("b",))
    table = np.arange(6.0).reshape(1, 2, 3)
    assert seen.margin(table).tolist() == [[3.0, 5.0, 7.0]]
    assert seen.spread(np.ones((1, 3))).shape == (1, 1, 3)


def test_better_than_equal_budgets_with_three_times_the_budget():
    """The promise, in small: one network, a few runs, errors weighted by the true P(parents)."""
    network = load_network("sachs")
    data = [network.sample(10_000, seed=seed) for seed in range(4)]

    def error(method: str, epsilon: float) -> float:
        total = 0.0
        for seed, table in enumerate(data):
            noise = InsecureNoise(seed)
            learned = dpbn.learn(table, network.structure, epsilon, method=method, noise=noise).network
            total += np.mean([np.abs(learned.cpt(n) - network.cpt(n)).sum(axis=-1).mean() for n in network.nodes])
        return total

    assert error("optimized", 1.0) < error("uniform", 3.0)


def test_a_margin_is_given_back_by_how_much_surer_the_shrunk_estimate_claims_to_be():
    """Differences of one least-squares deviation: noise if the shrunk margin is certain, not if it is as unsure."""
    schema = Schema((Variable("a", tuple("1234")), Variable("b", tuple("12345"))))
    plan = layout(schema, (("a", "b"),))
    shrunk = np.full((1, 4, 5), 50.0)
    pattern = np.array([1.0, -1.0, 1.0, -1.0]) * np.sqrt(3 / 4)  # its square sums to the three degrees of freedom
    variance = 100.0
    linear = shrunk + (pattern * np.sqrt(5 * variance) / 5)[None, :, None]
    certain, unsure = np.full_like(shrunk, 1e-9), np.full_like(shrunk, 0.9 * variance)
    (kept,) = _give_back(schema, plan, [linear], [shrunk], [Moments.alone(variance)], [certain])
    assert kept == pytest.approx(shrunk)
    (returned,) = _give_back(schema, plan, [linear], [shrunk], [Moments.alone(variance)], [unsure])
    part = 1 - 0.1 * (1 + MARGIN_STANDS_OUT * np.sqrt(2 / 3))
    assert returned - shrunk == pytest.approx(part * (linear - shrunk))


def test_nothing_stands_out_of_a_table_without_noise_or_with_an_endless_threshold(monkeypatch):
    """No margin is given back, and nothing overflows, where the difference is 0 and the noise huge."""
    schema = Schema((Variable("a", ("1", "2")),))
    plan = layout(schema, (("a",),))
    shrunk = np.full((1, 2), 50.0)
    with np.errstate(all="raise"):
        (kept,) = _give_back(schema, plan, [shrunk], [shrunk], [Moments.alone(1e14)], [shrunk])
        monkeypatch.setattr("dpbn.learners.estimate.STANDS_OUT", math.inf)
        monkeypatch.setattr("dpbn.learners.estimate.MARGIN_STANDS_OUT", math.inf)
        (same,) = _give_back(schema, plan, [shrunk + 40.0], [shrunk], [Moments.alone(1.0)], [shrunk])
    assert kept == pytest.approx(shrunk) and same == pytest.approx(shrunk)


def test_what_hardly_matters_is_not_merged_into_what_does():
    """Two binary families with a common name: one table pays for both, but not if one of them is next to nothing."""
    structure = structure_of(dict.fromkeys("abc", 2), {"b": ("a",), "c": ("b",)})
    assert plan_tables(structure).tables == (("a", "b", "c"),)
    assert plan_tables(structure, weights={"a": 1.0, "b": 1.0, "c": 1e-6}).tables == (("a", "b"), ("b", "c"))
