"""Plan before executing: which CPTs matter, in which order to eliminate, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dpbn.elimination import cheapest_elimination
from dpbn.errors import TooLargeError
from dpbn.inference.contraction import Scope
from dpbn.inference.program import Program

CELL_LIMIT = 10_000_000  # in one factor
BYTES_PER_CELL = 8
STEP_CELLS = 4_000  # what one prepared numpy step costs, in cells


@dataclass(frozen=True, repr=False)
class Plan:
    """What answering a question takes; `print(plan)` says it in one line."""

    strategy: str
    width: int  # variables of the largest factor, minus one
    cells: int  # of all factors together
    largest: int  # cells of the largest factor
    nodes: int  # CPTs that matter
    heuristic: str
    program: Program | None = field(default=None, repr=False, compare=False)
    relevant: tuple[int, ...] = field(default=(), repr=False, compare=False)
    order: tuple[int, ...] = field(default=(), repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """Memory of all factors together."""
        return self.cells * BYTES_PER_CELL

    @property
    def work(self) -> int:
        """Cells touched, with each step counted as the cells it could have touched while being called."""
        steps = len(self.program.steps) if self.program is not None else 0
        return 2 * self.cells + STEP_CELLS * steps

    def __repr__(self) -> str:
        return (
            f"{self.strategy}: width {self.width}, {self.cells:,} cells ({self.largest:,} in the largest factor), "
            f"{self.bytes:,} bytes, {self.nodes} CPTs, {self.heuristic}"
        )


def check_size(cells: int, limit: int, subject: str) -> None:
    """Refuse before anything is allocated."""
    if cells > limit:
        raise TooLargeError(
            f"{subject} must fit in {limit:,} cells, got {cells:,} ({cells * BYTES_PER_CELL / 1e9:,.1f} GB): "
            f"ask about fewer targets at once, give more evidence, or raise limit= if there is memory"
        )


def plan_elimination(
    scopes: Sequence[Scope],
    sizes: Sequence[int],
    output: Scope,
    *,
    limit: int,
    relevant: Sequence[int],
) -> Plan:
    """Try every heuristic on the factors' graph, keep the cheapest, refuse it if too large, compile it."""
    subject = "the largest factor of this question"
    check_size(math.prod(sizes[v] for v in output), limit, "the answer")
    elimination = cheapest_elimination(scopes, sizes, keep=output, limit=limit)
    check_size(elimination.largest, limit, subject)
    program = Program(scopes, elimination.order, output, sizes)
    check_size(program.largest, limit, subject)
    return Plan(
        "elimination",
        max(elimination.width, len(output) - 1),
        max(program.cells, 1),
        max(program.largest, 1),
        len(relevant),
        elimination.heuristic,
        program,
        tuple(relevant),
        elimination.order,
    )
