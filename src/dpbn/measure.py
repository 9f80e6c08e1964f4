"""The privacy boundary. Counts go in, noisy measurements come out; nothing else crosses.

A learner never sees counts. It hands `Request`s to a `Curator`, which counts, charges, adds noise to
every cell of the declared domain, and refuses before drawing whatever would exceed the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.privacy import accounting
from dpbn.privacy import opendp_bridge as bridge
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.noise import Noise

Names = tuple[str, ...]
Table = NDArray[np.int64]
_NOTHING = np.zeros(0, dtype=np.int64)


class CountSource(Protocol):
    """What `dpbn.data` offers: contingency tables over attribute sets, axes in the order of names."""

    def counts(self, sets: Sequence[Names]) -> Mapping[Names, Table]: ...

    @property
    def can_sample_rows(self) -> bool: ...

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], NDArray[np.bool_]]) -> Mapping[Names, Table]:
        """Counts over one Poisson sample: `keep(rows)` says which records are in."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """Ask for one noisy table over `names` at `scale`."""

    names: Names
    scale: float
    mechanism: str = "laplace"  # or "gaussian"


@dataclass(frozen=True, slots=True)
class Sampling:
    """The measurement was made on a Poisson sample; measurements with one `group` share the sample."""

    rate: Fraction
    group: str


@dataclass(frozen=True, eq=False)
class Measurement:
    """One noisy contingency table: all that is known of the data. `loss` is epsilon, or rho if gaussian."""

    names: Names
    values: Table
    mechanism: str
    scale: float
    loss: float
    stage: str = ""
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.int64)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def variance(self) -> float:
        """Of the noise on one cell. Discrete Laplace with p = e^(-1/s): 2p/(1-p)^2. Gaussian: about s^2."""
        if self.mechanism == "gaussian":
            return self.scale**2
        p = math.exp(-1.0 / self.scale)
        return 2.0 * p / math.expm1(-1.0 / self.scale) ** 2


def total_loss(measurements: Sequence[Measurement], delta: float = 0.0) -> float:
    """The epsilon (at this delta) of publishing all `measurements` together, rounded up."""
    direct = [m.loss for m in measurements if m.sampling is None]
    groups: dict[Sampling, list[float]] = {}
    for m in measurements:
        if m.sampling is not None:
            groups.setdefault(m.sampling, []).append(m.loss)
    if any(m.mechanism == "gaussian" for m in measurements):
        if groups or any(m.mechanism != "gaussian" for m in measurements):
            raise PrivacyError("Gaussian measurements must not be mixed with Laplace or sampled ones in one release")
        return accounting.zcdp_epsilon(accounting.add_up(direct), delta)
    shared = [accounting.amplified(accounting.add_up(losses), float(s.rate)) for s, losses in groups.items()]
    return accounting.add_up([*direct, *shared])


class Curator:
    """Holds counts, noise and budget; hands out measurements until the budget is used."""

    def __init__(
        self,
        source: CountSource,
        noise: Noise,
        budget: Budget,
        sensitivity: Sensitivity,
        charge: Callable[[], None] = lambda: None,
    ):
        self._source, self._noise, self._charge = source, noise, charge
        self.budget, self.sensitivity = budget, sensitivity
        self.measurements: tuple[Measurement, ...] = ()
        self._charged = False

    @property
    def amplifies(self) -> bool:
        """Whether sampling may be credited: proved for single rows added or removed only."""
        return self.sensitivity.l1 == 1

    def loss(self, request: Request) -> float:
        if request.mechanism == "laplace":
            return bridge.laplace_epsilon(request.scale, self.sensitivity.l1)
        if request.mechanism == "gaussian":
            return accounting.gaussian_rho(request.scale, self.sensitivity.l2_squared)
        raise PrivacyError(f"mechanism must be 'laplace' or 'gaussian', got {request.mechanism!r}")

    def measure(
        self, requests: Sequence[Request], *, stage: str = "", rate: Fraction = Fraction(1)
    ) -> tuple[Measurement, ...]:
        """Noisy tables for `requests`, on a Poisson sample of the records if `rate` is below 1."""
        sets = [request.names for request in requests]
        tables = self._source.counts(sets)  # fails, if it fails, before anything is charged
        blank = [
            Measurement(r.names, _NOTHING, r.mechanism, r.scale, self.loss(r), stage, self._sampling(rate, stage, i))
            for i, r in enumerate(requests)
        ]
        spent = total_loss((*self.measurements, *blank), self.budget.delta)
        if spent > self.budget.epsilon:
            raise PrivacyError(f"measurements must cost at most epsilon={self.budget.epsilon}, got {spent}")
        if not self._charged:
            self._charge()
            self._charged = True
        if rate < 1:
            tables = self._sampled(tables, rate)
        made = tuple(
            Measurement(b.names, self._noisy(tables[b.names], b), b.mechanism, b.scale, b.loss, b.stage, b.sampling)
            for b in blank
        )
        self.measurements += made
        return made

    def _noisy(self, table: Table, blank: Measurement) -> Table:
        draw = self._noise.laplace if blank.mechanism == "laplace" else self._noise.gaussian
        return draw(np.ascontiguousarray(table, dtype=np.int64), blank.scale)

    def _sampling(self, rate: Fraction, stage: str, index: int) -> Sampling | None:
        if rate >= 1 or not self.amplifies:
            return None
        return Sampling(rate, stage if self._source.can_sample_rows else f"{stage}/{index}")

    def _sampled(self, tables: Mapping[Names, Table], rate: Fraction) -> Mapping[Names, Table]:
        if self._source.can_sample_rows:
            return self._source.sampled_counts(list(tables), lambda rows: self._noise.keep(rows, rate))
        # an independent sample per table: thin every cell binomially
        return {names: self._noise.thin(table, rate) for names, table in tables.items()}
