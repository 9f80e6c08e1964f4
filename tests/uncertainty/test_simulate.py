"""What error bars are simulated with: the number of rows, and noise of the published laws on every kind of table."""

from fractions import Fraction

import numpy as np
import pytest

import dpbn
from dpbn.measurement import Measurement, Sampling, Together, estimated_rows, variance_apart
from dpbn.sampling import sample_codes
from dpbn.uncertainty.simulate import _evened, simulated, simulated_noise

TENTH = Sampling(Fraction(1, 10), "1")
PAIR = Together("1", (("a",), ("b",)), (2, 3))


def table(values, scale=1.0, mechanism="laplace", names=("a",), **facts):
    return Measurement(names, np.array(values), mechanism, scale, 1.0, **facts)


def test_rows_are_the_totals_weighted_by_what_is_known_of_them():
    precise, vague = table([600, 400], 1.0), table([900, 1100, 0, 0], 30.0, names=("c",))
    weights = 1 / (2 * variance_apart("laplace", 1.0)), 1 / (4 * variance_apart("laplace", 30.0))
    expected = (1000 * weights[0] + 2000 * weights[1]) / sum(weights)
    assert estimated_rows([precise, vague]) == pytest.approx(expected)
    assert estimated_rows([vague]) == pytest.approx(2000)


def test_a_sample_tells_the_rows_only_where_nothing_else_does():
    sampled = table([70, 30], sampling=TENTH)
    assert estimated_rows([sampled]) == pytest.approx(1000)
    assert estimated_rows([sampled, table([300, 300])]) == pytest.approx(600)


def test_tables_with_joint_noise_have_one_total():
    first = table([30, 70], 5.0, "joint", ("a",), together=PAIR)
    second = table([50, 20, 30], 5.0, "joint", ("b",), together=PAIR)
    alone = table([150, 150], 5.0)
    once = [1 / m.summed_variance(()) for m in (second, alone)]
    expected = (100 * once[0] + 300 * once[1]) / sum(once)
    assert estimated_rows([first, second, alone]) == pytest.approx(expected)


def test_there_is_at_least_one_row():
    assert estimated_rows([table([-30, 10], 20.0)]) == 1.0


@pytest.mark.parametrize(
    ("mechanism", "scale", "draws"), [("laplace", 7.0, 1), ("gaussian", 9.0, 1), ("summed", 4.0, 3)]
)
def test_simulated_noise_has_the_published_deviation(mechanism, scale, draws):
    counts = np.full((4000, 2), 500)
    (noisy,) = simulated_noise([counts], [table([0, 0], scale, mechanism, draws=draws)], seed=3)
    assert (noisy - counts).var() == pytest.approx(variance_apart(mechanism, scale, draws), rel=0.1)
    assert noisy.mean() == pytest.approx(500, abs=1)


def test_a_table_measured_on_a_sample_is_simulated_on_one():
    counts = np.full((4000, 2), 500)
    (noisy,) = simulated_noise([counts], [table([0, 0], 0.01, sampling=TENTH)], seed=3)
    assert noisy.mean() == pytest.approx(50, abs=1) and noisy.var() == pytest.approx(45, rel=0.1)


def test_joint_noise_is_simulated_as_it_was_drawn_together():
    """Equal totals in every repetition, also where counts were rounded one by one and their totals differ a little."""
    measured = [
        table([0, 0], 3.0, names=("c",)),
        table([0, 0], 5.0, "joint", ("a",), together=PAIR),
        table([0, 0, 0], 5.0, "joint", ("b",), together=PAIR),
    ]
    counts = [np.tile([7, 9], (3000, 1)), np.tile([60, 40], (3000, 1)), np.tile([50, 30, 22], (3000, 1))]
    alone, first, second = simulated_noise(counts, measured, seed=1)
    assert (counts[2] == [50, 30, 22]).all()  # what was given stays
    assert (first.sum(axis=1) == second.sum(axis=1)).all()
    for noisy, m in ((first, measured[1]), (second, measured[2])):
        assert noisy.sum(axis=1).var() == pytest.approx(m.summed_variance(()), rel=0.15)
        assert noisy[:, -1].var() == pytest.approx(m.variance, rel=0.15)
    assert alone.mean(axis=0) == pytest.approx([7, 9], abs=0.5)
    assert second.mean(axis=0) == pytest.approx([48, 30, 22], abs=1.0)


@pytest.mark.parametrize("names", [(), ("smoke",), ("lung", "smoke"), ("tub", "asia", "either")])
def test_rows_that_were_drawn_are_counted_once_all_or_some_of_them(names):
    network = dpbn.load_network("asia")
    source, codes = simulated(network, 500, seed=3), sample_codes(network, 500, 3)
    some = np.arange(500) % 3 == 0
    whole, part = (np.zeros([2] * len(names), dtype=int) for _ in range(2))
    for row in range(500):
        cell = tuple(codes[name][row] for name in names)
        whole[cell] += 1
        part[cell] += some[row]
    found = source.counts([names])[names]
    np.testing.assert_array_equal(found, whole)
    np.testing.assert_array_equal(source.sampled_counts([names], lambda rows: some[:rows])[names], part)
    assert source.counts([names])[names] is found and not found.flags.writeable


def test_totals_are_evened_where_it_matters_least():
    even = _evened([np.array([[10, 90], [5, 5]]), np.array([[70, 20, 8], [0, 4, 7]])])
    assert [cells.tolist() for cells in even] == [[[10, 90], [5, 5]], [[72, 20, 8], [0, 4, 6]]]


@pytest.mark.parametrize("stage_one", [0.2, 0.5])
def test_bars_of_the_published_algorithm_hold_the_truth(stage_one):
    """Two stages, the first on a sample: the bars are neither those of its noise alone nor of all rows."""
    network = dpbn.load_network("cancer")
    truth, held = dpbn.Inference(network).posteriors(), []
    for seed in range(6):
        release = dpbn.learn(
            network.sample(5_000, seed=seed), network, 2.0, method="icml2020", stage_one=stage_one,
            noise=dpbn.InsecureNoise(seed),
        )  # fmt: skip
        for node, bars in dpbn.Inference(release).intervals().items():
            low, high = bars.interval(0.9)
            held.append(((low <= truth[node]) & (truth[node] <= high)).all())
            assert (high - low).max() < 0.2
    assert np.mean(held) > 0.75
