"""Margins under the model against ordinary inference, and the step towards the tables."""

import numpy as np
import pytest

from dpbn import Inference, load_network
from dpbn.learners.refinement import LEAST, ModelMargins, expected_counts
from dpbn.learners.strategy import plan_tables
from dpbn.privacy.guarantee import Budget, Sensitivity


@pytest.mark.parametrize("name", ["asia", "child"])
def test_model_margins_are_the_networks_joint_probabilities(name):
    network = load_network(name)
    tables = plan_tables(network.structure, Budget(1.0), Sensitivity()).tables
    generator = np.random.default_rng(0)
    other = {n: generator.dirichlet(np.ones(c.shape[-1]), size=c.shape[:-1]) for n, c in network.cpts.items()}
    margins = ModelMargins(network.structure, tables)(
        {node: np.stack([network.cpt(node), other[node]]) for node in network.nodes}
    )
    ask = Inference(network)
    for names, margin in zip(tables, margins, strict=True):
        assert margin.shape == (2, *network.structure.schema.shape(names))
        assert margin[0] == pytest.approx(ask.query(list(names)).values, abs=1e-9)
        assert margin[1].sum() == pytest.approx(1.0)


def test_a_step_believes_the_value_without_noise_and_the_model_without_signal():
    expected = np.array([[10.0, 200.0, 5.0]])
    value = np.array([[12.0, 150.0, -400.0]])
    assert expected_counts(expected, value, 0.0)[0, :2] == pytest.approx(value[0, :2])
    assert expected_counts(expected, value, 1e12) == pytest.approx(expected)
    assert expected_counts(expected, value, 1.0)[0, 2] == pytest.approx(LEAST * 5.0)
