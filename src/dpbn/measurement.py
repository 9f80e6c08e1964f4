"""What is asked of the privacy boundary, what comes out of it, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.margins import Names
from dpbn.privacy import accounting, blocks, gradual, joint
from dpbn.privacy.gaussian import gaussian_epsilon, proved_epsilon
from dpbn.privacy.noise import LARGEST_COUNT, Noise, check_scale
from dpbn.privacy.summed import check_law, summed_epsilon

Table = NDArray[np.int64]
MECHANISMS = ("laplace", "gaussian", "summed")
AT_ONCE = ("gaussian", "summed")  # accounted for with delta, all tables of a release together


@dataclass(frozen=True, slots=True)
class Request:
    """Ask for one noisy table over `names` at `scale`."""

    names: Names
    scale: float
    mechanism: str = "laplace"  # or "gaussian", or "summed": the sum of several Laplace draws
    draws: int = 1  # so many

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "scale", check_scale(self.scale))
        if self.mechanism not in MECHANISMS:
            raise PrivacyError(f"mechanism must be 'laplace', 'gaussian' or 'summed', got {self.mechanism!r}")
        check_draws(self.mechanism, self.scale, self.draws)


@dataclass(frozen=True, slots=True)
class Ladder:
    """Ask for one Laplace table over `names` that can be shown at several `scales`, coarsest first."""

    names: Names
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "scales", gradual.check_ladder(self.scales))


@dataclass(frozen=True, slots=True)
class Joint:
    """Ask for several noisy tables at once, with noise drawn together: all of them cost what one would at `scale`."""

    tables: tuple[Names, ...]
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(_checked_names(names) for names in self.tables))
        object.__setattr__(self, "scale", check_scale(self.scale))
        if len(self.tables) < 2 or len({frozenset(names) for names in self.tables}) < len(self.tables):
            raise PrivacyError(f"tables with joint noise must be two or more, all different, got {self.tables!r}")


@dataclass(frozen=True, slots=True)
class Look:
    """Ask for one noisy number: the records beyond the cap of each of `tables`, summed over its cells and over tables.

    A record is in one cell of each table, so it moves the sum by at most their number. So it does if it takes another's
    place: then one cell of each table gains a record and one loses it.
    """

    tables: tuple[Names, ...]
    caps: tuple[int, ...]
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(_checked_names(names) for names in self.tables))
        object.__setattr__(self, "caps", tuple(self.caps))  # a list could be changed between the count and the release
        object.__setattr__(self, "scale", check_scale(self.scale))
        whole = all(type(cap) is int and 1 <= cap <= LARGEST_COUNT for cap in self.caps)
        if not self.tables or len(self.caps) != len(self.tables) or not whole:
            raise PrivacyError(f"a look must have tables, and a whole cap of 1 or more for each, got {self.caps!r:.80}")


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look has shown, and its cost in epsilon."""

    look: Look
    loss: float
    value: int

    @property
    def records(self) -> float:
        """Of a table, on average."""
        return self.value / len(self.look.tables)


def check_draws(mechanism: str, scale: float, draws: int) -> None:
    """Refuse a number of draws that the mechanism does not have."""
    if mechanism == "summed":
        check_law(scale, draws)
    elif isinstance(draws, bool) or draws != 1:
        raise PrivacyError(f"draws must be 1 unless noise is summed, got {draws!r}")


def _checked_names(names: Names) -> Names:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise PrivacyError(f"names of a table must be distinct strings, got {names!r}")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Sampling:
    """The measurement was made on a Poisson sample; measurements with one `group` share the sample."""

    rate: Fraction
    group: str


