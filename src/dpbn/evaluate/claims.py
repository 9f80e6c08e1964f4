"""The paper's claims in words, each checked against what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpbn.evaluate import paper_figures as paper
from dpbn.evaluate.budget_order import BudgetOrder
from dpbn.evaluate.saving import Saving

if TYPE_CHECKING:
    import pandas

SCHEME, DEFAULT, BASELINE = "icml2020", "optimized", "uniform"


@dataclass(frozen=True)
class Claim:
    """`scheme` and `default` say what was found for Algorithm 1 and for the default learner; None: not applicable."""

    claim: str
    printed: str
    scheme: str
    reproduces: bool
    default: str
    holds: bool | None

    @property
    def cells(self) -> tuple[str, ...]:
        holds = "–" if self.holds is None else _word(self.holds)
        return (self.claim, self.printed, self.scheme, f"**{_word(self.reproduces)}**", self.default, holds)


def _word(value: bool) -> str:
    return "yes" if value else "no"


def claims(
    table: pandas.DataFrame, found: Sequence[Saving], orders: Sequence[BudgetOrder], networks: Sequence[str]
) -> list[Claim]:
    """Every claim, from the summary of results, the savings and the budget orders."""
    return [
        _ceiling(table, networks, "row", "parameter L1 on all networks, ε = 1", paper.PARAMETER_L1),
        _ceiling(table, networks, "row_kl_printed", "parameter KL on all networks, ε = 1", paper.PARAMETER_KL),
        _ceiling(table, networks, "query", "inference L1 about, ε = 1", paper.INFERENCE_L1),
        _ceiling(table, networks, "query_kl_printed", "inference KL about, ε = 1", paper.INFERENCE_KL),
        _map_accuracy(table, networks),
        _map_against_baseline(table, networks),
        _beats_baseline(table, networks),
        _same_utility(found, networks),
        _order(orders[0]),
    ]


def _value(table: pandas.DataFrame, network: str, method: str, epsilon: float, measure: str) -> float:
    mine = table[(table["network"] == network) & (table["method"] == method) & (table["epsilon"] == epsilon)]
    return float(mine[measure].iloc[0]) if len(mine) else float("nan")


def _ceiling(table: pandas.DataFrame, networks: Sequence[str], measure: str, claim: str, most: float) -> Claim:
    worst = {}
    for method in (SCHEME, DEFAULT):
        values = {network: _value(table, network, method, 1.0, measure) for network in networks}
        network = max(values, key=lambda name: values[name])
        worst[method] = (values[network], f"at most {values[network]:.3f} ({network})")
    return Claim(
        claim, f"≤ {most:g}", worst[SCHEME][1], worst[SCHEME][0] <= most, worst[DEFAULT][1], worst[DEFAULT][0] <= most
    )


def _mean_accuracy(table: pandas.DataFrame, networks: Sequence[str], method: str) -> float:
    return float(np.mean([_value(table, network, method, 1.0, "map_accuracy") for network in networks]))


def _map_accuracy(table: pandas.DataFrame, networks: Sequence[str]) -> Claim:
    scheme, default = (_mean_accuracy(table, networks, method) for method in (SCHEME, DEFAULT))
    goal = paper.MEAN_MAP_ACCURACY
    claim = "MAP accuracy, mean over networks, ε = 1"
    return Claim(claim, f"{goal:.1%}", f"{scheme:.1%}", scheme >= goal, f"{default:.1%}", default >= goal)


def _map_against_baseline(table: pandas.DataFrame, networks: Sequence[str]) -> Claim:
    scheme, default, baseline = (_mean_accuracy(table, networks, m) for m in (SCHEME, DEFAULT, BASELINE))
    printed = [np.mean([paper.MAP_ACCURACY[network][1.0][i] for network in paper.NETWORKS]) for i in (1, 0)]
    return Claim(
        "MAP accuracy above D-Ind's, mean over networks, ε = 1", f"{printed[0]:.1%} against {printed[1]:.1%}",
        f"{scheme:.1%} against {baseline:.1%}", scheme > baseline,
        f"{default:.1%} against {baseline:.1%}", default > baseline,
    )  # fmt: skip


def _beats_baseline(table: pandas.DataFrame, networks: Sequence[str]) -> Claim:
    told, won = {}, {}
    for method in (SCHEME, DEFAULT):
        wins = [
            _value(table, network, method, epsilon, measure) < _value(table, network, BASELINE, epsilon, measure)
            for network in networks
            for epsilon in paper.EPSILONS
            for measure in paper.PANELS
        ]
        told[method], won[method] = f"{sum(wins)} of {len(wins)} points", all(wins)
    return Claim(
        "below D-Ind at every point of the 16 panels", "all", told[SCHEME], won[SCHEME], told[DEFAULT], won[DEFAULT]
    )


def _same_utility(found: Sequence[Saving], networks: Sequence[str]) -> Claim:
    told, reached = {}, {}
    for method in (SCHEME, DEFAULT):
        mine = [s for s in found if s.method == method and s.epsilon == 1.0 and s.network in networks]
        factors = [s.factor for s in mine if s.measure in paper.PANELS]
        told[method] = f"{min(factors):.2f} to {max(factors):.2f} times" if factors else "–"
        reached[method] = bool(factors) and min(factors) >= paper.BUDGET_FACTOR
    return Claim(
        "ε = 1 is worth D-Ind's ε = 3 (every network and panel)", "3 times",
        told[SCHEME], reached[SCHEME], told[DEFAULT], reached[DEFAULT],
    )  # fmt: skip


def _order(order: BudgetOrder) -> Claim:
    told = f"{' > '.join(order.order[:3])} > … (rank correlation {order.agreement:.2f})"
    return Claim(
        "budget order on Asia",
        f"{' > '.join(paper.ASIA_ORDER[:3])} > …",
        told,
        order.order == paper.ASIA_ORDER,
        "other tables, no such order",
        None,
    )
