"""One step of all CPTs towards what all tables together say: its algebra, and who has a say."""

import numpy as np
import pytest

from dpbn import load_network
from dpbn.learners import agreement
from dpbn.learners import estimate as estimate_module
from dpbn.learners.agreement import FURTHEST, HEARD, KNOWN, SAMPLED, SETTLED, SMALLEST, _moved, _Tangent, agreed
from dpbn.learners.estimate import estimate_batch
from dpbn.learners.evenness import Evenness
from dpbn.learners.refinement import ModelMargins
from dpbn.learners.stein import Rows
from dpbn.measurement import Moments
from tests.structures import structure_of

TABLES = (("asia", "tub", "either"), ("smoke", "lung"), ("either", "dysp"), ("xray",))
HOMES = {"asia": 0, "tub": 0, "either": 0, "smoke": 1, "lung": 1, "bronc": 1, "dysp": 2, "xray": 3}


@pytest.fixture(scope="module")
def asia():
    network = load_network("asia")
    cpts = {node: np.stack([network.cpt(node)] * 2) * 0.9 + 0.05 for node in network.nodes}  # away from 0 and 1
    cpts["tub"][:, 0] = [1e-6, 1 - 1e-6]
    return network.structure, cpts, ModelMargins(network.structure, TABLES)


def jacobian(margins, cpts, nodes, total):
    """J of the first repetition, column by column, by small differences of ordinary margins."""
    columns = []
    for node in nodes:
        for place in np.ndindex(cpts[node].shape[1:]):
            sides = []
            for by in (1e-5, -1e-5):
                moved = cpts[node].copy()
                moved[(slice(None), *place)] *= np.exp(by)
                moved /= moved.sum(axis=-1, keepdims=True)
                sides.append(np.concatenate([table[0].ravel() for table in margins({**cpts, node: moved})]))
            columns.append(total * (sides[0] - sides[1]) / 2e-5)
    return np.stack(columns, axis=1)


def test_the_tangent_is_the_derivative_and_its_transpose(asia):
    _, cpts, margins = asia
    nodes = ("smoke", "lung", "either", "dysp")  # the others are fixed
    tangent = _Tangent(margins, cpts, nodes, np.array([1000.0, 1000.0]))
    dense = jacobian(margins, cpts, nodes, 1000.0)
    generator = np.random.default_rng(0)
    change = {node: generator.normal(size=cpts[node].shape) for node in nodes}
    cells = [generator.normal(size=table.shape) for table in margins(cpts)]
    flat = np.concatenate([change[node][0].ravel() for node in nodes])
    forward = np.concatenate([table[0].ravel() for table in tangent.forward(change)])
    back = np.concatenate([tangent.back(cells)[node][0].ravel() for node in nodes])
    assert forward == pytest.approx(dense @ flat, abs=1e-2)  # of up to 500
    assert back == pytest.approx(dense.T @ np.concatenate([table[0].ravel() for table in cells]), abs=1e-2)


def rows_of(cpts, records, variance):
    known = {}
    for node, cpt in cpts.items():
        seen = records * cpt
        known[node] = Rows(cpt, seen, seen.sum(axis=-1), variance, np.full_like(cpt, variance / 2))
    return known


def evenness_of(cpts, part, records=4.0, visible=0.0):
    return {
        node: Evenness(*(np.full(len(cpt), number) for number in (part, records, visible)))
        for node, cpt in cpts.items()
    }


