"""Every baseline: a valid network, seeded, within budget, better with more budget; and each one's own mathematics."""

import itertools
import math

import numpy as np
import pytest

from dpbn import BayesianNetwork, load_network
from dpbn.errors import PrivacyError, TooLargeError
from dpbn.evaluate import metrics
from dpbn.evaluate.baselines import BASELINES, description
from dpbn.evaluate.baselines.common import families, maximal, measure_tables
from dpbn.evaluate.baselines.datacube import chosen_cuboids
from dpbn.evaluate.baselines.fourier import cosine_basis, learn_fourier, spectral_sensitivity
from dpbn.evaluate.baselines.hdmm import marginal_weights
from dpbn.evaluate.baselines.priview import covering_views, maximum_entropy, ripple
from dpbn.evaluate.baselines.residuals import closure, least_squares
from dpbn.evaluate.methods import METHODS, method
from dpbn.margins import project
from dpbn.sampling import sample_codes
from dpbn.uncertainty.simulate import SimulatedSource

ASIA = load_network("asia")
SOURCE = SimulatedSource(ASIA.structure.schema, sample_codes(ASIA, 4000, 1))
EXACT = BayesianNetwork(ASIA.structure, METHODS["exact"].learn(ASIA.structure, SOURCE, 1.0, 0))
UNSEEDED = {"opendp"}
COMPILED = {"private-pgm", "private-pgm-tables", "opendp"}  # seconds of compilation each
NAMES = sorted(set(METHODS) - {"exact"})


def _learn(name, epsilon, seed):
    return BayesianNetwork(ASIA.structure, method(name).learn(ASIA.structure, SOURCE, epsilon, seed))


@pytest.mark.parametrize("name", sorted(COMPILED))
def test_fitted_models_approach_the_counts(name):
    pytest.importorskip("mbi")
    assert metrics.row(EXACT, _learn(name, 200.0, 3)) < 0.1


@pytest.mark.parametrize("name", sorted(set(NAMES) - COMPILED))
def test_a_valid_network_that_approaches_the_counts_as_epsilon_grows(name):
    parents = {n: np.full(ASIA.cpt(n).shape[:-1], 1.0 / max(1, math.prod(ASIA.cpt(n).shape[:-1]))) for n in ASIA.nodes}
    error = {e: metrics.weighted(EXACT, _learn(name, e, 3), parents) for e in (0.05, 200.0)}
    assert error[200.0] < 0.6 * error[0.05]
    if name != "mwem":  # its weights converge slowly, whatever the budget
        assert error[200.0] < 0.08


@pytest.mark.parametrize("name", sorted(set(NAMES) - UNSEEDED - COMPILED))
def test_the_seed_decides(name):
    once = _learn(name, 1.0, 5)
    assert once == _learn(name, 1.0, 5)
    assert once != _learn(name, 1.0, 6)


@pytest.mark.parametrize("name", ["mwem", "datacube"])
def test_what_cannot_run_says_why(name):
    alarm = load_network("alarm")
    source = SimulatedSource(alarm.structure.schema, sample_codes(alarm, 10, 1))
    with pytest.raises(TooLargeError, match="at most"):
        BASELINES[name].learn(alarm.structure, source, 1.0, 0)


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_every_baseline_documents_itself(name):
    told = description(name)
    assert set(told) == {"what", "Output", "Guarantee", "Sensitivity", "Source"}
    assert "DP" in told["Guarantee"]
    assert all(len(text) > 20 for text in told.values())


def test_overspending_is_refused_by_the_accountant():
    with pytest.raises(PrivacyError):
        measure_tables(SOURCE, 1.0, 0, {("asia",): 0.6, ("smoke",): 0.6})


def test_maximal_families_keep_one_of_each():
    assert maximal([("a",), ("a", "b"), ("b", "a"), ("c",)]) == [("a", "b"), ("c",)]


