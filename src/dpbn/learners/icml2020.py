"""Algorithm 1 of Roy Chowdhury, Rekatsinas, Jha (ICML 2020), as printed.

Symbols: eps_B total budget · eps_I stage I budget · beta sampling rate · theta-hat, T-hat stage I
estimate and noisy tables · delta_i error of a node's parameters (Eq. 10) · Delta_i sensitivity of
its children to it (Eq. 6-7) · h_i height · o_i out-degree · W_i weight · eps*_i stage II share (Eq. 11).

Readings where the paper is silent: `count_floor` bounds the noisy counts that delta_i divides by;
`sensitivity="printed"` takes Eq. 6 literally (its sum over y is P(pa), whatever the child),
`"contrast"` takes the absolute change of the child's distribution instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, received
from dpbn.graph import heights, out_degrees
from dpbn.learners.learned import Learned
from dpbn.learners.procedure1 import Parameters, compute_parameters
from dpbn.learners.uniform import equal_shares
from dpbn.measure import Curator
from dpbn.network import BayesianNetwork, Structure
from dpbn.privacy import accounting
from dpbn.privacy.noise import LARGEST_SCALE

Array = NDArray[np.float64]
SENSITIVITIES = ("printed", "contrast")
LEAST_SHARE = 1e-6
LARGEST_DENOMINATOR = 2**20  # coins take a fraction, with a denominator of at most this


def learn_icml2020(
    structure: Structure,
    curator: Curator,
    *,
    prior: Mapping[str, Array],
    public_cpts: Mapping[str, Array],
    stage_one: float = 0.1,
    sampling_rate: float = 0.1,
    count_floor: float = 1.0,
    sensitivity: str = "printed",
) -> Learned:
    """Stage I on a sample decides the shares of stage II; the two estimates are averaged."""
    _check_options(stage_one, sampling_rate, count_floor, sensitivity)
    nodes = [node for node in structure.nodes if node not in public_cpts]
    if not nodes:
        return Learned(dict(public_cpts), {})
    epsilon = curator.budget.epsilon
    epsilon_one = stage_one * epsilon
    second_budget = accounting.round_down(Fraction(epsilon) - Fraction(epsilon_one))
    _check_second(second_budget, stage_one, len(nodes), curator)
    # Where sampling may not be credited (docs/privacy.md) it would only lose accuracy: measure all rows instead.
    rate = Fraction(sampling_rate).limit_denominator(LARGEST_DENOMINATOR) if curator.amplifies else Fraction(1)
    first_shares = equal_shares(nodes, accounting.before_sampling(epsilon_one, rate))  # line 2
    first = compute_parameters(structure, curator, first_shares, prior, stage="one", rate=rate)  # lines 3-4

    estimate = BayesianNetwork(structure, {**first.cpts, **public_cpts})
    errors = {node: parameter_error(first, node, count_floor) for node in nodes}  # line 6
    effects = children_sensitivity(estimate, sensitivity)  # line 7
    weights = node_weights(structure, effects)  # line 8
    second_shares = optimal_shares({n: weights[n] * errors[n] for n in nodes}, second_budget)  # lines 10-13
    second = compute_parameters(structure, curator, second_shares, prior, stage="two")  # line 14

    cpts = {**weighted_mean(first.cpts, second.cpts, epsilon_one / len(nodes), second_shares), **public_cpts}
    details = {
        "stage_one_epsilon": epsilon_one,
        "stage_two": second_shares,
        "weights": {node: weights[node] for node in nodes},
        "parameter_errors": errors,
    }
    return Learned(cpts, {node: epsilon_one / len(nodes) + second_shares[node] for node in nodes}, details)


def weighted_mean(
    first: Mapping[str, Array], second: Mapping[str, Array], one: float, shares: Mapping[str, float]
) -> dict[str, Array]:
    """Lines 16-18: the two stages' CPTs, weighted by what each stage spent on the node."""
    return {n: (one * first[n] + shares[n] * second[n]) / (one + shares[n]) for n in second}


def parameter_error(parameters: Parameters, node: str, count_floor: float) -> float:
    """delta_i, Eq. 10: mean over cells of theta * sqrt(1/T[pa]^2 + 1/T[x,pa]^2)."""
    family = np.maximum(parameters.family_counts[node], count_floor)
    parents = np.maximum(parameters.parent_counts[node], count_floor)[..., None]
    return float(np.mean(parameters.cpts[node] * np.sqrt(parents**-2.0 + family**-2.0)))


