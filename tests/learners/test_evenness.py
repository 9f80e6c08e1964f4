"""How even rows are, and what hides it."""

import numpy as np
import pytest

from dpbn import load_network
from dpbn.learners import agreement
from dpbn.learners.estimate import estimate_batch
from dpbn.learners.evenness import GRID, concentrations, evenness, visible
from dpbn.learners.stein import Rows
from dpbn.measurement import Moments
from tests.structures import structure_of


def noisy_rows(generator, concentration, *, nodes=12, states=4, parents=30, records=200.0, deviation=20.0):
    """What the tables tell of nodes whose rows are drawn with this concentration; two repetitions."""
    result = {}
    for node in range(nodes):
        truth = generator.dirichlet(np.full(states, concentration), (2, parents))
        counts = generator.poisson(records * truth)
        seen = counts + generator.normal(0.0, deviation, counts.shape)
        result[f"x{node}"] = Rows(
            truth, seen, np.full((2, parents), records), deviation**2, np.full(seen.shape, deviation**2)
        )
    return result


@pytest.mark.parametrize("concentration", [0.15, 0.5, 1.5, 4.0])
def test_the_concentration_is_found(concentration):
    found = concentrations(noisy_rows(np.random.default_rng(0), concentration))
    mean = np.exp(np.mean([np.log(value).mean() for value in found.values()]))
    assert mean == pytest.approx(concentration, rel=0.3)


def test_a_node_whose_rows_noise_drowns_is_judged_by_the_others():
    generator = np.random.default_rng(1)
    for concentration, low, high in ((0.15, 0.1, 0.35), (3.0, 1.5, 6.0)):
        rows = noisy_rows(generator, concentration)
        rows |= {"drowned": noisy_rows(generator, 1.0, nodes=1, parents=2, deviation=5_000.0)["x0"]}
        found = concentrations(rows)["drowned"]
        assert ((low < found) & (found < high)).all()


def test_each_repetition_is_judged_by_itself():
    generator = np.random.default_rng(2)
    sharp, even = noisy_rows(generator, 0.15), noisy_rows(generator, 3.0)
    both = {
        node: Rows(
            *(
                np.concatenate([getattr(one[node], name) for one in (sharp, even)])
                for name in ("probabilities", "seen")
            ),
            np.concatenate([one[node].records for one in (sharp, even)]),
            sharp[node].variance,
            np.concatenate([one[node].doubt for one in (sharp, even)]),
        )
        for node in sharp
    }
    found, alone = concentrations(both), (concentrations(sharp), concentrations(even))
    for node, values in found.items():
        assert values == pytest.approx(np.concatenate([one[node] for one in alone]))


def test_sharp_rows_are_left_alone_and_even_ones_are_not():
    margins = {f"x{node}": (np.full((2, 4), 1_500.0), 1e4) for node in range(12)}
    generator = np.random.default_rng(3)
    for concentration, low, high in ((0.15, 0.0, 0.01), (2.0, 0.9, 1.0)):
        found = evenness(noisy_rows(generator, concentration), margins)
        assert all(low <= part <= high for even in found.values() for part in even.part)
        assert all((even.records >= 4 * GRID[0]).all() for even in found.values())


def test_a_margin_shows_only_above_its_noise():
    even, uneven = np.full((1, 3), 1000.0), np.array([[1600.0, 900.0, 500.0]])
    assert visible(even, 100.0) == pytest.approx(0.0)
    assert visible(uneven, 100.0) == pytest.approx(1.0, abs=1e-3)
    assert 0.0 < visible(uneven, 1e5)[0] < 0.9
    assert visible(uneven, 1e7) == pytest.approx(0.0)


def test_no_node_without_rows():
    assert evenness({}, {}) == {}


def even_network(generator):
    """Nodes with up to three parents and even rows, as tables of their families."""
    sizes = dict.fromkeys((f"x{i}" for i in range(9)), 4)
    parents = {f"x{i}": tuple(f"x{j}" for j in range(max(0, i - 2), i)) for i in range(1, 9)}
    structure = structure_of(sizes, parents)
    cpts = {node: generator.dirichlet(np.full(4, 2.0), structure.shape(node)[:-1]) for node in structure.nodes}
    return structure, cpts


@pytest.mark.parametrize("even", [True, False])
def test_it_serves_even_networks_and_spares_sharp_ones(monkeypatch, even):
    """Noise above the counts, 30 repetitions; without the prior all rows count as sharp."""
    generator = np.random.default_rng(4)
    if even:
        structure, truth = even_network(generator)
    else:
        network = load_network("alarm")
        structure, truth = network.structure, {node: network.cpt(node) for node in network.nodes}
    tables = tuple(structure.family(node).names for node in structure.nodes)
    exact = [500 * t[0] for t in agreement.ModelMargins(structure, tables)({n: c[None] for n, c in truth.items()})]
    noisy = [np.round(table + generator.laplace(0.0, 60.0, (30, *table.shape))) for table in exact]

    def error():
        made = estimate_batch(
            structure, tables, noisy, [Moments.alone(2 * 60.0**2)] * len(tables), prior={}, public_cpts={}
        )
        return np.mean([np.abs(made[node] - truth[node]).sum(axis=-1).mean() for node in structure.nodes])

    with_prior = error()
    monkeypatch.setattr("dpbn.learners.evenness.EVEN", 1e6)
    without = error()
    assert with_prior < 0.92 * without if even else with_prior == pytest.approx(without, rel=0.01)
