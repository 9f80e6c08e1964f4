"""What a workload says about where errors matter."""

import numpy as np
import pytest

from dpbn import load_network
from dpbn.learners.influence import FLOOR, influences
from dpbn.learners.optimized import learn_optimized
from dpbn.workload import Query


def test_barren_nodes_do_not_matter_and_the_asked_node_does():
    structure = load_network("alarm").structure
    weights = influences(structure, (Query(("HISTORY",)), Query(("LVFAILURE",), {"HISTORY": "TRUE"})))
    assert weights["LVFAILURE"] > 0.05 and weights["HISTORY"] > 0.05
    assert all(weights[node] == FLOOR for node in structure.nodes if node not in ("LVFAILURE", "HISTORY"))
    assert weights == influences(structure, (Query(("HISTORY",)), Query(("LVFAILURE",), {"HISTORY": "TRUE"})))


@pytest.mark.parametrize("centre", ["BP", "SAO2"])
def test_a_workload_moves_the_budget_and_lowers_its_error(centre, make_curator):
    network = load_network("alarm")
    child = network.structure.dag.children(centre)[0] if network.structure.dag.children(centre) else None
    workload = (Query((centre,)), *([Query((centre, child))] if child else []))
    errors = {}
    for name, asked in (("without", None), ("with", workload)):
        total = []
        for seed in range(3):
            curator = make_curator(network, 10_000, 1.0, seed)
            learned = learn_optimized(network.structure, curator, prior={}, public_cpts={}, workload=asked)
            total.append(np.abs(learned.cpts[centre] - network.cpt(centre)).mean())
        errors[name] = np.mean(total)
    assert errors["with"] < 0.8 * errors["without"]
