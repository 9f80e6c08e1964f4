"""The default method: measure few well-chosen tables once, then make the most of their noise.

Privacy. One record changes one cell by one in each table asked for, so a table, or a group of tables with joint noise,
of scale l1/e is e-DP. A small part of epsilon counts the rows, another may look at how full the cells of some families
are; which tables are asked for then depends on these noisy numbers and on public facts, and the shares e of all add up
to at most epsilon (adaptive composition). With delta > 0 and many tables: summed or Gaussian noise, all asked for at
once after the count and the look.
All that follows is a function of the noisy tables and of public facts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, PrivacyError, received
from dpbn.learners.coarse import Plan, Planner, as_told, doubtful, noise_to_signal, plan_coarse
from dpbn.learners.estimate import estimate
from dpbn.learners.groups import (
    MOST_SIGNAL,
    Grouping,
    can_draw,
    clear_error,
    deviations,
    plan_groups,
)
from dpbn.learners.influence import influences
from dpbn.learners.learned import Learned
from dpbn.learners.stages import measure_in_stages
from dpbn.learners.strategy import LEAST, OF_PRECISION, Strategy, can_count, plan_tables
from dpbn.measure import Curator
from dpbn.measurement import (
    AT_ONCE,
    Joint,
    Measurement,
    Request,
    estimated_rows,
    total_loss,
    variance_apart,
)
from dpbn.network import Structure
from dpbn.privacy import accounting
from dpbn.privacy.gaussian import rho_budget
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.summed import summed_laws
from dpbn.workload import Workload

Array = NDArray[np.float64]

COUNT, AGAIN = 0.002, 0.01  # parts of epsilon to count the rows with, and to count them again if few
PRECISE = 0.25  # deviation of the first count, as a part of it, that is enough
LEAST_LOOK, MOST_LOOK = 0.002, 0.02  # parts of epsilon that a look may take
WORTH = 15.0  # of a look: its part of epsilon times the records; its deviation is then a tenth of them
LEFT = 0.93  # of epsilon at least, for the tables


def learn_optimized(
    structure: Structure,
    curator: Curator,
    *,
    prior: Mapping[str, Array],
    public_cpts: Mapping[str, Array],
    workload: Workload | None = None,
    stage_one: float | None = None,
) -> Learned:
    """`allocation[node]` is the part of all tables that contain the node's family in epsilon.

    With `stage_one` (the part of the budget to look with, 0.05 to 0.95) the split depends on the data: see `stages`.
    """
    if stage_one is not None and not (isinstance(stage_one, (int, float)) and 0.05 <= stage_one <= 0.95):
        raise InputError(f"stage_one must be in 0.05..0.95, got {received(stage_one)}")
    if stage_one is not None and curator.budget.delta > 0:
        raise InputError(f"stage_one needs Laplace noise, so delta must be 0, got {curator.budget.delta!r}")
    if len(public_cpts) == len(structure.nodes):
        return Learned(dict(public_cpts), {})
    weights = influences(structure, workload) if workload else None
    if stage_one is None:
        # where pseudo-counts differ from row to row, rows that became one would mix them
        fixed = [node for node, alpha in prior.items() if np.ptp(alpha.reshape(-1, alpha.shape[-1]), axis=0).any()]
        measurements = measure_once(structure, curator, public_cpts, weights, fixed)
    else:
        strategy = plan_tables(structure, public_cpts, weights)
        measurements = measure_in_stages(
            structure, curator, strategy, stage_one, prior=prior, public_cpts=public_cpts, workload=workload
        )
    cpts = estimate(structure, measurements, prior=prior, public_cpts=public_cpts)
    return Learned(cpts, allocation(structure, measurements, curator.budget.delta), details(measurements))


def measure_once(
    structure: Structure,
    curator: Curator,
    public: Collection[str],
    weights: Mapping[str, float] | None,
    fixed: Collection[str] = (),
) -> tuple[Measurement, ...]:
    """The tables with noise drawn together, or with delta > 0 apart where less error is predicted (many tables).

    The nodes `fixed` keep their parents.
    """
    budget, sensitivity = curator.budget, curator.sensitivity
    fixed = {*public, *fixed}
    together = can_draw(structure, LEFT * budget.epsilon, sensitivity.l1)
    if budget.delta > 0:
        asked = with_delta(plan_tables(structure, public, weights, power=OF_PRECISION), budget, sensitivity)
        plan = plan_groups(structure, MOST_SIGNAL, public, weights) if together else alone(structure, public, weights)
        error = partial(clear_error, structure, public=public, weights=weights)
        # a Laplace table with the share e of epsilon has a deviation of root(2) l1 / (e epsilon)
        spread = [math.sqrt(variance_apart(r.mechanism, r.scale, r.draws)) for r in asked]
        shares = [math.sqrt(2.0) * sensitivity.l1 / (budget.epsilon * deviation) for deviation in spread]
        if error([[r.names] for r in asked], shares) < error(plan.groups, plan.shares):
            if can_share(structure, budget, sensitivity, fixed):
                return measure_with_delta(structure, curator, public, weights, fixed)
            return curator.measure(asked, stage="all")
    if together:
        return measure_groups(structure, curator, public, weights, fixed)
    return curator.measure(apart(plan_tables(structure, public, weights), budget, sensitivity), stage="all")


def measure_groups(
    structure: Structure,
    curator: Curator,
    public: Collection[str],
    weights: Mapping[str, float] | None,
    fixed: Collection[str],
) -> tuple[Measurement, ...]:
    """Count the rows with a small part of epsilon, then measure the tables that pay at that number of rows."""
    l1 = curator.sensitivity.l1
    counts, rows, rest = counted(curator)
    signal = rows * curator.budget.epsilon / l1

    def planner(told: Structure) -> tuple[Grouping, Mapping[str, float]]:
        plan = plan_groups(told, signal, public, weights)
        return plan, noise_to_signal(told, deviations(told.schema, plan), signal)

    plan, rest = decided(structure, curator, planner, rows, rest, fixed, weights is None)
    asked: list[Request | Joint] = []
    for group, share in zip(plan.groups, accounting.split(rest, plan.shares), strict=True):
        scale = accounting.laplace_scale(share, l1)
        asked.append(Request(group[0], scale) if len(group) == 1 else Joint(group, scale))
    return (*counts, *curator.measure(asked, stage="tables"))


def measure_with_delta(
    structure: Structure,
    curator: Curator,
    public: Collection[str],
    weights: Mapping[str, float] | None,
    fixed: Collection[str],
) -> tuple[Measurement, ...]:
    """The same for tables with noise of their own, Gaussian or summed."""
    budget, sensitivity = curator.budget, curator.sensitivity
    counts, rows, rest = counted(curator)
    rho = rho_budget(LEFT * budget.epsilon, budget.delta)  # roughly, and as `can_share` has tried
    variance = sensitivity.l2_squared / (2.0 * rho)  # of a table with all of the precision

    def planner(told: Structure) -> tuple[Strategy, Mapping[str, float]]:
        plan = plan_tables(told, public, weights, power=OF_PRECISION)
        noise = {
            frozenset(names): math.sqrt(variance / share) for names, share in zip(plan.tables, plan.shares, strict=True)
        }
        return plan, noise_to_signal(told, noise, rows)

    plan, rest = decided(structure, curator, planner, rows, rest, fixed, weights is None)
    try:  # searches for noise end within 1e-8 of what they aim at
        asked = with_delta(plan, Budget(rest * (1.0 - 1e-6), budget.delta), sensitivity)
        return (*counts, *curator.measure(asked, stage="tables"))
    except PrivacyError:  # not seen, but nothing may be refused once the count is charged
        return (*counts, *curator.measure(apart(plan, Budget(rest), sensitivity), stage="tables"))


def counted(curator: Curator) -> tuple[tuple[Measurement, ...], float, float]:
    """The number of rows, asked for again if the first answer may be mostly noise; what is left of epsilon."""
    l1, rest = curator.sensitivity.l1, curator.budget.epsilon
    counts: tuple[Measurement, ...] = ()
    for part in (COUNT, AGAIN):
        cost, rest = accounting.split(rest, [part, 1.0 - part])
        counts += curator.measure([Request((), accounting.laplace_scale(cost, l1))], stage="count")
        if math.sqrt(counts[-1].variance) < PRECISE * estimated_rows(counts):
            break
    return counts, estimated_rows(counts), rest


def decided(
    structure: Structure,
    curator: Curator,
    planner: Planner[Plan],
    rows: float,
    rest: float,
    fixed: Collection[str],
    may_look: bool,
) -> tuple[Plan, float]:
    """The plan without the parents that are better left out, and what is left of epsilon.

    Where noise may drown families a small part of epsilon is for a look at how many of their records stand out; not
    with a workload, since what follows from the look knows no weights.
    """
    planned = cache(planner)  # after the look it begins with the same plans
    found = plan_coarse(structure, planned, fixed)
    doubt = doubtful(found, fixed)
    if may_look and doubt.families:
        moved = len(doubt.families) * curator.sensitivity.max_contributions
        part = min(max(WORTH * curator.sensitivity.l1 / (rows * curator.budget.epsilon), LEAST_LOOK), MOST_LOOK)
        cost, rest = accounting.split(rest, [part, 1.0 - part])
        looked = curator.look(doubt.look(rows, accounting.laplace_scale(cost, moved)))
        found = plan_coarse(structure, planned, fixed, doubt.limit(looked.records / rows))
    return found.plan, rest


def can_share(structure: Structure, budget: Budget, sensitivity: Sensitivity, fixed: Collection[str]) -> bool:
    """Whether tables with delta can share the budget with a count and a look, and any parent could be left out.

    From public facts alone, so that nothing can fail once the count is charged.
    """
    nodes = len(structure.nodes)
    if not can_count(structure) or all(node in fixed or not its for node, its in structure.dag.parents.items()):
        return False
    try:
        accounting.laplace_scale(COUNT * LEAST_LOOK * budget.epsilon, nodes * sensitivity.l1)
        rho = rho_budget(LEFT * budget.epsilon, budget.delta)
        accounting.gaussian_scale(rho * LEAST / (4 * nodes), sensitivity.l2_squared)
        accounting.laplace_scale(LEFT * budget.epsilon * LEAST / (4 * nodes), sensitivity.l1)
    except PrivacyError:
        return False
    return True


def alone(structure: Structure, public: Iterable[str], weights: Mapping[str, float] | None) -> Grouping:
    """What is asked for where noise cannot be drawn together: every table a group of its own."""
    strategy = plan_tables(structure, public, weights)
    return Grouping(tuple((names,) for names in strategy.tables), strategy.shares)


def apart(strategy: Strategy, budget: Budget, sensitivity: Sensitivity) -> list[Request]:
    """The tables of a strategy with Laplace noise of their own."""
    shares = accounting.split(budget.epsilon, strategy.shares)
    return [
        Request(names, accounting.laplace_scale(share, sensitivity.l1))
        for names, share in zip(strategy.tables, shares, strict=True)
    ]


def with_delta(strategy: Strategy, budget: Budget, sensitivity: Sensitivity) -> list[Request]:
    """The tables of a strategy with summed noise, or with Gaussian noise where that is less or the only one."""
    rho = rho_budget(budget.epsilon, budget.delta, max(strategy.shares))
    gaussian = [
        Request(names, accounting.gaussian_scale(share, sensitivity.l2_squared), "gaussian")
        for names, share in zip(strategy.tables, accounting.split(rho, strategy.shares), strict=True)
    ]
    if sensitivity.max_contributions > 1:
        return gaussian
    laws = summed_laws(strategy.shares, sensitivity.l1, budget.epsilon, budget.delta)
    if laws is None or variance_apart("summed", *laws[0]) >= gaussian[0].scale ** 2:
        return gaussian
    return [Request(names, scale, "summed", draws) for names, (scale, draws) in zip(strategy.tables, laws, strict=True)]


def allocation(structure: Structure, measurements: Sequence[Measurement], delta: float) -> dict[str, float]:
    """Per node, the loss of all measured tables that contain its family, tables drawn together once.

    Tables with delta cost less together than each by itself, and Gaussian losses are rho: their losses are scaled to
    add up to what all cost. Nodes with public CPTs may have none.
    """
    at_once = [m for m in measurements if m.mechanism in AT_ONCE]
    part = total_loss(at_once, delta) / math.fsum(m.loss for m in at_once) if at_once else 1.0
    result = {}
    told = as_told(structure, [m.names for m in measurements], structure.nodes)
    for node in structure.nodes:
        family = set(told.family(node).names)
        holding = [(index, m) for index, m in enumerate(measurements) if family <= set(m.names)]
        losses = {m.together.group if m.together else index: m.loss for index, m in holding}
        if losses:
            result[node] = part * accounting.add_up(losses.values())
    return result


def details(measurements: Sequence[Measurement]) -> dict[str, object]:
    return {
        "tables": [
            {"names": list(m.names), "scale": m.scale, "loss": m.loss}
            | ({"group": m.together.group} if m.together else {})
            | ({"draws": m.draws} if m.draws > 1 else {})
            for m in measurements
        ]
    }
