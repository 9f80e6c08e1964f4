"""`dpbn.learn`: data and structure in, release out. Checks first, then counts, charge, noise, estimate.

`dpbn.check` stops at the charge.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbn.data import open_source
from dpbn.errors import BudgetError, DataError, InputError, PrivacyError, received
from dpbn.formats import load_structure
from dpbn.learners.exact import learn_exact
from dpbn.learners.registry import learner_of
from dpbn.measure import Curator
from dpbn.measurement import AT_ONCE, total_loss
from dpbn.network import BayesianNetwork, Structure, check_cells
from dpbn.privacy import accounting
from dpbn.privacy.chain import Balance, exact_amount
from dpbn.privacy.guarantee import Budget, Guarantee, Sensitivity
from dpbn.privacy.noise import Noise, SecureNoise
from dpbn.public import checked_cpts, dirichlet_prior
from dpbn.release import Release, structure_hash
from dpbn.version import __version__
from dpbn.workload import checked_workload

if TYPE_CHECKING:
    from dpbn.privacy.ledger import Ledger


@np.errstate(under="ignore")  # as NumPy has it: a caller who has it raise must not lose what is paid for
def learn(
    data: Any,
    structure: str | Path | Structure | BayesianNetwork | Release,
    epsilon: float = 1.0,
    delta: float = 0.0,
    *,
    method: str = "optimized",
    neighbors: str = "add-remove",
    unit: str | None = None,
    max_contributions: int = 1,
    on_unknown: str = "error",
    prior: float | Mapping[str, Any] | None = None,
    public_cpts: Mapping[str, Any] | None = None,
    workload: Any = None,
    noise: Noise | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    progress: Callable[[float | None], None] | None = None,
    **options: Any,
) -> Release:
    """Learn the CPTs of `structure` from the private table `data` under differential privacy.

    Bad arguments and data that does not fit the schema raise before anything is charged or released.
    With a `ledger` and a `dataset` name, (epsilon, delta) is charged before the first noise is drawn; a
    run that fails after that stays charged and says so. `progress` is told how much of each pass over the
    table is done (0 to 1, None if unknown): it follows the table, show it to the custodian only. `options` are
    the method's own.
    """
    structure = load_structure(structure)
    check_cells(structure)
    workload = None if workload is None else checked_workload(structure, workload)
    learner = None if method == "exact" and not options else learner_of(method, options, delta, workload, learn)
    budget = Budget(epsilon, delta)
    epsilon, delta = budget.epsilon, budget.delta  # Python's own numbers, which the ledger reads exactly
    sensitivity = Sensitivity(neighbors, max_contributions)  # type: ignore[arg-type]
    public = checked_cpts(structure, public_cpts)
    priors = dirichlet_prior(structure, prior)
    _check_options(options)
    noise = SecureNoise() if noise is None else noise
    if isinstance(noise, type) or not hasattr(noise, "laplace"):
        got = noise if isinstance(noise, type) else type(noise).__name__
        raise InputError(f"noise must be SecureNoise() or InsecureNoise(seed), got {got}")
    private = _is_private(method, noise)
    if ledger is not None or dataset is not None:
        budget = _charged_budget(ledger, dataset, budget, private)

    if isinstance(unit, str) and unit in [variable.source_column for variable in structure.schema]:
        raise InputError(f"unit must be a column that tells whose row it is, got {unit!r}, which holds a variable")
    source = open_source(
        data, structure, unit=unit, max_contributions=max_contributions, on_unknown=on_unknown, progress=progress
    )
    charged: list[int] = []  # the ledger's entry, once there is one

    def charge() -> None:
        if ledger is not None and dataset is not None:
            about = {"structure": structure_hash(structure), "method": method}
            protects = f"{sensitivity.neighbors} of one {'record' if unit is None else f'unit {unit!r}'}"
            charged.append(ledger.charge(dataset, epsilon, delta, **about, protects=protects, private=private))

    curator = Curator(source, noise, budget, sensitivity, charge)
    try:
        if learner is None:
            learned = learn_exact(structure, source, prior=priors, public_cpts=public)
        else:
            learned = learner(structure, curator, prior=priors, public_cpts=public)
        release = Release(
            network=BayesianNetwork(structure, learned.cpts),
            guarantee=_guarantee(curator, method, unit),
            allocation=dict(learned.allocation),
            private=private,
            method=method,
            measurements=curator.measurements,
            on_unknown=on_unknown,
            prior={node: np.asarray(alpha).tolist() for node, alpha in priors.items()},
            public_nodes=tuple(public),
            options=dict(options),
            details=dict(learned.details),
            library=f"dpbn {__version__}",
            looks=curator.looks,
        )
        if charged and ledger is not None:
            _name_charge(ledger, charged[0], release)
    except BaseException as error:
        if charged:
            at = f"epsilon={epsilon} for {dataset!r} (entry {charged[0]})"
            error.add_note(f"the ledger was charged {at}; it stays charged")
        raise
    return release


def check(
    data: Any,
    structure: str | Path | Structure | BayesianNetwork | Release,
    epsilon: float = 1.0,
    delta: float = 0.0,
    *,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    **settings: Any,
) -> None:
    """Refuse what `learn` with the same arguments would refuse, and stop where it would begin to spend.

    The whole table is read. Nothing is charged or released. Unknown values that `on_unknown` would drop or put into a
    catch-all state are counted in a warning, and under "drop" the records that are left. What is said is for the
    custodian only, like all that `learn` says of a table before its noise; a policy or a state that is changed because
    of it tells others.
    """
    if _is_private(settings.get("method"), settings.get("noise")):
        if ledger is None and dataset is None:
            ledger, dataset = _Unspent(None), "none"  # type: ignore[assignment]
        elif hasattr(ledger, "charge"):
            ledger = _Unspent(ledger)  # type: ignore[assignment]
    with suppress(_WouldSpend):
        learn(data, structure, epsilon, delta, ledger=ledger, dataset=dataset, **settings)
    if (policy := settings.get("on_unknown", "error")) != "error":
        reading = {name: settings[name] for name in ("unit", "max_contributions", "progress") if name in settings}
        try:
            open_source(data, load_structure(structure), **reading).counts([()])
        except DataError as error:
            told = f"on_unknown={policy!r} will be needed: {error.unknown or error}"
            if policy == "drop":
                source = open_source(data, load_structure(structure), on_unknown=policy, **reading)
                told += f"; records that will count: {int(source.counts([()])[()])}"
            warnings.warn(told, stacklevel=2)


class _WouldSpend(BaseException):
    """All checks are passed."""


class _Unspent:
    """A ledger that knows what is left, if there is one to ask, and is never charged."""

    def __init__(self, ledger: Ledger | None):
        self._ledger = ledger

    def remaining(self, dataset: str) -> Balance:
        if self._ledger is None:
            return Balance(Fraction(2**1024), Fraction(1))  # more than any budget
        return self._ledger.remaining(dataset)

    def charge(self, *_: Any, **__: Any) -> int:
        raise _WouldSpend


def _is_private(method: str | None, noise: Noise | None) -> bool:
    """Whether noise is drawn that a guarantee may rest on: a claim by other noise than dpbn's own is not trusted."""
    return method != "exact" and (noise is None or type(noise) is SecureNoise)


