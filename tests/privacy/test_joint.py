"""Noise drawn together for several tables: counting, the exact law, the loss, the boundary and the release file."""

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpbn.data import open_source
from dpbn.domain import Schema, Variable
from dpbn.errors import DpbnError, FormatError, PrivacyError
from dpbn.graph import Dag
from dpbn.learners.optimized import allocation
from dpbn.measure import Curator
from dpbn.measurement import Joint, Measurement, Request, Sampling, Together, total_loss
from dpbn.network import BayesianNetwork, Structure
from dpbn.privacy import blocks, joint
from dpbn.privacy import opendp_bridge as bridge
from dpbn.privacy.guarantee import Budget, Guarantee, Neighbors, Sensitivity
from dpbn.privacy.noise import InsecureNoise, SecureNoise, _InsecureChance
from dpbn.privacy.precise import PRECISE
from dpbn.release import Release, from_dict, load_release, to_dict
from dpbn.statement import privacy_statement
from dpbn.support import row_support
from dpbn.uncertainty.simulate import simulated_noise

ALARM = 1e-8
SHAPES = [(2, 2), (2, 3), (1, 3), (2, 2, 2), (3, 1, 2), (4, 2)]


def norm(z, sizes):
    return max(sum(map(abs, z[a:b])) for a, b in pairwise([0, *np.cumsum(sizes)]))


def lattice(sizes, reach):
    """All points with common total and norm <= reach."""
    parts = [Counter() for _ in sizes]
    for part, size in zip(parts, sizes, strict=True):
        for z in product(range(-reach, reach + 1), repeat=size):
            if sum(map(abs, z)) <= reach:
                part.setdefault(sum(z), [])
                part[sum(z)] = [*part[sum(z)], z]
    for total in range(-reach, reach + 1):
        for zs in product(*(part[total] or [] for part in parts)):
            yield tuple(x for z in zs for x in z)


# -- counting -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_vectors_within_p_and_q_by_brute_force(size):
    grid = joint.within([size], 4)[size]
    for p, q in product(range(5), repeat=2):
        every = product(range(-8, 9), repeat=size - 1)
        found = [(*z, p - q - sum(z)) for z in every]
        fit = [z for z in found if sum(x for x in z if x > 0) <= p]
        assert len(fit) == grid[p, q]
        assert all(sum(x for x in z if x < 0) >= -q for z in fit)
        assert joint._positives(size, p, q)[-1] == grid[p, q]


@pytest.mark.parametrize("sizes", [*SHAPES, (3, 4, 5, 2), (8, 8, 3)])
def test_coefficients_are_whole_never_negative_and_hold_beyond_where_they_were_read(sizes):
    table = joint.law(sizes).coefficients
    assert len(table) == sum(size - 1 for size in sizes) + 1
    assert all(c >= 0 for row in table for c in row)
    reach = len(table) + 6
    grids = [joint.within([size], reach)[size] for size in sizes]
    for p, q in [
        (0, 0),
        (reach, 0),
        (0, reach),
        (reach, reach),
        (reach - 3, 2),
        (5, reach - 1),
        (reach - 1, reach - 4),
    ]:
        summed = sum(
            c * math.comb(p, i) * math.comb(q, n - i) for n, row in enumerate(table) for i, c in enumerate(row)
        )
        assert summed == math.prod(int(grid[p, q]) for grid in grids)


@pytest.mark.parametrize("sizes", SHAPES)
def test_lattice_points_up_to_a_norm_by_brute_force(sizes):
    """P + Q = r or r - 1: every point of norm <= r is within exactly one such pair for its total."""
    for reach in range(4):
        pairs = [(p, r - p) for r in (reach, reach - 1) for p in range(r + 1)]
        counted = sum(math.prod(int(joint.within([size], reach)[size][pair]) for size in sizes) for pair in pairs)
        assert counted == len(list(lattice(sizes, reach)))


def test_p_is_rounded_up_and_hardly():
    for scale in (2.0**-40, 0.01, 0.3, 1.0, 3.7, 30.0, 1e4, 2.0**30):
        p = joint.ratio(scale)
        assert 0 < p < 1
        rate = PRECISE.ln(PRECISE.divide(p.numerator, p.denominator))
        assert 0 < -Fraction(rate) <= 1 / Fraction(scale)
        if scale >= 0.3:
            assert float(-Fraction(rate) * Fraction(scale)) == pytest.approx(1.0, abs=1e-15)


