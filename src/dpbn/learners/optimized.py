"""The default method: measure few well-chosen tables once, then make the most of their noise.

Privacy. One record changes one cell by one in each table asked for, so a table, or a group of tables with joint noise,
of scale l1/e is e-DP. One percent of epsilon counts the rows; which tables are asked for then depends on that noisy
count and on public facts, and the shares e of all add up to at most epsilon (adaptive composition). With delta > 0
and many tables: summed or Gaussian noise, asked for at once, tables and scales from public facts alone.
All that follows is a function of the noisy tables and of public facts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError
from dpbn.learners.coarse import LEAST_PART, MOST_PART, WORTH, as_told, doubtful, plan_coarse
from dpbn.learners.estimate import estimate
from dpbn.learners.groups import MOST_SIGNAL, Grouping, can_draw, clear_error, plan_groups
from dpbn.learners.influence import influences
from dpbn.learners.learned import Learned
from dpbn.learners.stages import measure_in_stages
from dpbn.learners.strategy import OF_PRECISION, Strategy, plan_tables
from dpbn.measure import Curator
from dpbn.measurement import AT_ONCE, Joint, Measurement, Names, Request, variance_apart
from dpbn.network import Structure
from dpbn.privacy import accounting
from dpbn.privacy.gaussian import rho_budget
from dpbn.privacy.guarantee import Budget, Sensitivity
from dpbn.privacy.summed import summed_laws
from dpbn.workload import Workload

Array = NDArray[np.float64]

COUNT, REST = 0.01, 0.99  # parts of epsilon: to count the rows before the tables are chosen, and for the tables


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
        raise InputError(f"stage_one must be in 0.05..0.95, got {stage_one!r:.80}")
    if stage_one is not None and curator.budget.delta > 0:
        raise InputError(f"stage_one needs Laplace noise, so delta must be 0, got {curator.budget.delta!r}")
    if len(public_cpts) == len(structure.nodes):
        return Learned(dict(public_cpts), {})
    weights = influences(structure, workload) if workload else None
    if stage_one is None:
        said = [node for node, alpha in prior.items() if np.ptp(alpha.reshape(-1, alpha.shape[-1]), axis=0).any()]
        measurements = measure_once(structure, curator, public_cpts, weights, said)
    else:
        strategy = plan_tables(structure, public_cpts, weights)
        measurements = measure_in_stages(
            structure, curator, strategy, stage_one, prior=prior, public_cpts=public_cpts, workload=workload
        )
    cpts = estimate(structure, measurements, prior=prior, public_cpts=public_cpts)
    return Learned(cpts, allocation(structure, measurements, curator.spent), details(measurements))


def measure_once(
    structure: Structure,
    curator: Curator,
    public: Collection[str],
    weights: Mapping[str, float] | None,
    whole: Collection[str] = (),
) -> tuple[Measurement, ...]:
    """The tables with noise drawn together, or with delta > 0 apart where less error is predicted (many tables)."""
    budget, sensitivity = curator.budget, curator.sensitivity
    together = can_draw(structure, REST * budget.epsilon, sensitivity.l1)
    if budget.delta > 0:
        asked = with_delta(plan_tables(structure, public, weights, power=OF_PRECISION), budget, sensitivity)
        plan = plan_groups(structure, MOST_SIGNAL, public, weights) if together else alone(structure, public, weights)

        def error(groups: Sequence[Sequence[Names]], shares: Sequence[float]) -> float:
            return clear_error(structure, [tuple(map(frozenset, group)) for group in groups], shares, public, weights)

        # a Laplace table with the share e of epsilon has a deviation of root(2) l1 / (e epsilon)
        deviations = [math.sqrt(variance_apart(r.mechanism, r.scale, r.draws)) for r in asked]
        shares = [math.sqrt(2.0) * sensitivity.l1 / (budget.epsilon * deviation) for deviation in deviations]
        if error([[r.names] for r in asked], shares) < error(plan.groups, plan.shares):
            return curator.measure(asked, stage="all")
    if together:
        return measure_groups(structure, curator, public, weights, whole)
    return curator.measure(apart(plan_tables(structure, public, weights), budget, sensitivity), stage="all")


def measure_groups(
    structure: Structure,
    curator: Curator,
    public: Collection[str],
    weights: Mapping[str, float] | None,
    whole: Collection[str],
) -> tuple[Measurement, ...]:
    """Count the rows with a small part of epsilon, then measure the tables that pay at that number of rows.

    Where noise may drown families, another small part is for a look at how many of their records it would drown.
    """
    epsilon, l1 = curator.budget.epsilon, curator.sensitivity.l1
    first, rest = accounting.split(epsilon, [COUNT, REST])
    (count,) = curator.measure([Request((), accounting.laplace_scale(first, l1))], stage="count")
    rows = max(float(count.values.item()), 1.0)
    signal = rows * epsilon / l1
    plan = plan_coarse(structure, signal, public, weights, whole)
    doubt = doubtful(structure, plan, signal, public, whole)
    if doubt.families and weights is None:
        part = min(max(WORTH / signal, LEAST_PART), MOST_PART)
        cost, rest = accounting.split(rest, [part, 1.0 - part])
        look = doubt.look(rows, accounting.laplace_scale(cost, len(doubt.families) * l1))
        drowned = curator.look(look).records / rows
        deviation = math.sqrt(2.0) * look.scale / (len(doubt.families) * rows)
        plan = plan_coarse(structure, signal, public, weights, whole, doubt.limit(drowned, deviation))
    asked: list[Request | Joint] = []
    for group, share in zip(plan.groups, accounting.split(rest, plan.shares), strict=True):
        scale = accounting.laplace_scale(share, l1)
        asked.append(Request(group[0], scale) if len(group) == 1 else Joint(group, scale))
    return (count, *curator.measure(asked, stage="tables"))


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


def allocation(structure: Structure, measurements: Sequence[Measurement], spent: float) -> dict[str, float]:
    """Per node, the loss of all measured tables that contain its family, tables drawn together once.

    Tables with delta cost less together than each by itself, and Gaussian losses are rho: their losses are scaled to
    add up to what all cost. Nodes with public CPTs may have none.
    """
    at_once = all(m.mechanism in AT_ONCE for m in measurements)
    part = spent / math.fsum(m.loss for m in measurements) if at_once else 1.0
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