def _name_charge(ledger: Ledger, entry: int, release: Release) -> None:
    """Note in the ledger which release was paid for; if that fails the charge stands, and the release is not lost."""
    try:
        ledger.record_release(entry, release.id)
    except PrivacyError as error:
        warnings.warn(f"entry {entry} of the ledger could not be named after its release: {error}", stacklevel=4)


def _check_options(options: Mapping[str, Any]) -> None:
    """The release repeats its options: what JSON cannot hold must be refused before anything is spent."""
    for name, value in options.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise InputError(
                f"{name} must be a finite number, a text or a list of them, got {received(value)}"
            ) from None


def _charged_budget(ledger: Ledger | None, dataset: str | None, asked: Budget, private: bool) -> Budget:
    """The budget, at most what the ledger is charged: it reads 0.1 as one tenth, which is less than the float."""
    if ledger is not None and not hasattr(ledger, "charge"):
        hint = ": open it with dpbn.Ledger(path)" if isinstance(ledger, (str, Path)) else ""
        raise InputError(f"ledger must be a dpbn.Ledger, got {type(ledger).__name__}{hint}")
    if ledger is None or dataset is None:
        raise InputError("ledger and dataset must be given together, got one of them")
    if not private:
        raise PrivacyError("a ledger must be charged for private releases only, got method 'exact' or insecure noise")
    epsilon, delta = exact_amount("epsilon", asked.epsilon), exact_amount("delta", asked.delta, zero=True)
    left = ledger.remaining(dataset)  # looked up before the table is read; the charge itself decides
    if epsilon > left.epsilon or delta > left.delta:
        raise BudgetError(
            f"a charge to {dataset!r} must be at most what is left, epsilon={float(left.epsilon):.12g} and "
            f"delta={float(left.delta):.12g}, got epsilon={asked.epsilon!r} and delta={asked.delta!r}"
        )
    return Budget(accounting.round_down(epsilon), accounting.round_down(delta))


def _guarantee(curator: Curator, method: str, unit: str | None) -> Guarantee:
    delta = curator.budget.delta if any(m.mechanism in AT_ONCE for m in curator.measurements) else 0.0
    epsilon = math.inf if method == "exact" else total_loss(curator.measurements, delta, looks=curator.looks)
    sensitivity = curator.sensitivity
    return Guarantee(epsilon, delta, sensitivity.neighbors, unit, sensitivity.max_contributions)
