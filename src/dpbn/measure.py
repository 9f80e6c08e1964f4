"""The privacy boundary. Counts go in, noisy measurements come out; nothing else crosses.

A learner never sees counts. It hands `Request`s to a `Curator`, which counts, charges, adds noise to
every cell of the declared domain, and refuses before drawing whatever would exceed the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from threading import RLock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import PrivacyError
from dpbn.margins import Names
from dpbn.measurement import (
    AT_ONCE,
    Joint,
    Ladder,
    Look,
    Looked,
    Measurement,
    Request,
    Sampling,
    Table,
    Together,
    total_loss,
    with_noise,
)
from dpbn.privacy import accounting, blocks, gradual, joint
from dpbn.privacy import opendp_bridge as bridge
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.noise import LARGEST_COUNT, Noise, check_rate

_NOTHING = np.zeros(0, dtype=np.int64)


class CountSource(Protocol):
    """What `dpbn.data` offers: contingency tables over attribute sets, axes in the order of names."""

    def counts(self, sets: Sequence[Names]) -> Mapping[Names, Table]: ...

    @property
    def can_sample_rows(self) -> bool: ...

    def sampled_counts(self, sets: Sequence[Names], keep: Callable[[int], NDArray[np.bool_]]) -> Mapping[Names, Table]:
        """Counts over one Poisson sample: `keep(rows)` says which records are in."""
        ...


class Curator:
    """Holds counts, noise and budget; hands out measurements until the budget is used.

    What a call costs is committed before its noise is drawn: a call that fails half-way has spent its share.
    """

    def __init__(
        self,
        source: CountSource,
        noise: Noise,
        budget: Budget,
        sensitivity: Sensitivity,
        charge: Callable[[], None] = lambda: None,
    ):
        self._source, self._noise, self._charge = source, noise, charge
        self._budget, self._sensitivity = budget, sensitivity
        self._committed: tuple[Measurement, ...] = ()
        self._shown: tuple[Measurement, ...] = ()
        self._paid_looks: tuple[Looked, ...] = ()  # without their values
        self._looks: tuple[Looked, ...] = ()
        self._charged = False
        self._calls = 0
        self._lock = RLock()  # two threads must not both pass the check for the last of the budget

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def sensitivity(self) -> Sensitivity:
        return self._sensitivity

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Everything shown so far."""
        return self._shown

    @property
    def looks(self) -> tuple[Looked, ...]:
        """All that was looked at so far."""
        return self._looks

    @property
    def spent(self) -> float:
        """The epsilon committed so far, shown or not."""
        return total_loss(self._committed, self._budget.delta, looks=self._paid_looks)

    @property
    def amplifies(self) -> bool:
        """Whether sampling may be credited: proved for single rows added or removed only."""
        return self._sensitivity.l1 == 1

    def loss(self, request: Request | Joint | Look) -> float:
        """What a request costs: epsilon, or rho if gaussian. Joint noise costs this once for all its tables."""
        if isinstance(request, Look):
            return bridge.laplace_epsilon(request.scale, len(request.tables) * self._sensitivity.max_contributions)
        if isinstance(request, Request) and request.mechanism == "gaussian":
            return accounting.gaussian_rho(request.scale, self._sensitivity.l2_squared)
        if isinstance(request, Request) and request.mechanism == "summed" and self._sensitivity.max_contributions > 1:
            raise PrivacyError(
                f"summed noise must protect one record of a person, got {self._sensitivity.max_contributions}"
            )
        return bridge.laplace_epsilon(request.scale, self._sensitivity.l1)

    def measure(
        self, requests: Sequence[Request | Joint], *, stage: str = "", rate: Fraction = Fraction(1)
    ) -> tuple[Measurement, ...]:
        """Noisy tables for `requests`, on a Poisson sample of the records if `rate` is below 1.

        They come in the order asked for; a `Joint` gives one for each of its tables.
        """
        rate, requests = check_rate(rate), tuple(requests)  # they are gone through more than once
        if rate == 0:
            raise PrivacyError("a sampling rate must be above 0, got 0")
        if rate < 1 and any(isinstance(request, Joint) for request in requests):
            raise PrivacyError(f"joint noise must be drawn for all records, got a sample of rate {rate}")
        with self._lock:
            sets = [names for r in requests for names in (r.tables if isinstance(r, Joint) else (r.names,))]
            tables = self._counts(sets)
            again = any(m.mechanism in AT_ONCE for m in self._committed)
            if again and any(isinstance(r, Request) and r.mechanism in AT_ONCE for r in requests):
                raise PrivacyError("Gaussian or summed tables must all be asked for in one call, got a second call")
            self._calls += 1
            blank = [self._blank(r, f"{self._calls}/{i}", tables, stage, rate) for i, r in enumerate(requests)]
            self._commit([b for each in blank for b in each])
            if rate < 1:
                tables = self._sampled(tables, rate)
            return self._show([made for each in blank for made in self._noisy(each, tables)])

    def look(self, request: Look) -> Looked:
        """One noisy number about tables that may not be worth measuring."""
        with self._lock:
            tables = self._counts(request.tables)
            beyond = [_beyond(tables[names], cap) for names, cap in zip(request.tables, request.caps, strict=True)]
            looked = Looked(request, self.loss(request), 0)
            self._commit((), (looked,))
            value = self._noise.laplace(np.array([min(sum(beyond), LARGEST_COUNT)], dtype=np.int64), request.scale)
            self._looks += (replace(looked, value=int(value[0])),)
            return self._looks[-1]

    def gradual(self, ladders: Sequence[Ladder], *, stage: str = "") -> Gradual:
        """Show every ladder at its coarsest scale; finer levels can be shown later for the difference in cost."""
        with self._lock:
            asked = [ladder.names for ladder in ladders]
            tables = self._counts(asked)
            self._calls += 1
            blank = [self._level(a.names, a.scales[0], stage, f"{self._calls}/{i}") for i, a in enumerate(ladders)]
            if len(set(asked)) != len(asked):
                raise PrivacyError(f"tables of one gradual release must be distinct, got {asked}")
            self._commit(blank)
            hidden = {}
            for ladder in ladders:
                fine = self._noise.laplace(tables[ladder.names], ladder.scales[-1])
                hidden[ladder.names] = gradual.ladder(fine, ladder.scales, self._noise)
            shown = self._show([replace(b, values=hidden[b.names][0]) for b in blank])
            return Gradual(self, ladders, hidden, shown)

    def _blank(
        self, request: Request | Joint, mark: str, tables: Mapping[Names, Table], stage: str, rate: Fraction
    ) -> list[Measurement]:
        """What a request will give and cost, without its values."""
        scale, loss = request.scale, self.loss(request)
        if isinstance(request, Joint):
            together = Together(mark, request.tables, _joint_sizes(request, tables))
            return [
                Measurement(names, _NOTHING, "joint", scale, loss, stage, together=together) for names in request.tables
            ]
        sampling = self._sampling(request, rate)
        kind = request.mechanism
        return [Measurement(request.names, _NOTHING, kind, scale, loss, stage, sampling, draws=request.draws)]

    def _level(self, names: Names, scale: float, stage: str, mark: str) -> Measurement:
        """The same for one level of a gradual release."""
        loss = bridge.laplace_epsilon(scale, self._sensitivity.l1)
        return Measurement(names, _NOTHING, "laplace", scale, loss, stage, ladder=mark)

    def _refine(self, blank: Sequence[Measurement], values: Sequence[Table]) -> tuple[Measurement, ...]:
        """Show finer levels, if the budget covers the finest level of every ladder."""
        self._commit(blank)
        return self._show([replace(b, values=v) for b, v in zip(blank, values, strict=True)])

    def _counts(self, sets: Sequence[Names]) -> Mapping[Names, Table]:
        """Counts clipped to 64-bit reach; clipping moves two tables no further apart. Fails before the call costs."""
        tables = self._source.counts(list(dict.fromkeys(sets)))
        return {names: _clipped(tables[names]) for names in sets}

    def _commit(self, blank: Sequence[Measurement], looks: Sequence[Looked] = ()) -> None:
        """Refuse what exceeds the budget, charge the ledger once, and count the cost, all before any draw."""
        paid = (*self._paid_looks, *looks)
        spent = total_loss((*self._committed, *blank), self._budget.delta, looks=paid)
        if not spent <= self._budget.epsilon:
            raise PrivacyError(f"measurements must cost at most epsilon={self._budget.epsilon}, got {spent}")
        if not self._charged:
            self._charge()
            self._charged = True
        self._committed += tuple(blank)
        self._paid_looks = paid

    def _show(self, made: Sequence[Measurement]) -> tuple[Measurement, ...]:
        self._shown += tuple(made)
        return tuple(made)

    def _noisy(self, blank: Sequence[Measurement], tables: Mapping[Names, Table]) -> list[Measurement]:
        """The measurements of one request, filled in."""
        counted = [tables[b.names] for b in blank]
        if blank[0].mechanism == "joint":
            names = [b.names for b in blank]
            noisy = self._noise.joint(blocks.fold(counted, names), blank[0].scale)
            values = blocks.unfold(noisy, [table.shape for table in counted], names)
        else:
            values = [with_noise(counted[0], blank[0], self._noise)]
        return [replace(b, values=its) for b, its in zip(blank, values, strict=True)]

    def _sampling(self, request: Request, rate: Fraction) -> Sampling | None:
        """One group per sample drawn: per call if rows are sampled, per table of the call if tables are thinned."""
        if rate == 1 or not self.amplifies:
            return None
        table = "" if self._source.can_sample_rows else f"/{request.names!r}"
        return Sampling(rate, f"{self._calls}{table}")

    def _sampled(self, tables: Mapping[Names, Table], rate: Fraction) -> Mapping[Names, Table]:
        if self._source.can_sample_rows:
            sampled = self._source.sampled_counts(list(tables), lambda rows: self._noise.keep(rows, rate))
            return {names: _clipped(sampled[names]) for names in tables}
        # an independent sample per table: thin every cell binomially
        return {names: self._noise.thin(table, rate) for names, table in tables.items()}


