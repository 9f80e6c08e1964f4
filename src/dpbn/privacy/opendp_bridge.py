"""The one module that touches OpenDP: exact integer samplers and their own privacy maps.

OpenDP reads `scale` as the exact rational value of the float, draws by exact rational arithmetic on bits of
a cryptographic generator that the system seeds, adds in big integers and clamps the sum to 64 bits.
The clamp is applied after the noise, so it is post-processing and costs no privacy.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=1)
def _opendp() -> SimpleNamespace:
    """The parts needed: `opendp.prelude` would import all of scikit-learn, where it is installed, and take seconds."""
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    cells = domains.vector_domain(domains.atom_domain(T="i64"))
    return SimpleNamespace(cells=cells, measurements=measurements, metrics=metrics)


@lru_cache(maxsize=4096)
def _laplace(scale: float) -> Any:
    opendp = _opendp()
    return opendp.measurements.make_laplace(opendp.cells, opendp.metrics.l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=4096)
def _gaussian(scale: float) -> Any:
    opendp = _opendp()
    return opendp.measurements.make_gaussian(opendp.cells, opendp.metrics.l2_distance(T="f64"), scale=scale)


def add_discrete_laplace(counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    """Every cell plus an independent discrete Laplace draw, in one call."""
    return np.array(_laplace(scale)(counts.ravel().tolist()), dtype=np.int64).reshape(counts.shape)


def add_discrete_gaussian(counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    """Every cell plus an independent discrete Gaussian draw, in one call."""
    return np.array(_gaussian(scale)(counts.ravel().tolist()), dtype=np.int64).reshape(counts.shape)


@lru_cache(maxsize=4096)
def laplace_epsilon(scale: float, l1_sensitivity: int) -> float:
    """The epsilon that OpenDP's own privacy map charges."""
    return float(_laplace(scale).map(l1_sensitivity))


@lru_cache(maxsize=4096)
def gaussian_rho(scale: float, l2_sensitivity: float) -> float:
    """The rho (zCDP) that OpenDP's own privacy map charges."""
    return float(_gaussian(scale).map(l2_sensitivity))
