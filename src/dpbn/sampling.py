"""Ancestral sampling from a network: synthetic rows, for experiments and for release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError, TooLargeError, received
from dpbn.network import BayesianNetwork, Structure

if TYPE_CHECKING:
    import pandas

LARGEST_SAMPLE = 2**33  # cells: 8 GB of codes
BLOCK_ROWS = 2**13  # rows drawn at a time: what one node needs stays in the processor's cache


def check_draw(rows: Any, nodes: int, seed: Any) -> None:
    """Refuse a number of rows or a seed that is none, and a sample that no memory would hold."""
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 0:
        raise InputError(f"rows must be a whole number >= 0, got {received(rows)}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
        raise InputError(f"seed must be a whole number >= 0, or None, got {received(seed)}")
    if rows * nodes > LARGEST_SAMPLE:
        raise TooLargeError(f"rows x nodes must be at most {LARGEST_SAMPLE:,}, got {rows:,} x {nodes}")


def sample_codes(network: BayesianNetwork, rows: int, seed: int | None = None) -> dict[str, NDArray[np.integer]]:
    """One array of state codes per node, drawn in topological order, vectorised over blocks of rows."""
    check_draw(rows, len(network.nodes), seed)
    generator = np.random.default_rng(seed)
    order = network.structure.dag.order
    tables = {node: _cumulative(network.cpt(node)) for node in order}
    codes = {node: np.empty(rows, dtype=_code_type(network.cpt(node).shape[-1])) for node in network.nodes}
    for start in range(0, rows, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, rows))
        drawn: dict[str, NDArray[np.intp]] = {}
        for node in order:
            uniform = generator.random(block.stop - block.start)
            place = _rows(network, node, drawn)
            drawn[node] = _search(tables[node], place, uniform)
            codes[node][block] = drawn[node]
    return codes


def _code_type(states: int) -> type[np.integer]:
    return np.int8 if states <= 2**7 else np.int16 if states <= 2**15 else np.int32


def _cumulative(cpt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative rows, divided by their sum, then padded to a power of two by a bound that is never passed.

    Entry k is the probability of states 0..k. The division makes the last entry, and every entry before
    trailing zeros, exactly 1: a uniform number below 1 never reaches a state of probability zero.
    """
    states = cpt.shape[-1]
    cumulative = np.cumsum(cpt.reshape(-1, states), axis=1)
    cumulative /= cumulative[:, -1:]
    padded = np.full((len(cumulative), 1 << (states - 1).bit_length()), np.inf)
    padded[:, : states - 1] = cumulative[:, : states - 1]
    return padded


def _rows(network: BayesianNetwork, node: str, drawn: dict[str, NDArray[np.intp]]) -> NDArray[np.intp] | None:
    """Each record's row in the node's CPT: its parents' codes in mixed radix; None without parents."""
    parents = network.parents(node)
    if not parents:
        return None
    place = drawn[parents[0]]
    for parent, size in zip(parents[1:], network.cpt(node).shape[1:-1], strict=True):
        place = place * size
        place += drawn[parent]
    return place


def _search(
    table: NDArray[np.float64], place: NDArray[np.intp] | None, uniform: NDArray[np.float64]
) -> NDArray[np.intp]:
    """The number of entries of each record's cumulative row at or below its uniform number, by bisection.

    Every row has the same power-of-two width, so all records take the same log2(width) steps.
    """
    if place is None:
        return np.searchsorted(table[0], uniform, side="right")
    width, flat = table.shape[1], table.reshape(-1)
    base = place * width
    found = base.copy()
    step = width >> 1
    while step:
        found += step * (uniform >= flat.take(found + (step - 1)))
        step >>= 1
    found -= base
    return found


def sample(network: BayesianNetwork, rows: int, seed: int | None = None) -> pandas.DataFrame:
    """Rows of labels as a pandas DataFrame of categoricals, columns in node order."""
    return labelled(network.structure, sample_codes(network, rows, seed))


def labelled(structure: Structure, codes: Mapping[str, NDArray[np.integer]]) -> pandas.DataFrame:
    """Codes of states as a pandas DataFrame of categoricals, columns in node order."""
    import pandas

    columns = {
        node: pandas.Categorical.from_codes(codes[node], categories=list(structure.states(node)))
        for node in structure.nodes
    }
    return pandas.DataFrame(columns, copy=False)
