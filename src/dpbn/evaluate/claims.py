"""The paper's claims in words, each checked against what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpbn.evaluate import paper_figures as paper
from dpbn.evaluate.budget_order import BudgetOrder
from dpbn.evaluate.results import entry
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


Finding = tuple[str, bool]  # what was found for one method, and whether the claim holds for it


def claims(
    table: pandas.DataFrame, found: Sequence[Saving], orders: Sequence[BudgetOrder], networks: Sequence[str]
) -> list[Claim]:
    """Every claim, from the summary of results, the savings and the budget orders."""

    def value(network: str, method: str, epsilon: float, measure: str) -> float:
        at = entry(table, network, method, epsilon)
        return float("nan") if at is None else float(at[measure])

    def at_most(measure: str, most: float, method: str) -> Finding:
        values = {network: value(network, method, 1.0, measure) for network in networks}
        worst = max(values, key=lambda name: values[name])
        return f"at most {values[worst]:.3f} ({worst})", values[worst] <= most

    def mean_accuracy(method: str) -> float:
        return float(np.mean([value(network, method, 1.0, "map_accuracy") for network in networks]))

    def accurate(method: str) -> Finding:
        return f"{mean_accuracy(method):.1%}", mean_accuracy(method) >= paper.MEAN_MAP_ACCURACY

    def more_accurate(method: str) -> Finding:
        ours, baseline = mean_accuracy(method), mean_accuracy(BASELINE)
        return f"{ours:.1%} against {baseline:.1%}", ours > baseline

    def below_baseline(method: str) -> Finding:
        wins = [
            value(network, method, epsilon, measure) < value(network, BASELINE, epsilon, measure)
            for network in networks
            for epsilon in paper.EPSILONS
            for measure in paper.PANELS
        ]
        return f"{sum(wins)} of {len(wins)} points", all(wins)

    def worth_more(method: str) -> Finding:
        mine = [s for s in found if s.method == method and s.epsilon == 1.0 and s.network in networks]
        panels = sorted((s for s in mine if s.measure in paper.PANELS), key=lambda s: s.factor)
        if not panels:
            return "–", False
        ends = [f"{end.bound}{end.factor:.2f}" for end in (panels[0], panels[-1])]
        return f"{ends[0]} to {ends[1]} times", panels[0].factor >= paper.BUDGET_FACTOR

    def ceiling(claim: str, measure: str, most: float) -> Claim:
        return judged(claim, f"≤ {most:g}", partial(at_most, measure, most))

    def judged(claim: str, printed: str, judge: Callable[[str], Finding]) -> Claim:
        return Claim(claim, printed, *judge(SCHEME), *judge(DEFAULT))

    printed = [np.mean([paper.MAP_ACCURACY[network][1.0][i] for network in paper.NETWORKS]) for i in (1, 0)]
    return [
        ceiling("parameter L1 on all networks, ε = 1", "row", paper.PARAMETER_L1),
        ceiling("parameter KL on all networks, ε = 1", "row_kl_printed", paper.PARAMETER_KL),
        ceiling("inference L1 about, ε = 1", "query", paper.INFERENCE_L1),
        ceiling("inference KL about, ε = 1", "query_kl_printed", paper.INFERENCE_KL),
        judged("MAP accuracy, mean over networks, ε = 1", f"{paper.MEAN_MAP_ACCURACY:.1%}", accurate),
        judged(
            "MAP accuracy above D-Ind's, mean over networks, ε = 1",
            f"{printed[0]:.1%} against {printed[1]:.1%}",
            more_accurate,
        ),
        judged("below D-Ind at every point of the 16 panels", "all", below_baseline),
        judged("ε = 1 is worth D-Ind's ε = 3 (every network and panel)", "3 times", worth_more),
        _order(orders[0]),
    ]


def _order(order: BudgetOrder) -> Claim:
    told = f"{' > '.join(order.order[:3])} > … (rank correlation {order.agreement:.2f})"
    printed, same = f"{' > '.join(paper.ASIA_ORDER[:3])} > …", order.order == paper.ASIA_ORDER
    return Claim("budget order on Asia", printed, told, same, "other tables, no such order", None)