def _joint_sizes(request: Joint, tables: Mapping[Names, Table]) -> tuple[int, ...]:
    """Cells per block of every table; refused unless all count the same records and their noise can be drawn."""
    folded = blocks.fold([tables[names] for names in request.tables], request.tables)
    try:
        blocks.check_totals(folded)
    except PrivacyError as error:
        error.add_note("a table that changes while an engine counts it must be copied first")
        raise
    sizes = tuple(table.shape[1] for table in folded)
    joint.check_joint(sizes, request.scale, len(folded[0]))
    return sizes


def _clipped(table: Table) -> Table:
    clipped = np.clip(np.ascontiguousarray(table, dtype=np.int64), 0, LARGEST_COUNT)
    return clipped.reshape(np.shape(table))  # a total has no axes


def _beyond(table: Table, cap: int) -> int:
    """The records of a table beyond the cap of their cells; clipped, which moves two tables no further apart."""
    return int(np.clip(table - cap, 0, LARGEST_COUNT // table.size).sum())


class Gradual:
    """Tables shown at a coarse level whose finer levels can still be shown. Level 0 is the coarsest."""

    def __init__(
        self,
        curator: Curator,
        ladders: Sequence[Ladder],
        hidden: Mapping[Names, tuple[Table, ...]],
        shown: Sequence[Measurement],
    ):
        self._curator, self._hidden = curator, hidden
        self._ladders = {ladder.names: ladder for ladder in ladders}
        self._current = {measurement.names: measurement for measurement in shown}
        self._levels = dict.fromkeys(self._ladders, 0)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The finest level shown of every table."""
        return tuple(self._current.values())

    def refine(self, levels: Mapping[Names, int], *, stage: str = "") -> tuple[Measurement, ...]:
        """Show the chosen finer levels; refused, with nothing shown, if the budget does not cover them all."""
        with self._curator._lock:
            blank, values = [], []
            for names, level in levels.items():
                if names not in self._ladders:
                    raise PrivacyError(f"a table to refine must be in this gradual release, got {names!r}")
                scales = self._ladders[names].scales
                if isinstance(level, bool) or not self._levels[names] < level < len(scales):
                    lowest = self._levels[names] + 1
                    raise PrivacyError(f"the level of {names} must be in {lowest}..{len(scales) - 1}, got {level!r}")
                blank.append(self._curator._level(names, scales[level], stage, self._current[names].ladder))
                values.append(self._hidden[names][level])
            made = self._curator._refine(blank, values)
            self._current.update({measurement.names: measurement for measurement in made})
            self._levels.update({names: int(level) for names, level in levels.items()})
            return made