# -- the law --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (2, 2, 2), (3, 1)])
def test_one_record_changes_any_probability_by_p_at_most(sizes):
    """The ratio of the law at neighbours, exactly, by enumeration; 1/p is attained, for tables together."""
    p = Fraction(2, 3)
    law = {z: p ** norm(z, sizes) for z in lattice(sizes, 4)}
    ends = np.cumsum(sizes)
    records = product(*(range(end - size, end) for end, size in zip(ends, sizes, strict=True)))
    largest = Fraction(0)
    for record in records:
        step = [int(i in record) for i in range(ends[-1])]
        for z, weight in law.items():
            moved = tuple(a + b for a, b in zip(z, step, strict=True))
            if moved in law:
                largest = max(largest, weight / law[moved], law[moved] / weight)
    assert largest == 1 / p


def law_of(sizes, p, reach):
    """Weights of the points up to `reach`, and of everything beyond: sum_n (points of norm n) p^n."""
    top = reach + 400
    grids = {size: joint.within([size], top)[size].astype(float) for size in set(sizes)}
    whole = math.prod(grids[size] for size in sizes)
    total = (1 - p * p) * sum(
        p ** (a + b) * whole[a, b] for a in range(top + 1) for b in range(top + 1) if p ** (a + b) > 1e-30
    )
    inside = {z: p ** norm(z, sizes) for z in lattice(sizes, reach)}
    return {z: weight / total for z, weight in inside.items()}


@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize(("sizes", "scale"), [((2, 2), 0.8), ((2, 3), 0.6), ((2, 2, 2), 0.7), ((1, 3), 1.2)])
def test_the_law_is_met_and_a_scale_ten_percent_off_is_rejected(sizes, scale, secure):
    noise, draws = (SecureNoise() if secure else InsecureNoise(11)), 40_000
    made = noise.joint([np.zeros((draws, size), dtype=np.int64) for size in sizes], scale)
    seen = Counter(map(tuple, np.hstack(made).tolist()))

    def p_value(scale):
        law = law_of(sizes, math.exp(-1 / scale), 3)
        cells = [z for z, probability in law.items() if probability * draws > 8]
        expected = [law[z] * draws for z in cells]
        observed = [seen[z] for z in cells]
        return stats.chisquare([*observed, draws - sum(observed)], [*expected, draws - sum(expected)]).pvalue

    assert p_value(scale) > ALARM
    assert p_value(1.1 * scale) < ALARM and p_value(scale / 1.1) < ALARM


@pytest.mark.parametrize("noise", [SecureNoise(), InsecureNoise(5)], ids=["secure", "insecure"])
@pytest.mark.parametrize(("sizes", "scale"), [((3, 4, 2), 5.0), ((2, 2), 40.0), ((1, 6), 3.0), ((5, 5, 5), 1500.0)])
def test_moments_are_those_of_the_draws(noise, sizes, scale):
    blocks_drawn = 20_000
    made = noise.joint([np.zeros((blocks_drawn, size), dtype=np.int64) for size in sizes], scale)
    total, cells = joint.moments(sizes, scale)
    for table, size, variance in zip(made, sizes, cells, strict=True):
        assert (table.sum(axis=1) == made[0].sum(axis=1)).all()
        for cell in table.T:
            assert abs(cell.mean()) < 6 * math.sqrt(variance / blocks_drawn)
            assert cell.var() == pytest.approx(variance, rel=0.12)
        assert table.shape[1] == size
    assert made[0].sum(axis=1).var() == pytest.approx(total, rel=0.12)