@pytest.mark.parametrize("part", [0.0, 0.7])
@pytest.mark.parametrize(("steps", "close"), [(20, 1e-4), (agreement.STEPS, 2e-2)])
def test_the_step_solves_the_normal_equations(asia, monkeypatch, steps, close, part):
    structure, cpts, margins = asia
    monkeypatch.setattr(agreement, "STEPS", steps)
    monkeypatch.setattr(agreement, "ROUNDS", 1)
    total, variance = np.array([1000.0, 1000.0]), 50.0
    rows = rows_of(cpts, 200.0, variance)
    for node, row in rows.items():
        row.seen[...] += np.linspace(-6, 6, cpts[node].shape[-1])  # shrinkage has heard of more than it kept
    noisy = [total.reshape(-1, *[1] * (t.ndim - 1)) * t for t in margins(cpts)]
    noisy[3] = noisy[3] + np.array([10.0, -10.0])  # more positive x-rays than the network expects
    said = {node: np.zeros(cpts[node].shape[1:]) for node in cpts}
    found = agreed(margins, noisy, [variance] * 4, rows, cpts, said, evenness_of(cpts, part), HOMES, total, 1)

    dense = jacobian(margins, cpts, structure.nodes, 1000.0)
    weights = np.concatenate([1.0 / (SAMPLED * 1000.0 * table[0].ravel() + variance) for table in margins(cpts)])
    left = np.concatenate(
        [y[0].ravel() - 1000.0 * table[0].ravel() for y, table in zip(noisy, margins(cpts), strict=True)]
    )
    known, pull = [], []
    for node in structure.nodes:
        states, cpt, row = cpts[node].shape[-1], cpts[node][0], rows[node]
        counts = row.records[0][..., None]
        noise = variance / (variance + counts / states)
        even = part * noise
        worth = counts**2 * np.maximum(cpt, SMALLEST) / (variance / 2)
        held = (1.0 - even) * (worth + SETTLED * (1.0 - noise) * counts**2 / (states * variance) + KNOWN)
        known.append(((held + 4.0 * even) * np.maximum(cpt, SMALLEST)).ravel())
        own = counts * cpt * (row.seen[0] - counts * cpt) / (SAMPLED * counts * cpt + variance)
        heard = (1.0 - even) * HEARD * (own - cpt * own.sum(axis=-1, keepdims=True))
        pull.append((4.0 * even * (1.0 / states - cpt) - heard).ravel())
    step = np.linalg.solve(
        dense.T @ (weights[:, None] * dense) + np.diag(np.concatenate(known)),
        dense.T @ (weights * left) + np.concatenate(pull),
    )
    place = 0
    for node in structure.nodes:
        size = cpts[node][0].size
        wanted = _moved(cpts[node][0], step[place : place + size].reshape(cpts[node][0].shape))
        assert np.log(found[node][0]) == pytest.approx(np.log(wanted), abs=close)
        place += size
    assert np.abs(found["xray"] - cpts["xray"]).max() > 1e-3  # it did move
    assert np.abs(found["either"] - cpts["either"]).max() > 1e-4  # and what lies above it


def test_a_cell_moves_as_far_as_shrinkage_leaves_it_open(asia):
    """More positive x-rays than expected: a doubtful row follows, a known one hardly, one that heard of it less."""
    _, cpts, margins = asia
    total, variance = np.array([1000.0, 1000.0]), 50.0
    none = {node: np.zeros(cpts[node].shape[1:]) for node in cpts}
    noisy = [1000.0 * table for table in margins(cpts)]
    noisy[3] = noisy[3] + np.array([10.0, -10.0])

    def moved(doubt, heard=0.0):
        rows = rows_of(cpts, 200.0, variance)
        rows["xray"].doubt[...] = doubt
        rows["xray"].seen[...] += np.array([heard, -heard])
        found = agreed(margins, noisy, [variance] * 4, rows, cpts, none, evenness_of(cpts, 0.0), HOMES, total, 1)
        return np.abs(found["xray"] - cpts["xray"]).max()

    assert moved(0.1) < 0.1 * moved(variance)
    assert moved(variance) < moved(10 * variance)
    assert moved(variance, heard=10.0) < moved(variance)


