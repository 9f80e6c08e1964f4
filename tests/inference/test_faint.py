"""Evidence of next to no probability: answers stay right where plain products would underflow."""

import itertools
import math

import numpy as np
import pytest

import dpbn
from dpbn import BayesianNetwork, Dag, Schema, Structure, Variable
from dpbn.errors import QueryError
from tests.inference.oracles import stacked

STRATEGIES = ("auto", "elimination", "junction-tree")
ODDS = 1000.0  # by which one finding speaks for a state: 103 of them leave the range of floats
REPORT = np.array([[ODDS, 1.0], [1.0, ODDS]]) / (1.0 + ODDS)


def binary(parents, cpts):
    names = tuple(parents)
    schema = Schema(tuple(Variable(name, ("s0", "s1")) for name in names))
    return BayesianNetwork(Structure(schema, Dag(names, {n: p for n, p in parents.items() if p})), cpts)


def features(count):
    """A class and its features, half of which speak for one class and then half for the other."""
    names = [f"f{index}" for index in range(count)]
    parents = {"c": (), **dict.fromkeys(names, ("c",))}
    network = binary(parents, {"c": np.array([0.25, 0.75]), **dict.fromkeys(names, REPORT)})
    evidence = {name: "s0" if index < count // 2 else "s1" for index, name in enumerate(names)}
    return network, evidence, math.log(ODDS / (1.0 + ODDS) ** 2) * count / 2


def copies(length, first, second):
    """One hidden state copied along a chain, each copy seen through an unreliable report: first for s0, then for s1."""
    hidden, told = [f"h{i}" for i in range(length)], [f"t{i}" for i in range(length)]
    parents = {"h0": (), **{h: (before,) for before, h in itertools.pairwise(hidden)}}
    parents |= {t: (h,) for h, t in zip(hidden, told, strict=True)}
    cpts = {"h0": np.array([0.5, 0.5]), **dict.fromkeys(hidden[1:], np.eye(2)), **dict.fromkeys(told, REPORT)}
    evidence = {t: "s0" if i < first else "s1" for i, t in enumerate(told) if i < first or i >= length - second}
    return binary(parents, cpts), evidence, hidden


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("count", [180, 216, 360])  # products of 1e-270, 1e-324 and 1e-540
def test_findings_that_cancel(strategy, count):
    network, evidence, log = features(count)
    ask, truth = dpbn.Inference(network, strategy=strategy), pytest.approx([0.25, 0.75], rel=1e-9)
    assert ask.query("c", evidence).values == truth
    assert ask.posteriors(evidence)["c"] == truth
    assert ask.log_probability(evidence) == pytest.approx(log, rel=1e-12)
    for found, probability in (ask.mpe(evidence), ask.map(["c"], evidence)):
        assert found == {"c": "s1"} and probability == pytest.approx(0.75, rel=1e-9)
    drawn = ask.sample(2_000, evidence, seed=1)["c"]
    assert abs((drawn == "s1").mean() - 0.75) < 0.05


def test_many_networks_and_rows_at_once():
    network, evidence, _ = features(360)
    batch = stacked([network, network])
    np.testing.assert_allclose(batch.query("c", evidence), [[0.25, 0.75]] * 2, rtol=1e-9)
    np.testing.assert_allclose(batch.posteriors(evidence)["c"], [[0.25, 0.75]] * 2, rtol=1e-9)
    other = {**dict.fromkeys(list(evidence)[1:], None), "f0": "s0"}  # one row that needs logarithms, one that does not
    table = {name: [evidence[name], other[name]] for name in evidence}
    found = dpbn.Inference(network).predict_proba(table, "c")
    np.testing.assert_allclose(found, [[0.25, 0.75], [ODDS / (ODDS + 3), 3 / (ODDS + 3)]], rtol=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_state_that_was_as_good_as_lost_comes_back(strategy):
    network, evidence, hidden = copies(300, 117, 167)  # odds of 1e351 for one state, then of 1e501 for the other
    ask = dpbn.Inference(network, strategy=strategy)
    for name in (hidden[0], hidden[140], hidden[-1]):
        assert ask.query(name, evidence).values == pytest.approx([0, 1], abs=1e-12)
        assert ask.map([name], evidence)[0] == {name: "s1"}
    posteriors, best = ask.posteriors(evidence), ask.mpe(evidence)[0]
    assert all(posteriors[name] == pytest.approx([0, 1], abs=1e-12) and best[name] == "s1" for name in hidden)
    assert (ask.sample(20, evidence, seed=1)[hidden] == "s1").all(axis=None)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e155, 1e300])
def test_the_scale_of_likelihoods_does_not_matter(strategy, scale):
    network = dpbn.load_network("asia")
    ask = dpbn.Inference(network, strategy=strategy)
    plain = {key: [1.0, 3.0] for key in ("xray", "dysp", "bronc")}
    scaled = {key: [scale, 3 * scale] for key in plain}
    np.testing.assert_allclose(ask.query("lung", scaled).values, ask.query("lung", plain).values, rtol=1e-9)
    for name, values in ask.posteriors(plain).items():
        np.testing.assert_allclose(ask.posteriors(scaled)[name], values, rtol=1e-9)
    assert ask.mpe(scaled)[1] == pytest.approx(ask.mpe(plain)[1])
    expected = ask.log_probability(plain) + 3 * math.log(scale)
    assert ask.log_probability(scaled) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(stacked([network]).query("lung", scaled), [ask.query("lung", plain).values], rtol=1e-9)
    assert ask.probability(scaled) == (math.inf if scale > 1 else 0.0)


def test_tiny_cells_of_cpts():
    row = np.array([1e-250, 1 - 1e-250])
    cpts = {"a": row, "b": np.stack([row, [0.5, 0.5]]), "c": np.stack([row, [0.2, 0.8]])}
    network = binary({"a": (), "b": ("a",), "c": ("b",)}, cpts)
    for strategy in STRATEGIES:
        ask, evidence = dpbn.Inference(network, strategy=strategy), {"a": "s0", "b": "s0"}
        assert ask.log_probability(evidence) == pytest.approx(2 * math.log(1e-250))
        assert ask.query("c", evidence).values == pytest.approx([0, 1], abs=1e-12)
        assert ask.mpe(evidence) == ({"c": "s1"}, pytest.approx(1.0))


def test_likelihoods_further_apart_than_floats_reach():
    network = binary({"a": (), "b": ("a",)}, {"a": np.array([0.5, 0.5]), "b": np.array([[1.0, 0.0], [0.0, 1.0]])})
    assert dpbn.Inference(network).query("b", {"a": [1e200, 1e-200], "b": [0.0, 1.0]}).values == pytest.approx([0, 1])
    with pytest.raises(QueryError, match=r"likelihoods of 'b' must not be further apart"):
        dpbn.Inference(network).posteriors({"a": [1e200, 1e-200], "b": [1e200, 1e-200]})
