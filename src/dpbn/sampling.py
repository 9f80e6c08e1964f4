"""Ancestral sampling from a network: synthetic rows, for experiments and for release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpbn.errors import InputError
from dpbn.network import BayesianNetwork

if TYPE_CHECKING:
    import pandas


def sample_codes(network: BayesianNetwork, rows: int, seed: int | None = None) -> dict[str, NDArray[np.integer]]:
    """One array of state codes per node, drawn in topological order, vectorised over rows."""
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 0:
        raise InputError(f"rows must be a whole number >= 0, got {rows!r}")
    generator = np.random.default_rng(seed)
    codes: dict[str, NDArray[np.integer]] = {}
    for node in network.structure.dag.order:
        cpt = network.cpt(node)
        cumulative = np.cumsum(cpt.reshape(-1, cpt.shape[-1]), axis=1)
        cumulative = cumulative[:, :-1] / cumulative[:, -1:]  # exactly 1 before trailing zeros: they are never drawn
        row = np.zeros(rows, dtype=np.int64)
        for parent, size in zip(network.parents(node), cpt.shape[:-1], strict=True):
            row *= size
            row += codes[parent]
        uniform = generator.random(rows)
        code: NDArray[np.integer] = np.zeros(rows, dtype=np.uint8 if cpt.shape[-1] <= 256 else np.int32)
        for column in range(cumulative.shape[1]):
            code += (uniform >= cumulative[row, column]).astype(code.dtype)
        codes[node] = code
    return codes


def sample(network: BayesianNetwork, rows: int, seed: int | None = None) -> pandas.DataFrame:
    """Rows of labels as a pandas DataFrame of categoricals, columns in node order."""
    import pandas

    codes = sample_codes(network, rows, seed)
    columns = {
        node: pandas.Categorical.from_codes(codes[node], categories=list(network.states(node)))
        for node in network.nodes
    }
    return pandas.DataFrame(columns)