def test_a_table_that_the_network_contradicts_has_no_say_and_the_custodian_has(asia):
    _, cpts, margins = asia
    total, variance = np.array([1000.0, 1000.0]), 50.0
    rows = rows_of(cpts, 200.0, variance)
    expected = [1000.0 * table for table in margins(cpts)]
    none = {node: np.zeros(cpts[node].shape[1:]) for node in cpts}
    shifted = [*expected[:3], expected[3] + np.array([10.0, -10.0])]
    moved = (
        agreed(margins, shifted, [variance] * 4, rows, cpts, none, evenness_of(cpts, 0.0), HOMES, total, 1)["xray"]
        - cpts["xray"]
    )
    said = {**none, "xray": 1e9 * cpts["xray"][0]}
    held = (
        agreed(margins, shifted, [variance] * 4, rows, cpts, said, evenness_of(cpts, 0.0), HOMES, total, 1)["xray"]
        - cpts["xray"]
    )
    far = [*expected[:3], expected[3] + np.array([400.0, -400.0])]
    ignored = (
        agreed(margins, far, [variance] * 4, rows, cpts, none, evenness_of(cpts, 0.0), HOMES, total, 1)["xray"]
        - cpts["xray"]
    )
    assert np.abs(moved).max() > 1e-3
    assert np.abs(held).max() < 1e-6
    assert np.abs(ignored).max() < 1e-12


def test_of_a_table_without_a_say_nothing_is_taken_back(asia):
    """The network contradicts the table that x-rays are read from: they stay, and do not flee what it told."""
    _, cpts, margins = asia
    total, variance = np.array([1000.0, 1000.0]), 50.0
    rows = rows_of(cpts, 200.0, variance)
    rows["xray"].seen[...] += np.array([80.0, -80.0])
    none = {node: np.zeros(cpts[node].shape[1:]) for node in cpts}
    noisy = [1000.0 * table for table in margins(cpts)]

    def moved(by):
        tables = [*noisy[:3], noisy[3] + np.array([by, -by])]
        found = agreed(margins, tables, [variance] * 4, rows, cpts, none, evenness_of(cpts, 0.0), HOMES, total, 1)
        return np.abs(found["xray"] - cpts["xray"]).max()

    assert moved(0.0) > 1e-2
    assert moved(400.0) < 1e-12


def test_what_is_measured_decides_which_tables_have_a_say_for_the_changed_half_too(asia):
    _, cpts, margins = asia
    total, variance = np.array([1000.0, 1000.0]), 50.0
    none = {node: np.zeros(cpts[node].shape[1:]) for node in cpts}
    expected = [1000.0 * table for table in margins(cpts)]
    near, far = np.array([10.0, -10.0]), np.array([400.0, -400.0])

    def moved(by):
        noisy = [*expected[:3], expected[3] + np.stack(by)]
        found = agreed(
            margins,
            noisy,
            [variance] * 4,
            rows_of(cpts, 200.0, variance),
            cpts,
            none,
            evenness_of(cpts, 0.0),
            HOMES,
            total,
            1,
        )
        return np.abs(found["xray"] - cpts["xray"]).max(axis=(1, 2))

    assert (moved([near, far]) > 1e-3).all()
    assert (moved([far, near]) < 1e-12).all()


def test_probabilities_move_up_to_a_limit_and_never_down_to_nothing():
    cpt, change = np.array([[0.2, 0.3, 0.5]]), np.array([[0.01, -0.01, 0.0]])
    assert _moved(cpt, change) == pytest.approx(cpt * np.exp(change) / (cpt * np.exp(change)).sum(), rel=1e-4)
    far = _moved(cpt, np.array([[1e9, -99.0, 0.0]]))
    assert far.sum() == pytest.approx(1.0)
    assert far[0, 0] / far[0, 2] == pytest.approx(0.4 * np.exp(FURTHEST))
    assert far[0, 1] / far[0, 2] == pytest.approx(0.6 / 100)


@pytest.mark.parametrize("part", [0.0, 1.0])
def test_without_noise_nothing_moves(asia, part):
    _, cpts, margins = asia
    total, variance = np.array([1000.0, 1000.0]), 1e-4
    noisy = [1000.0 * table for table in margins(cpts)]
    noisy[3] = noisy[3] + np.array([10.0, -10.0])  # as a sample may well have it
    said = {node: np.zeros(cpts[node].shape[1:]) for node in cpts}
    even = evenness_of(cpts, part)
    found = agreed(margins, noisy, [variance] * 4, rows_of(cpts, 200.0, variance), cpts, said, even, HOMES, total, 1)
    assert max(np.abs(found[node] - cpts[node]).max() for node in cpts) < 1e-6


