"""The networks of the bnlearn repository: posteriors and queries against pyAgrum, MPE by single flips.

The BIF files come with pgmpy; pyAgrum cannot read all of them, so its networks are built from ours.
"""

import gzip
from pathlib import Path

import numpy as np
import pytest

import dpbn
from dpbn.errors import TooLargeError

pyagrum = pytest.importorskip("pyagrum")
pgmpy = pytest.importorskip("pgmpy")
MODELS = Path(pgmpy.__file__).parent / "utils" / "example_models"
SMALL = ("asia", "cancer", "earthquake", "survey", "sachs", "child", "alarm", "insurance", "hailfinder", "hepar2")
MEDIUM = ("win95pts", "andes", "pathfinder", "pigs", "water")


def load(name: str, folder: Path):
    path = folder / f"{name}.bif"
    path.write_bytes(gzip.decompress((MODELS / f"{name}.bif.gz").read_bytes()))
    return dpbn.load_network(path)


def to_peer(network):
    model = pyagrum.BayesNet()
    for node in network.nodes:
        labels = [f"s{k}" for k in range(len(network.states(node)))]
        model.add(pyagrum.LabelizedVariable(node, node, labels))
    for parent, child in network.structure.dag.arcs:
        model.addArc(parent, child)
    for node in network.nodes:
        cpt = network.cpt(node) / network.cpt(node).sum(axis=-1, keepdims=True)
        last = cpt.ndim - 1
        model.cpt(node).fillWith(cpt.transpose((*range(last - 1, -1, -1), last)).ravel().tolist())
    return model


def drawn_evidence(network, seed, count=3):
    generator = np.random.default_rng(seed)
    row = network.sample(1, seed=seed).iloc[0]
    chosen = generator.choice(len(network.nodes), min(count, len(network.nodes) - 1), replace=False)
    return {network.nodes[i]: str(row[network.nodes[i]]) for i in chosen}


@pytest.mark.parametrize("name", [*SMALL, *MEDIUM])
def test_posteriors_agree_with_pyagrum(name, tmp_path):
    network = load(name, tmp_path)
    peer = pyagrum.LazyPropagation(to_peer(network))
    ask = dpbn.Inference(network)
    for seed in range(3 if name in SMALL else 1):
        evidence = drawn_evidence(network, seed)
        peer.setEvidence({n: network.states(n).index(label) for n, label in evidence.items()})
        peer.makeInference()
        posteriors = ask.posteriors(evidence)
        for node in network.nodes:
            np.testing.assert_allclose(
                posteriors[node], peer.posterior(node).toarray(), rtol=1e-6, atol=1e-9, err_msg=node
            )
        target = next(n for n in network.nodes if n not in evidence)
        by_elimination = dpbn.Inference(network, strategy="elimination").query([target], evidence).values
        np.testing.assert_allclose(by_elimination, posteriors[target], rtol=1e-7, atol=1e-12)


def log_weight(network, codes) -> float:
    """ln of the joint probability of a full assignment."""
    total = 0.0
    for node in network.nodes:
        value = network.cpt(node)[tuple(codes[n] for n in (*network.parents(node), node))]
        total += np.log(value) if value > 0 else -np.inf
    return total


@pytest.mark.parametrize("name", [*SMALL, *MEDIUM, "munin3"])
def test_no_single_flip_improves_an_mpe(name, tmp_path):
    network = load(name, tmp_path)
    evidence = drawn_evidence(network, 5)
    ask = dpbn.Inference(network)
    assignment, probability = ask.mpe(evidence)
    codes = {n: network.states(n).index(s) for n, s in {**assignment, **evidence}.items()}
    best = log_weight(network, codes)
    assert np.isfinite(best)
    assert np.log(probability) + ask.log_probability(evidence) == pytest.approx(best, rel=1e-6, abs=1e-4)
    dag = network.structure.dag
    for node in assignment:
        touched = (node, *dag.children(node))

        def local(codes, touched=touched):
            return sum(
                np.log(max(network.cpt(t)[tuple(codes[n] for n in (*network.parents(t), t))], 1e-300)) for t in touched
            )

        here = local(codes)
        for other in range(len(network.states(node))):
            assert local({**codes, node: other}) <= here + 1e-9, node


def test_what_does_not_fit_is_refused_with_its_size(tmp_path):
    network = load("munin1", tmp_path)
    ask = dpbn.Inference(network)
    with pytest.raises(TooLargeError, match="cells"):
        ask.posteriors()
    target = network.nodes[0]
    assert ask.query([target]).values.sum() == pytest.approx(1)  # one node's ancestors fit all the same