def test_moments_by_enumeration():
    sizes, scale = (2, 3), 0.5
    law = law_of(sizes, math.exp(-1 / scale), 9)
    assert sum(law.values()) == pytest.approx(1, abs=1e-4)
    total, cells = joint.moments(sizes, scale)
    assert total == pytest.approx(sum(w * (z[0] + z[1]) ** 2 for z, w in law.items()), rel=5e-3)
    assert cells[0] == pytest.approx(sum(w * z[0] ** 2 for z, w in law.items()), rel=5e-3)
    assert cells[1] == pytest.approx(sum(w * z[2] ** 2 for z, w in law.items()), rel=5e-3)
    assert joint.moments((3, 2), scale) == (total, (cells[1], cells[0]))
    assert joint.moments((2, 3), 2.0**-40)[0] == 0.0
    assert joint.moments((2, 3), scale) is joint.moments((2, 3), scale)  # every table of a release asks for them


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.0, 5000.0])
def test_geometric_draws_meet_their_law(scale):
    p = joint.ratio(scale)
    draws = joint.geometric(40_000, p, SecureNoise())
    cuts = np.unique(np.ceil(-scale * np.log(1 - np.linspace(0.1, 0.9, 9))))
    tails = np.array([1.0, *(float(p) ** int(cut) for cut in cuts), 0.0])
    observed = np.bincount(np.digitize(draws, cuts), minlength=cuts.size + 1)
    assert stats.chisquare(observed, -np.diff(tails) * draws.size).pvalue > ALARM


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 60, 1000, 2**62 - 1])
def test_whole_numbers_below_a_bound_are_uniform(bound):
    for chance in (SecureNoise(), _InsecureChance(np.random.default_rng(2))):
        drawn = chance.below(np.full(30_000, bound, dtype=np.int64))
        assert drawn.min() >= 0 and drawn.max() < bound
        bins = np.minimum((drawn.astype(float) / bound * min(bound, 10)).astype(int), min(bound, 10) - 1)
        seen = np.bincount(bins, minlength=min(bound, 10))
        assert bound == 1 or stats.chisquare(seen).pvalue > ALARM


def test_a_seed_repeats_and_secure_noise_does_not():
    tables = [np.full((50, 3), 9, dtype=np.int64), np.full((50, 9), 3, dtype=np.int64)]
    once, again, other = (InsecureNoise(seed).joint(tables, 5.0) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(once, again, strict=True))
    assert any((a != b).any() for a, b in zip(once, other, strict=True))
    secure = [SecureNoise().joint(tables, 5.0) for _ in range(2)]
    assert any((a != b).any() for a, b in zip(*secure, strict=True))
    assert SecureNoise().joint([table[:0] for table in tables], 5.0)[1].shape == (0, 9)


def test_what_cannot_be_drawn_is_refused():
    noise = SecureNoise()

    def zeros(*shape):
        return np.zeros(shape, dtype=np.int64)

    with pytest.raises(PrivacyError, match="unequal totals"):
        noise.joint([zeros(2, 2), zeros(2, 3) + 1], 1.0)
    with pytest.raises(PrivacyError, match="int64"):
        noise.joint([np.zeros((2, 2)), np.zeros((2, 2))], 1.0)
    with pytest.raises(PrivacyError, match="same blocks"):
        noise.joint([zeros(2, 2), zeros(3, 2)], 1.0)
    with pytest.raises(PrivacyError, match="2\\^62"):
        noise.joint([zeros(1, 2) + 2**62, zeros(1, 2) + 2**62], 1.0)
    with pytest.raises(PrivacyError, match="150"):
        noise.joint([zeros(1, 300), zeros(1, 300)], 1.0)
    with pytest.raises(PrivacyError, match="scale"):
        noise.joint([zeros(100, 2), zeros(100, 2)], 2.0**40)
    with pytest.raises(PrivacyError, match="scale"):
        noise.joint([zeros(1, 2), zeros(1, 2)], math.nan)


def test_folding_and_back():
    names = [("x", "a", "b"), ("b", "y", "a"), ("a", "b")]
    sizes = {"x": 2, "a": 3, "b": 4, "y": 5}
    shapes = [(7, *(sizes[name] for name in its)) for its in names]
    tables = [np.arange(math.prod(shape)).reshape(shape) for shape in shapes]
    folded = blocks.fold(tables, names)
    assert [table.shape for table in folded] == [(84, 2), (84, 5), (84, 1)]
    assert folded[1][1 * 12 + 2 * 4 + 3].tolist() == tables[1][1, 3, :, 2].tolist()
    for table, back in zip(tables, blocks.unfold(folded, shapes, names), strict=True):
        assert (table == back).all()


# -- the boundary ---------------------------------------------------------------------------------------------

VARIABLES = tuple(Variable(name, tuple(map(str, range(size)))) for name, size in (("a", 2), ("b", 3), ("c", 2)))
STRUCTURE = Structure(Schema(VARIABLES), Dag(("a", "b", "c"), {"b": ("a",), "c": ("a",)}))
GENERATOR = np.random.default_rng(0)
ROWS = pd.DataFrame({v.name: GENERATOR.integers(0, v.size, 60).astype(str) for v in VARIABLES})
ASKED = Joint((("a", "b"), ("c", "a")), 2.0)


