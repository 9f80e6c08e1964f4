"""Sampling given evidence follows the exact joint, and a wrong one would be noticed."""

import numpy as np
import pytest
from scipy import stats

import dpbn
from dpbn.errors import ImpossibleEvidenceError, InputError, TooLargeError
from tests.inference.oracles import joint_table, random_evidence, random_network, with_evidence
from tests.structures import structure_of


@pytest.mark.parametrize("seed", range(4))
def test_rows_follow_the_conditional_joint(seed):
    network = random_network(seed, 5, zeros=0.3 * (seed % 2))
    for attempt in range(20):
        evidence = random_evidence(network, 10 * seed + attempt, hard=1, soft=1)
        joint = with_evidence(network, joint_table(network), evidence)
        if joint.sum() > 0:
            break
    frame = dpbn.Inference(network).sample(40_000, evidence, seed=seed)
    assert list(frame.columns) == list(network.nodes)
    flat = np.ravel_multi_index(tuple(frame[n].cat.codes.to_numpy().astype(int) for n in network.nodes), joint.shape)
    counts = np.bincount(flat, minlength=joint.size)
    probabilities = (joint / joint.sum()).ravel()
    assert counts[probabilities == 0].sum() == 0
    expected = probabilities * len(frame)
    common = expected >= 5
    if common.sum() > 1:
        statistic = ((counts[common] - expected[common]) ** 2 / expected[common]).sum()
        assert stats.chi2.sf(statistic, common.sum()) > 1e-4
        wrong = np.roll(expected[common], 1)
        assert ((counts[common] - wrong) ** 2 / wrong).sum() > statistic


def test_only_what_is_above_the_findings_must_fit():
    """Nodes that say nothing of the findings are drawn from their CPTs, however wide the network."""
    side = 14
    parents = {
        f"{row},{column}": [*([f"{row - 1},{column}"] if row else []), *([f"{row},{column - 1}"] if column else [])]
        for row in range(side)
        for column in range(side)
    }
    structure = structure_of(dict.fromkeys(parents, 3), parents)
    generator = np.random.default_rng(0)
    grid = dpbn.BayesianNetwork(
        structure, {n: generator.dirichlet(np.ones(3), size=(3,) * len(parents[n])) for n in parents}
    )
    ask = dpbn.Inference(grid)
    rows = ask.sample(20_000, {"1,1": "1", "0,0": [0.5, 1.0, 0.2]}, seed=0)
    found = {n: rows[n].cat.codes.value_counts(normalize=True).sort_index().to_numpy() for n in ("0,1", "2,1")}
    for node, frequencies in found.items():
        true = ask.query(node, {"1,1": "1", "0,0": [0.5, 1.0, 0.2]}).values
        np.testing.assert_allclose(frequencies, true, atol=0.02)
    assert len(ask.sample(3)) == 3
    with pytest.raises(TooLargeError, match="of this sampler"):
        ask.sample(3, {f"{side - 1},{side - 1}": "0"})


def test_sampling_refuses():
    ask = dpbn.Inference(dpbn.load_network("asia"))
    with pytest.raises(ImpossibleEvidenceError):
        ask.sample(5, {"either": "no", "lung": "yes"})
    with pytest.raises(InputError, match="rows"):
        ask.sample(-1)
    for seed in (-1, "a", 1.5, True):
        with pytest.raises(InputError, match="seed must be a whole number"):
            ask.sample(5, {"smoke": "yes"}, seed=seed)
    with pytest.raises(TooLargeError, match="rows x nodes"):
        ask.sample(10**15)
    assert len(ask.sample(0)) == 0
    assert ask.sample(20, {"smoke": "yes"}, seed=4).equals(ask.sample(20, {"smoke": "yes"}, seed=4))