@dataclass(frozen=True, slots=True)
class Together:
    """The noise was drawn together for these tables; they share `group`, and cost once.

    `sizes` says how many cells each of them has for every cell of the names common to all.
    """

    group: str
    tables: tuple[Names, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Moments:
    """Second moments of a table's noise.

    Noise of a table measured alone is independent. That of tables drawn together is the same for all of them when
    summed to the cells of the names `common` to them (blocks, independent of each other); within a block, what is
    left in a table is independent of the others, and all its cells are alike.
    """

    variance: float  # of a cell
    within: float  # of a cell as if independent, for all that is not summed to the common names
    group: str = ""  # empty if the table was measured alone
    common: Names = ()
    blocks: int = 1
    total: float = 0.0  # variance of the sum over a block

    @classmethod
    def alone(cls, variance: float) -> Moments:
        return cls(variance, variance)

    def at_least(self, variance: float) -> Moments:
        """The same, but no variance smaller than so much."""
        limited = {name: max(getattr(self, name), variance) for name in ("variance", "within", "total")}
        return replace(self, **limited)

    def summed(self, sizes: Mapping[str, int], names: Sequence[str]) -> float:
        """Variance of one cell of a table with such `sizes` summed down to `names`, some of its own."""
        dropped = math.prod(size for name, size in sizes.items() if name not in names)
        apart = math.prod(sizes[name] for name in self.common if name not in names)  # blocks are independent
        inside = dropped // apart
        return apart * inside * (self.variance + (inside - 1) * (self.variance - self.within))


@dataclass(frozen=True, eq=False)
class Measurement:
    """One noisy contingency table: all that is known of the data. `loss` is epsilon, or rho if gaussian.

    The loss of summed noise is that of the table by itself; all of them together cost less than their sum.

    Measurements with one `ladder` are levels of one gradual release: together they cost the finest one only.
    Those with one `together` have joint noise: together they cost what each of them states.
    """

    names: Names
    values: Table
    mechanism: str
    scale: float
    loss: float
    stage: str = ""
    sampling: Sampling | None = None
    ladder: str = ""
    together: Together | None = None
    draws: int = 1

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.int64)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def variance(self) -> float:
        """Of the noise on one cell."""
        if self.together is None:
            return variance_apart(self.mechanism, self.scale, self.draws)
        return joint.moments(self.together.sizes, self.scale)[1][self.together.tables.index(self.names)]

    @property
    def moments(self) -> Moments:
        if self.together is None:
            return Moments.alone(self.variance)
        total, _ = joint.moments(self.together.sizes, self.scale)
        size = self.together.sizes[self.together.tables.index(self.names)]
        # cells of a block are alike, and all of them sum to the total
        covariance = (total - size * self.variance) / (size * (size - 1)) if size > 1 else 0.0
        common = blocks.common_names(self.together.tables)
        return Moments(
            self.variance, self.variance - covariance, self.together.group, common, self.values.size // size, total
        )

    def summed_variance(self, names: Sequence[str]) -> float:
        """Of the noise on one cell of this table summed down to `names` (some of its own, in any order)."""
        return self.moments.summed(dict(zip(self.names, self.values.shape, strict=True)), names)


def variance_apart(mechanism: str, scale: float, draws: int = 1) -> float:
    """Of noise of a table's own. Discrete Laplace with p = e^(-1/s): 2p/(1-p)^2 a draw. Gaussian: about s^2."""
    if mechanism == "gaussian":
        return scale**2
    p = math.exp(-1.0 / scale)
    return draws * 2.0 * p / math.expm1(-1.0 / scale) ** 2


def with_noise(counts: Table, m: Measurement, noise: Noise) -> Table:
    """The table with noise of its own, of the kind and size that `m` states."""
    if m.mechanism == "summed":
        return noise.summed(counts, m.scale, m.draws)
    return (noise.gaussian if m.mechanism == "gaussian" else noise.laplace)(counts, m.scale)