def curator(epsilon=1.0, delta=0.0, source=None, noise=None, sensitivity=None, charge=lambda: None):
    source = source or open_source(ROWS, STRUCTURE)
    return Curator(source, noise or InsecureNoise(0), Budget(epsilon, delta), sensitivity or Sensitivity(), charge)


@pytest.mark.parametrize("noise", [SecureNoise(), InsecureNoise(3)], ids=["secure", "insecure"])
def test_a_group_costs_what_one_table_would(noise):
    made = curator(noise=noise)
    family, other, single = made.measure([ASKED, Request(("b",), 4.0)], stage="x")
    assert [m.names for m in (family, other, single)] == [("a", "b"), ("c", "a"), ("b",)]
    assert made.spent == total_loss(made.measurements) == 0.75 and family.loss == other.loss == 0.5
    assert made.loss(ASKED) == bridge.laplace_epsilon(2.0, 1)
    assert family.mechanism == "joint" and family.together == other.together and family.stage == "x"
    assert family.together.sizes == (3, 2) and family.together.tables == ASKED.tables
    assert single.together is None
    assert family.values.shape == (2, 3) and other.values.shape == (2, 2)
    assert (family.values.sum(axis=1) == other.values.sum(axis=0)).all()
    total, cells = joint.moments((3, 2), 2.0)
    assert (family.variance, other.variance) == cells
    assert family.summed_variance(("a",)) == pytest.approx(total) == other.summed_variance(("a",))
    assert family.summed_variance(()) == pytest.approx(2 * total)
    assert family.summed_variance(("b",)) == pytest.approx(2 * cells[0])
    assert single.summed_variance(()) == pytest.approx(3 * single.variance)
    with pytest.raises(PrivacyError, match="at most"):
        made.measure([ASKED])


def test_groups_of_two_calls_and_of_one_call_are_several():
    made = curator(2.0)
    made.measure([ASKED, ASKED])
    made.measure([ASKED, Joint((("a",), ("b",), ("c",)), 2.0)])
    assert made.spent == 2.0 and len({m.together.group for m in made.measurements}) == 4
    three = made.measurements[-3:]
    assert len({int(m.values.sum()) for m in three}) == 1 and three[0].together.sizes == (2, 3, 2)


@pytest.mark.parametrize("sensitivity", [Sensitivity(Neighbors.REPLACE), Sensitivity(max_contributions=2)])
def test_more_rows_of_a_person_cost_more(sensitivity):
    made = curator(sensitivity=sensitivity)
    made.measure([ASKED])
    assert made.spent == 1.0


class Lopsided:
    """Leaves one record out of one table."""

    can_sample_rows = True

    def counts(self, sets):
        tables = {names: table.copy() for names, table in open_source(ROWS, STRUCTURE).counts(sets).items()}
        table = tables[("c", "a")]
        table[tuple(np.argwhere(table > 0)[0])] -= 1
        return tables


def test_tables_of_unequal_margins_are_refused_before_any_charge():
    charged = []
    made = curator(source=Lopsided(), charge=lambda: charged.append(1))
    with pytest.raises(PrivacyError, match="every record once"):
        made.measure([Request(("a", "b"), 10.0), ASKED])
    assert not charged and made.spent == 0.0 and made.measurements == ()
    made.measure([Request(("c", "a"), 10.0)])
    assert charged == [1]


def test_a_moved_record_is_refused_even_if_the_grand_total_is_right():
    class Moved(Lopsided):
        def counts(self, sets):
            tables = super().counts(sets)
            table = tables[("c", "a")]
            short = int(np.argmin(table.sum(axis=0) - tables[("a", "b")].sum(axis=1)))
            table[0, 1 - short] += 1
            return tables

    with pytest.raises(PrivacyError, match="every record once"):
        curator(source=Moved()).measure([ASKED])


def test_bad_joint_requests_are_refused():
    for tables, scale in (
        ((("a",),), 1.0),
        ((), 1.0),
        ((("a", "b"), ("a", "b")), 1.0),
        ((("a", "b"), ("b", "a")), 1.0),
        ((("a", "a"), ("b",)), 1.0),
        (("ab", "c"), 1.0),
        ((("a",), ("b",)), 0.0),
        ((("a",), ("b",)), math.inf),
    ):
        with pytest.raises(PrivacyError):
            Joint(tables, scale)
    made = curator()
    with pytest.raises(PrivacyError, match="sample"):
        made.measure([ASKED], rate=Fraction(1, 2))
    with pytest.raises(PrivacyError, match="scale"):
        made.measure([Joint(ASKED.tables, 2.0**50)])
    assert made.spent == 0.0