def children_sensitivity(network: BayesianNetwork, reading: str = "printed") -> dict[str, float]:
    """Delta_i, Eq. 6-7: mean over parameters and children Y of (1/|Y|) sum_y dP[Y=y]/dtheta[x|pa]; 0 for leaves."""
    dag = network.structure.dag
    effect = _printed_effect if reading == "printed" else _contrast_effect
    return {
        node: float(np.mean([effect(network, node, child) for child in dag.children(node)]))
        if dag.children(node)
        else 0.0
        for node in network.nodes
    }


def _printed_effect(network: BayesianNetwork, node: str, child: str) -> float:
    """dP[y]/dtheta[x|pa] = P(y|x,pa) P(pa), so its sum over y is P(pa), whose mean over rows is 1/rows."""
    rows = math.prod(network.cpt(node).shape[:-1])
    return 1.0 / rows / len(network.states(child))


def _contrast_effect(network: BayesianNetwork, node: str, child: str) -> float:
    """Mean over parameters of (1/|Y|) P(pa) sum_y |P(y|x,pa) - P(y|pa)|: what the child really feels."""
    from dpbn.inference import Inference

    joint = Inference(network).query([*network.parents(node), node, child]).values
    mass = joint.sum(axis=-1, keepdims=True)
    given_both = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
    parent_mass = joint.sum(axis=(-2, -1), keepdims=True)
    given_parents = np.divide(
        joint.sum(axis=-2, keepdims=True), parent_mass, out=np.zeros_like(joint[..., :1, :]), where=parent_mass > 0
    )
    change = np.abs(given_both - given_parents).sum(axis=-1) * parent_mass[..., 0]
    return float(np.mean(change)) / len(network.states(child))


def node_weights(structure: Structure, effects: Mapping[str, float]) -> dict[str, float]:
    """W_i = (h_i + 1)(o_i + 1)(Delta_i + 1)."""
    height, degree = heights(structure.dag), out_degrees(structure.dag)
    return {node: (height[node] + 1) * (degree[node] + 1) * (effects[node] + 1) for node in structure.nodes}


def optimal_shares(costs: Mapping[str, float], budget: float) -> dict[str, float]:
    """Eq. 11: minimise sum cost_i / eps_i with sum eps_i = budget, so eps_i is proportional to sqrt(cost_i).

    No share is below LEAST_SHARE of the largest: what stage II asks for must not fail after stage I is paid for.
    """
    roots = [math.sqrt(cost) for cost in costs.values()]
    least = LEAST_SHARE * max(roots)
    return dict(zip(costs, accounting.split(budget, [max(root, least) for root in roots]), strict=True))


def _check_second(budget: float, stage_one: float, nodes: int, curator: Curator) -> None:
    """Refuse, before anything is charged, a stage II whose smallest possible share needs more noise than there is."""
    least = budget * LEAST_SHARE / nodes / 2 / 2  # two tables per node, and a factor for rounding
    if not curator.sensitivity.l1 <= least * LARGEST_SCALE:
        raise InputError(
            f"stage_one must leave enough of epsilon={curator.budget.epsilon} for stage II on {nodes} nodes, "
            f"got {stage_one!r}"
        )


def _check_options(stage_one: float, sampling_rate: float, count_floor: float, sensitivity: str) -> None:
    for name, value in (("stage_one", stage_one), ("sampling_rate", sampling_rate), ("count_floor", count_floor)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{name} must be a number, got {received(value)}")
    if not 0 < stage_one < 1:
        raise InputError(f"stage_one must be a share in (0, 1), got {stage_one!r}")
    if not 1 / LARGEST_DENOMINATOR <= sampling_rate <= 1:
        raise InputError(f"sampling_rate must be in [2^-20, 1], got {sampling_rate!r}")
    if not 1e-9 <= count_floor <= 1e9:  # beyond, errors would leave the range of floats after stage I is paid for
        raise InputError(f"count_floor must be in [1e-9, 1e9], got {count_floor!r}")
    if sensitivity not in SENSITIVITIES:
        raise InputError(f"sensitivity must be one of {SENSITIVITIES}, got {received(sensitivity)}")