def finest(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Of every gradual release its finest level, all else as it is: coarser levels hold no further information."""
    scales: dict[str, float] = {}
    for m in measurements:
        if m.ladder:
            scales[m.ladder] = min(m.scale, scales.get(m.ladder, math.inf))
    return tuple(m for m in measurements if not m.ladder or m.scale == scales[m.ladder])


def estimated_rows(measurements: Sequence[Measurement]) -> float:
    """The number of rows, from the noisy totals of all tables, weighted by inverse variance; at least 1."""
    shown = finest(measurements)
    whole = [m for m in shown if m.sampling is None] or shown
    # tables with joint noise have one total
    used = list({m.together.group if m.together else index: m for index, m in enumerate(whole)}.values())
    weights = np.array([1.0 / max(m.summed_variance(()), 1e-12) for m in used])
    totals = np.array([float(m.values.sum()) / float(m.sampling.rate if m.sampling else 1) for m in used])
    return max(1.0, float(np.sum(weights * totals) / np.sum(weights)))


def total_loss(
    measurements: Sequence[Measurement], delta: float = 0.0, *, looks: Sequence[Looked] = (), proved: bool = False
) -> float:
    """The epsilon (at this delta) of publishing all `measurements` and `looks` together, rounded up.

    With delta a little more is charged than is `proved`, so that every machine can confirm what one has charged.
    """
    seen = [looked.loss for looked in looks]
    for loss in (*(m.loss for m in measurements), *seen):
        if not 0 <= loss < math.inf:
            raise PrivacyError(f"the loss of every measurement must be finite and >= 0, got {loss!r}")
    direct = [m.loss for m in measurements if m.sampling is None and not m.ladder and m.together is None]
    together, ladders = _joint_losses(measurements), _ladder_losses(measurements)
    groups: dict[Sampling, list[float]] = {}
    for m in measurements:
        if m.sampling is not None:
            groups.setdefault(m.sampling, []).append(m.loss)
    at_once = [m for m in measurements if m.mechanism in AT_ONCE]
    if at_once:
        kinds = sorted({m.mechanism for m in at_once})
        if groups or ladders or together or len(kinds) > 1:
            raise PrivacyError(
                "Gaussian or summed noise must not be mixed with each other, with joint noise or with sampling in one "
                f"release, got {kinds}{' and a sample' if groups else ''}"
            )
        pure = [m.loss for m in measurements if m.mechanism not in AT_ONCE]
        return accounting.add_up([_loss_at_once(at_once, delta, proved), *pure, *seen])
    shared = [accounting.amplified(accounting.add_up(losses), s.rate) for s, losses in groups.items()]
    return accounting.add_up([*direct, *seen, *shared, *ladders, *together])


def _loss_at_once(measurements: Sequence[Measurement], delta: float, proved: bool) -> float:
    """The epsilon at this delta of tables with Gaussian noise, or with summed noise."""
    if measurements[0].mechanism == "gaussian":
        return (proved_epsilon if proved else gaussian_epsilon)([m.loss for m in measurements], delta)
    touched = max(m.loss * m.scale for m in measurements) - 1e-9  # a record's cells in a table
    laws = [(m.scale, m.draws) for m in measurements]
    return summed_epsilon(laws, math.ceil(min(touched, 3.0)), delta, proved=proved)


def _ladder_losses(measurements: Sequence[Measurement]) -> list[float]:
    """What each gradual release costs, its finest level: refused unless its levels are of one table."""
    ladders: dict[str, list[Measurement]] = {}
    for m in measurements:
        if m.ladder and (m.sampling is not None or m.mechanism != "laplace"):
            raise PrivacyError("a gradual release must have Laplace noise on all records, got other noise or a sample")
        if m.ladder:
            ladders.setdefault(m.ladder, []).append(m)
    for found in ladders.values():
        if len({m.names for m in found}) > 1 or len({m.scale for m in found}) < len(found):
            raise PrivacyError("levels of a gradual release must be one table at different scales, got others")
    return [max(m.loss for m in found) for found in ladders.values()]


def joint_groups(measurements: Sequence[Measurement]) -> list[list[Measurement]]:
    """The tables whose noise was drawn together, group by group."""
    groups: dict[str, list[Measurement]] = {}
    for m in measurements:
        if m.together is not None:
            groups.setdefault(m.together.group, []).append(m)
    return list(groups.values())


def _joint_losses(measurements: Sequence[Measurement]) -> list[float]:
    """What each group with joint noise costs, once: refused unless it is whole and its tables agree."""
    for m in measurements:
        if (m.mechanism == "joint") != (m.together is not None) or (m.together and (m.sampling or m.ladder)):
            raise PrivacyError("joint noise must come with its group, without sampling or gradual release, got others")
    groups = joint_groups(measurements)
    for found in groups:
        first = found[0]
        whole = first.together is not None and sorted(m.names for m in found) == sorted(first.together.tables)
        if not whole or any((m.together, m.scale) != (first.together, first.scale) for m in found):
            raise PrivacyError("groups of tables with joint noise must hold each of them once at one scale, got others")
    return [max(m.loss for m in found) for found in groups]
