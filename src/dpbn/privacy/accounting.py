"""Composition: from the losses of the measurements made to one (epsilon, delta), rounded up.

Pure epsilon-DP adds up. zCDP adds up in rho and is converted at the end (Bun & Steinke 2016; tight
conversion through OpenDP's privacy profile). Poisson sampling at rate b turns epsilon into
ln(1 + b (e^epsilon - 1)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dpbn.privacy import opendp_bridge as bridge


def add_up(losses: Iterable[float]) -> float:
    """Sum rounded towards more loss: never below the exact sum of the floats given."""
    losses = list(losses)
    total = math.fsum(losses)  # correctly rounded
    return total if not losses or len(losses) == 1 else math.nextafter(total, math.inf)


def laplace_scale(epsilon: float, l1_sensitivity: int) -> float:
    """The smallest scale whose own privacy map charges at most `epsilon`."""
    scale = l1_sensitivity / epsilon
    while bridge.laplace_epsilon(scale, l1_sensitivity) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


def amplified(epsilon: float, rate: float) -> float:
    """Loss of an epsilon-DP mechanism on a Poisson sample of rate `rate` (rounded up)."""
    if rate >= 1:
        return epsilon
    return math.log1p(rate * math.expm1(epsilon)) * (1 + 4e-15)


def before_sampling(epsilon: float, rate: float) -> float:
    """The inverse: ln((e^epsilon - 1) / rate + 1), rounded down (Algorithm 1, line 2)."""
    if rate >= 1:
        return epsilon
    return math.log1p(math.expm1(epsilon) / rate) * (1 - 8e-15)


def gaussian_rho(scale: float, l2_sensitivity_squared: int) -> float:
    """zCDP loss of discrete Gaussian noise of `scale`, as OpenDP's map charges it."""
    return bridge.gaussian_rho(scale, math.nextafter(math.sqrt(l2_sensitivity_squared), math.inf))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest epsilon known at which rho-zCDP implies (epsilon, delta)-DP (tight conversion)."""
    return bridge.zcdp_epsilon(rho, delta)