def test_a_group_is_not_mixed_with_gaussian_noise():
    made = curator(5.0, 1e-6)
    made.measure([ASKED])
    with pytest.raises(PrivacyError, match="mixed"):
        made.measure([Request(("a",), 10.0, "gaussian")])


def test_only_whole_groups_are_accounted_for():
    def table(names, group="1/0", loss=1.0, scale=1.0, **more):
        together = Together(group, (("a",), ("b",)), (2, 3))
        return Measurement((names,), np.zeros(2), "joint", scale, loss, together=together, **more)

    assert total_loss([table("a", loss=0.5), table("b")]) == 1.0
    assert total_loss([table("a"), table("b"), table("b", "2/0"), table("a", "2/0")]) == 2.0
    refused = [
        [table("a")],
        [table("a"), table("a")],
        [table("a"), table("b"), table("b")],
        [table("a"), table("b", scale=2.0)],
        [table("a"), table("b", "2/0")],
        [table("a", ladder="x"), table("b")],
        [table("a", sampling=Sampling(Fraction(1, 2), "x")), table("b")],
        [Measurement(("a",), np.zeros(2), "joint", 1.0, 1.0)],
        [Measurement(("a",), np.zeros(2), "laplace", 1.0, 1.0, together=table("a").together), table("b")],
    ]
    for measurements in refused:
        with pytest.raises(PrivacyError):
            total_loss(measurements)


@pytest.mark.parametrize("on_unknown", ["drop", "error"])
def test_a_record_with_an_unknown_value_counts_in_no_table(on_unknown):
    """Unknown in b alone: the tables without b must leave it out as well."""
    rows = ROWS.assign(b=["?", *ROWS["b"][1:]]) if on_unknown == "drop" else ROWS
    source = open_source(rows, STRUCTURE, on_unknown=on_unknown)
    made = curator(source=source).measure([ASKED])
    assert len(made) == 2
    assert source.counts([("c", "a")])[("c", "a")].sum() == (59 if on_unknown == "drop" else 60)


# -- the release ----------------------------------------------------------------------------------------------


def released(scale=2.0):
    made = curator(10.0, noise=SecureNoise())
    made.measure([Joint((("a",), ("a", "b"), ("a", "c")), scale), Request(("b",), 4.0)])
    cpts = {v.name: np.full(STRUCTURE.shape(v.name), 1 / v.size) for v in VARIABLES}
    guarantee = Guarantee(made.spent, 0.0, Neighbors.ADD_REMOVE, None, 1)
    return Release(
        BayesianNetwork(STRUCTURE, cpts), guarantee, {}, True, "optimized", made.measurements, library="dpbn"
    )


def test_a_release_with_joint_noise_is_written_and_read(tmp_path):
    release = released()
    again = load_release(release.save(tmp_path / "x.json"))
    assert again.id == release.id and again.guarantee.epsilon == 0.75
    for one, two in zip(release.measurements, again.measurements, strict=True):
        assert one.together == two.together and (one.values == two.values).all() and one.variance == two.variance
    statement = privacy_statement(release)
    assert "drawn together for several tables at a time (1 group), on every cell of 3" in statement.replace("\\", "")
    assert "Discrete Laplace noise on every cell of 1 count table, and" in statement


def test_the_statement_calls_a_table_over_no_names_the_number_of_records():
    made = curator(10.0, noise=SecureNoise())
    made.measure([Request((), 4.0), Joint((("a", "b"), ("a", "c")), 2.0)])
    statement = privacy_statement(replace(released(), measurements=made.measurements))
    assert "Discrete Laplace noise on the number of records, and integer noise drawn together" in statement


def test_files_without_the_field_are_read_as_before(tmp_path):
    made = curator(noise=SecureNoise())
    made.measure([Request(("a", "b"), 2.0), Request(("a", "c"), 2.0)])
    release = released()
    old = Release(
        release.network, Guarantee(1.0, 0.0, Neighbors.ADD_REMOVE, None, 1), {}, True, "uniform", made.measurements
    )
    document = to_dict(old)
    assert all("together" not in entry for entry in document["measurements"])
    again = from_dict(json.loads(json.dumps(document)))
    assert again.id == old.id and all(m.together is None for m in again.measurements)


def _each(document, **changes):
    for entry in document["measurements"][:3]:
        entry["together"].update(changes)


