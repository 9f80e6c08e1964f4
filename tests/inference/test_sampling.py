"""Sampling given evidence follows the exact joint, and a wrong one would be noticed."""

import numpy as np
import pytest
from scipy import stats

import dpbn
from dpbn.errors import ImpossibleEvidenceError, InputError, TooLargeError
from tests.inference.oracles import joint_table, random_evidence, random_network, with_evidence


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
