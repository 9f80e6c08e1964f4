"""From what a file gives to checked CPTs: size limits, missing rows, and rows that are off by rounding."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpbn.domain import Schema, Variable
from dpbn.errors import FormatError
from dpbn.graph import Dag
from dpbn.matching import is_number
from dpbn.network import ROW_SUM_TOLERANCE, Structure

# Files print few digits. Up to ROW_SUM_TOLERANCE a row is kept bit for bit as it was read; up to this it is
# divided by its sum, with a warning; beyond it is an error.
ROUNDING_TOLERANCE = 1e-3


class RoundedRowsWarning(UserWarning):
    """Rows of a CPT were divided by their sum, because the file rounds them too coarsely."""


def assembled(variables: Mapping[str, Variable], parents: Mapping[str, tuple[str, ...]]) -> Structure:
    """The structure of what a file declares, in the order it declares it; a file that declares nothing is refused."""
    if not variables:
        raise FormatError("a network must declare at least one variable, got none")
    return Structure(Schema(tuple(variables.values())), Dag(tuple(variables), parents))


def numbers_of(words: Sequence[str], subject: str) -> list[float]:
    """Words as numbers, or a FormatError that quotes the first that is none."""
    try:
        return list(map(float, words))
    except ValueError:
        wrong = next(word for word in words if not is_number(word))
        raise FormatError(f"{subject} must be numbers, got {wrong[:40]!r}") from None


def row_name(structure: Structure, node: str, row: int) -> str:
    """A parent configuration in words, as in "(asia=yes, smoke=no)"."""
    parents = structure.parents(node)
    codes = np.unravel_index(row, structure.shape(node)[:-1]) if parents else ()
    pairs = (f"{p}={structure.states(p)[int(code)]}" for p, code in zip(parents, codes, strict=True))
    return f"({', '.join(pairs)})"


def from_rows(
    structure: Structure, node: str, rows: Sequence[int], values: Sequence[float], default: Sequence[float] | None
) -> NDArray[np.float64]:
    """The CPT given row by row in any order; rows not given take `default`, or are an error that names the first.

    `values` holds the given rows one after another. Nothing is allocated before the row count is known to be right.
    """
    shape = structure.shape(node)
    count = math.prod(shape[:-1])
    given = set(rows)
    if len(given) < len(rows):
        seen: set[int] = set()
        twice = next(row for row in rows if row in seen or seen.add(row))  # type: ignore[func-returns-value]
        raise FormatError(f"CPT of {node!r} must give each row once, got {row_name(structure, node, twice)} twice")
    if not given and default is None:
        raise FormatError(f"CPT of {node!r} must hold probabilities, got none")
    if len(given) < count and default is None:
        missing = next(row for row in range(count) if row not in given)
        raise FormatError(
            f"CPT of {node!r} must have {count} rows, got {len(given)}: {row_name(structure, node, missing)} is missing"
        )
    table = np.empty((count, shape[-1])) if default is None else np.tile(np.array(default), (count, 1))
    table[np.array(rows, dtype=np.intp)] = np.array(values).reshape(-1, shape[-1])
    return table.reshape(shape)


def checked_rows(structure: Structure, node: str, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """`table` with its rows summing to 1: untouched within 1e-6, normalised with a warning within 1e-3."""
    finite = np.isfinite(table)
    if not finite.all() or (table < 0).any():
        wrong = table[~finite | (table < 0)]
        raise FormatError(f"CPT of {node!r} must hold finite probabilities >= 0, got {float(wrong[0])!r}")
    sums = table.sum(axis=-1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    found = float(sums.reshape(-1)[worst])
    if abs(found - 1.0) <= ROW_SUM_TOLERANCE:
        return table
    where = f" at {row_name(structure, node, worst)}" if structure.parents(node) else ""
    if not abs(found - 1.0) <= ROUNDING_TOLERANCE:
        raise FormatError(f"rows of the CPT of {node!r} must sum to 1, got {found!r}{where}")
    warnings.warn(
        f"rows of the CPT of {node!r} do not sum to 1 ({found!r}{where}): each such row was divided by its sum",
        RoundedRowsWarning,
        stacklevel=2,
    )
    factors = np.where(np.abs(sums - 1.0) > ROW_SUM_TOLERANCE, sums, 1.0)
    normalised: NDArray[np.float64] = table / factors[..., None]
    return normalised


def from_table(structure: Structure, node: str, values: Sequence[float]) -> NDArray[np.float64]:
    """The CPT given as one run of numbers, parents in order and the child fastest, with its rows checked."""
    if len(values) != structure.cells(node):
        raise FormatError(f"table of {node!r} must have {structure.cells(node)} numbers, got {len(values)}")
    return checked_rows(structure, node, np.array(values, dtype=np.float64).reshape(structure.shape(node)))