def test_least_squares_is_the_pseudo_inverse():
    """Against the textbook: stack the marginal queries over the full table, weight, solve."""
    network = load_network("cancer")
    schema = network.structure.schema
    names = ("Pollution", "Cancer", "Smoker")
    generator = np.random.default_rng(0)
    tables = {
        names: generator.normal(size=schema.shape(names)),
        ("Cancer", "Pollution"): generator.normal(size=(2, 2)),
        ("Smoker",): generator.normal(size=2),
    }
    variances = dict(zip(tables, (4.0, 1.0, 0.25), strict=True))
    blocks, values = [], []
    for key, table in tables.items():
        rows = np.array([project(unit.reshape(2, 2, 2), names, key).ravel() for unit in np.eye(8)]).T
        blocks.append(rows / math.sqrt(variances[key]))
        values.append(table.ravel() / math.sqrt(variances[key]))
    solved = np.linalg.lstsq(np.vstack(blocks), np.concatenate(values), rcond=None)[0].reshape(2, 2, 2)
    found = least_squares(schema, tables, variances, [names, ("Smoker", "Cancer")])
    np.testing.assert_allclose(found[names], solved, atol=1e-10)
    np.testing.assert_allclose(found["Smoker", "Cancer"], project(solved, names, ("Smoker", "Cancer")), atol=1e-10)


def test_marginal_weights_beat_equal_shares_of_the_maximal_families():
    """The expected squared error of the optimised strategy, computed from the weights alone."""
    structure = load_network("child").structure
    schema, workload = structure.schema, list(families(structure).values())

    def expected(weights):
        return sum(
            math.prod(schema[n].size - 1 for n in s)
            * sum(1 / schema.cells(f) for f in workload if set(s) <= set(f))
            / sum(w**2 / schema.cells(a) for a, w in weights.items() if set(s) <= set(a))
            for s in closure(workload)
        )

    weights = marginal_weights(structure)
    assert sum(weights.values()) == pytest.approx(1.0)
    tables = maximal(workload)
    assert expected(weights) < 0.95 * expected(dict.fromkeys(tables, 1 / len(tables)))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_cosine_basis_is_orthogonal(size):
    basis = np.vstack([np.ones(size), cosine_basis(size)])
    np.testing.assert_allclose(basis @ basis.T, size * np.eye(size), atol=1e-12)


def test_spectral_sensitivity_is_the_number_of_coefficients_for_binary_variables():
    sets = closure(families(ASIA.structure).values())
    assert spectral_sensitivity(ASIA.structure, sets) == pytest.approx(len(sets))


def test_fourier_without_noise_returns_the_counts():
    cpts = learn_fourier(ASIA.structure, SOURCE, 1e9, 0)
    counts = SOURCE.counts([ASIA.structure.family("dysp").names])[ASIA.structure.family("dysp").names] + 1.0
    np.testing.assert_allclose(cpts["dysp"], counts / counts.sum(axis=-1, keepdims=True), atol=1e-6)


def test_views_cover_every_pair_within_their_size():
    for name in ("asia", "child"):
        structure = load_network(name).structure
        views = covering_views(structure)
        pairs = {frozenset(pair) for view in views for pair in itertools.combinations(view, 2)}
        assert pairs == {frozenset(pair) for pair in itertools.combinations(structure.nodes, 2)}
        assert max(structure.schema.cells(view) for view in views) <= 256


def test_ripple_keeps_the_total_and_lifts_the_low():
    table = np.random.default_rng(0).normal(3.0, 6.0, size=(3, 4, 2))
    mended = ripple(table)
    assert mended.sum() == pytest.approx(table.sum())
    assert mended.min() > -1.5 > table.min()


def test_maximum_entropy_of_independent_pairs_is_their_product():
    network = load_network("cancer")
    a, b = np.array([0.3, 0.7]), np.array([0.6, 0.4])
    table = maximum_entropy({("Pollution",): a, ("Smoker",): b}, ("Pollution", "Smoker"), network.structure)
    np.testing.assert_allclose(table, np.outer(a, b), atol=1e-12)


def test_cuboids_contain_every_family():
    cuboids = chosen_cuboids(ASIA.structure)
    for names in families(ASIA.structure).values():
        assert any(set(names) <= set(cuboid) for cuboid in cuboids)
