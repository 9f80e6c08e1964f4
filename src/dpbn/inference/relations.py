"""Findings that can matter to a target: nodes without a common ancestor are independent until a finding ties them."""

from __future__ import annotations

from collections.abc import Sequence

from dpbn.inference.contraction import Scope
from dpbn.inference.evidence import Findings
from dpbn.inference.model import Model, root_ancestors


class Relations:
    """Which findings share ancestors with a target, directly or through other findings."""

    def __init__(self, model: Model):
        self.roots = root_ancestors(model)
        self.zeros = model.zeros

    def split(self, targets: Scope, findings: Findings) -> tuple[Findings, list[list[int]]]:
        """The findings tied to the targets, and the other variables found, in groups independent of each other."""
        mine, left = self._tied(targets, [*findings.hard, *findings.soft])
        if not left:
            return findings, []
        others: list[list[int]] = []
        while left:
            group, left = self._tied((left[0],), left) if len(left) > 1 else (left, [])
            others.append(group)
        return only(findings, mine), others

    def surely_possible(self, findings: Findings) -> bool:
        """No finding rules out a state, and no CPT of what was found does: whatever is above, the rest can follow."""
        return self.zeros.isdisjoint(findings.hard) and all(s.all() for s in findings.soft.values())

    def _tied(self, start: Scope, candidates: Sequence[int]) -> tuple[list[int], list[int]]:
        roots = self.roots
        mask = 0
        for v in start:
            mask |= roots[v]
        found: list[int] = []
        left = list(candidates)
        grown = True
        while grown and left:
            grown = False
            apart = []
            for v in left:
                if roots[v] & mask:
                    grown = grown or bool(roots[v] & ~mask)
                    mask |= roots[v]
                    found.append(v)
                else:
                    apart.append(v)
            left = apart
        return found, left


def only(findings: Findings, variables: Sequence[int]) -> Findings:
    """The findings on these variables."""
    hard, soft = findings.hard, findings.soft
    return Findings({v: hard[v] for v in variables if v in hard}, {v: soft[v] for v in variables if v in soft})