def test_even_rows_go_where_the_tables_tell_and_else_to_their_centre(asia):
    """With noise above all counts, an even node's rows end at the uniform row, or at the node's margin if it shows."""
    _, cpts, margins = asia
    total, variance = np.array([1000.0, 1000.0]), 1e9
    rows, none = rows_of(cpts, 200.0, variance), {node: np.zeros(cpts[node].shape[1:]) for node in cpts}
    noisy = [1000.0 * table for table in margins(cpts)]

    def moved(part, visible):
        even = evenness_of(cpts, part, visible=visible)
        return agreed(margins, noisy, [variance] * 4, rows, cpts, none, even, HOMES, total, 1)["dysp"]

    assert moved(1.0, 0.0) == pytest.approx(0.5, abs=0.01)
    margin = cpts["dysp"].mean(axis=(1, 2))
    assert moved(1.0, 1.0).mean(axis=(1, 2)) == pytest.approx(margin, abs=0.06)  # of 0.61 and 0.39
    assert np.ptp(moved(1.0, 1.0), axis=(1, 2)).max() < 0.1 * np.ptp(cpts["dysp"], axis=(1, 2)).max()
    assert moved(0.0, 0.0) == pytest.approx(cpts["dysp"], abs=1e-3)


def test_what_the_custodian_says_of_even_rows_stands_before_their_prior(asia):
    """Noise above all counts: forty pseudo-counts against a prior of four records keep rows, next to none do not."""
    _, cpts, margins = asia
    total, variance = np.array([1000.0, 1000.0]), 1e9
    noisy, rows = [1000.0 * table for table in margins(cpts)], rows_of(cpts, 200.0, variance)

    def kept(pseudo):
        said = {node: pseudo * cpts[node][0] for node in cpts}
        found = agreed(margins, noisy, [variance] * 4, rows, cpts, said, evenness_of(cpts, 1.0), HOMES, total, 1)[
            "dysp"
        ]
        return np.abs(found - 0.5).sum() / np.abs(cpts["dysp"] - 0.5).sum()

    assert kept(40.0) > 0.98
    assert kept(0.01) < 0.1


def chain():
    return structure_of(dict.fromkeys("abcd", 2), {"b": ("a",), "c": ("b",), "d": ("c",)})


def test_what_a_table_knows_of_nodes_far_apart_reaches_the_cpts_between(monkeypatch):
    """Families with much noise, and a table with little noise over two nodes that are no family."""
    structure = chain()
    keep = np.array([[0.9, 0.1], [0.2, 0.8]])
    truth = {"a": np.array([0.6, 0.4]), "b": keep, "c": keep, "d": keep}
    tables = (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))
    exact = [10_000 * table[0] for table in ModelMargins(structure, tables)({n: c[None] for n, c in truth.items()})]
    generator = np.random.default_rng(1)
    scales = (150.0, 150.0, 150.0, 5.0)
    noisy = [t + generator.normal(0, s, (40, *t.shape)) for t, s in zip(exact, scales, strict=True)]
    noises = [Moments.alone(s * s) for s in scales]

    def error():
        learned = estimate_batch(structure, tables, noisy, noises, prior={}, public_cpts={})
        (margin,) = ModelMargins(structure, [("a", "d")])(learned)
        return np.abs(margin - exact[3] / 10_000).mean()

    with_step = error()
    monkeypatch.setattr(estimate_module, "agreed", lambda *_: {})
    assert with_step < 0.6 * error()


def test_public_cpts_stay_and_every_row_stays_a_distribution():
    structure = chain()
    keep = np.array([[0.7, 0.3], [0.2, 0.8]])
    generator = np.random.default_rng(2)
    tables = (("a", "b"), ("b", "c"), ("c", "d"))
    noisy = [generator.integers(-50, 3000, (5, 2, 2)).astype(float) for _ in tables]
    learned = estimate_batch(structure, tables, noisy, [Moments.alone(200.0)] * 3, prior={}, public_cpts={"c": keep})
    assert (learned["c"] == keep).all()
    for cpt in learned.values():
        assert cpt.sum(axis=-1) == pytest.approx(1.0)
        assert (cpt > 0).all()