def _as_laplace(document):
    """Independent tables dressed up as a group, to pay for one of them only."""
    made = curator(noise=SecureNoise())
    made.measure([Request(names, 2000.0) for names in (("a",), ("a", "b"), ("a", "c"))])
    for entry, m in zip(document["measurements"], made.measurements, strict=False):
        entry["values"] = m.values.tolist()


EDITS = {
    "values with noise of their own": (_as_laplace, "unequal totals"),
    "one value moved": (lambda d: d["measurements"][1]["values"][0].__setitem__(0, 999), "unequal totals"),
    "losses halved": (lambda d: [m.update(loss=m["loss"] / 2) for m in d["measurements"][:3]], "must be what scale"),
    "claim lowered": (lambda d: d["guarantee"].update(epsilon=0.7), "must claim"),
    "a table taken out": (lambda d: d["measurements"].pop(0), "each of them once"),
    "a table twice": (lambda d: d["measurements"].append(d["measurements"][0]), "each of them once"),
    "one scale changed": (lambda d: d["measurements"][0].update(scale=8.0), "once at one scale"),
    "not together any more": (lambda d: d["measurements"][0].pop("together"), "must come with its group"),
    "called Laplace": (lambda d: [m.update(mechanism="laplace") for m in d["measurements"]], "must come with"),
    "another taken into the group": (
        lambda d: d["measurements"][3].update(mechanism="joint", together=d["measurements"][0]["together"]),
        "totals|each of them once",
    ),
    "a group apart": (lambda d: d["measurements"][0]["together"].update(group="9/9"), "each of them once"),
    "other sizes": (lambda d: _each(d, sizes=[1, 3, 3]), "sizes of tables"),
    "sizes that are no numbers": (lambda d: _each(d, sizes=None), "sizes of tables"),
    "other tables": (lambda d: _each(d, tables=[["a"], ["a", "b"]], sizes=[1, 3]), "each of them once"),
    "one table": (lambda d: _each(d, tables=[["a"]], sizes=[1]), "two or more"),
    "tables that do not exist": (lambda d: _each(d, tables=[["a"], ["z"]], sizes=[1, 3]), "z"),
    "tables that are no lists": (lambda d: _each(d, tables=7), "schema"),
    "a name twice": (
        lambda d: d["measurements"][1].update(names=["a", "a"], values=np.eye(2, dtype=int).tolist()),
        "distinct",
    ),
    "a group that is no text": (lambda d: _each(d, group=7), "string"),
    "a sample": (lambda d: d["measurements"][0].update(sampling={"rate": "1/2", "group": "1"}), "without sampling"),
    "a ladder": (lambda d: d["measurements"][0].update(ladder="1/0"), "or gradual"),
    "rows per person": (lambda d: d["guarantee"].update(max_contributions=2), "must be what scale"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_files_are_refused(edit):
    change, reason = EDITS[edit]
    document = json.loads(json.dumps(to_dict(released())))
    assert from_dict(document).private
    change(document)
    with pytest.raises(DpbnError, match=reason) as refused:
        from_dict(document)
    assert isinstance(refused.value, FormatError) or edit == "tables that do not exist"


def test_noise_is_redrawn_group_by_group():
    measurements = released(50.0).measurements
    counts = [np.full((400, *m.values.shape), 12_000 // m.values.size, dtype=np.int64) for m in measurements]
    noisy = simulated_noise(counts, measurements, 0)
    moved = [table - count for table, count in zip(noisy, counts, strict=True)]
    assert (moved[0] == moved[1].sum(axis=-1)).all() and (moved[0] == moved[2].sum(axis=-1)).all()
    for noise, m in zip(moved, measurements, strict=True):
        assert noise.var() == pytest.approx(m.variance, rel=0.25)
    assert all((a == b).all() for a, b in zip(noisy, simulated_noise(counts, measurements, 0), strict=True))


def test_support_knows_what_rows_of_joint_noise_are_worth():
    measurements = released().measurements
    total, cells = joint.moments((1, 3, 2), 2.0)
    support = row_support(STRUCTURE, measurements, "b")
    assert support.row_deviation == pytest.approx(math.sqrt(total))
    assert support.cell_deviation == pytest.approx(math.sqrt(cells[1]))
    once = row_support(STRUCTURE, measurements, "a")  # the three tables say the same of it
    assert once.cell_deviation == pytest.approx(math.sqrt(total))


def test_a_group_is_allocated_once_to_a_node_that_all_its_tables_hold():
    measurements = released().measurements
    assert allocation(STRUCTURE, measurements, 1.0)["a"] == measurements[0].loss
