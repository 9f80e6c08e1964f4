"""A batch of networks answers exactly as each network alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbn
from dpbn.errors import ImpossibleEvidenceError, StructureError
from dpbn.inference import BatchInference
from tests.inference.oracles import networks, random_evidence, stacked


def variants(network, count, seed):
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        cpts = {}
        for node in network.nodes:
            table = network.cpt(node) * generator.uniform(0.5, 1.5, network.cpt(node).shape)
            cpts[node] = table / table.sum(axis=-1, keepdims=True)
        found.append(dpbn.BayesianNetwork(network.structure, cpts))
    return found


@settings(deadline=None, max_examples=25)
@given(networks(), st.integers(0, 1000), st.integers(0, 2), st.integers(0, 1), st.sampled_from([1, 4, 300_000]))
def test_each_network_of_a_batch_answers_as_alone(network, seed, hard, soft, chunk):
    from dpbn.inference import networks as module

    evidence = random_evidence(network, seed, hard, soft)
    several = variants(network, 5, seed)
    before, module.CHUNK_CELLS = module.CHUNK_CELLS, chunk
    try:
        many = stacked(several)
        alone = [dpbn.Inference(one, strategy="elimination") for one in several]
        if alone[0].probability(evidence) == 0:
            with pytest.raises(ImpossibleEvidenceError):
                many.posteriors(evidence)
            return
        posteriors = many.posteriors(evidence)
        for i, a in enumerate(alone):
            for node, values in a.posteriors(evidence).items():
                np.testing.assert_allclose(posteriors[node][i], values, rtol=1e-8, atol=1e-14)
        free = [n for n in network.nodes if n not in evidence][:2]
        if free:
            expected = [a.query(free, evidence).values for a in alone]
            np.testing.assert_allclose(many.query(free, evidence), expected, rtol=1e-8, atol=1e-14)
    finally:
        module.CHUNK_CELLS = before


def test_wrong_shapes_are_named():
    network = dpbn.load_network("asia")
    cpts = {n: np.stack([network.cpt(n)] * 2) for n in network.nodes}
    cpts["lung"] = np.stack([network.cpt("lung"), network.cpt("lung")[::-1]])
    values = BatchInference(network.structure, cpts).query("lung", {"smoke": "yes"})
    np.testing.assert_allclose(values, [[0.1, 0.9], [0.01, 0.99]])
    posteriors = BatchInference(network.structure, cpts).posteriors({"xray": "yes"})
    alone = dpbn.Inference(network).posteriors({"xray": "yes"})
    for node in network.nodes:
        np.testing.assert_allclose(posteriors[node][0], alone[node])
    for wrong in (np.ones((2, 3)), np.ones((4, 2, 2)), network.cpt("lung")):
        with pytest.raises(StructureError, match="'lung' must have shape"):
            BatchInference(network.structure, {**cpts, "lung": wrong})
    with pytest.raises(StructureError, match="sum to 1"):
        BatchInference(network.structure, {**cpts, "lung": np.ones((2, 2, 2))})


def test_batches_that_do_not_fit_are_refused():
    asia = dpbn.load_network("asia")
    cpts = {node: np.stack([cpt] * 2) for node, cpt in asia.cpts.items()}
    with pytest.raises(StructureError, match="'smoke'"):
        BatchInference(asia.structure, {**cpts, "smoke": np.stack([asia.cpt("smoke")] * 3)})
    with pytest.raises(StructureError, match=">= 0"):
        BatchInference(asia.structure, {**cpts, "smoke": np.array([[0.5, 0.5], [1.5, -0.5]])})


@pytest.mark.parametrize("chunk", [1, 300_000])
def test_the_network_that_calls_evidence_impossible_is_named(chunk, monkeypatch):
    monkeypatch.setattr("dpbn.inference.networks.CHUNK_CELLS", chunk)
    asia = dpbn.load_network("asia")
    cpts = {node: np.stack([cpt] * 5) for node, cpt in asia.cpts.items()}
    cpts["smoke"][3] = [0.0, 1.0]
    many = BatchInference(asia.structure, cpts)
    for question in (lambda: many.posteriors({"smoke": "yes"}), lambda: many.query("lung", {"smoke": "yes"})):
        with pytest.raises(ImpossibleEvidenceError, match="network 3"):
            question()


def test_rows_rounded_in_a_file_are_taken_as_distributions():
    asia = dpbn.load_network("asia")
    rounded = BatchInference(asia.structure, {node: cpt[None] * (1 + 4e-7) for node, cpt in asia.cpts.items()})
    assert rounded.query("dysp")[0] == pytest.approx(dpbn.Inference(asia).query("dysp").values, rel=1e-12)
