"""Composition: from the losses of the measurements made to one (epsilon, delta), rounded up.

Pure epsilon-DP adds up. Discrete Gaussian noise adds up in rho and is converted at the end (`gaussian`). Poisson
sampling at rate b turns epsilon into ln(1 + b (e^epsilon - 1)).

Rounding. Floats are exact rationals, so sums are made in `Fraction` and rounded once, to the private side.
exp and ln are taken by `decimal`, which rounds them correctly at the context's 100 digits. Epsilons in
[1e-20, 1e6] and sampling rates above 1e-10 lose at most 30 digits by cancellation, so results carry a relative
error below 1e-60. They are moved by 1e-40 to the private side before the last rounding, which is again directed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from dpbn.errors import PrivacyError
from dpbn.privacy import opendp_bridge as bridge
from dpbn.privacy.noise import LARGEST_SCALE, SMALLEST_SCALE, check_scale
from dpbn.privacy.precise import MARGIN, PRECISE


def round_up(value: Fraction) -> float:
    """The smallest float not below `value`."""
    try:
        nearest = float(value)  # correctly rounded, so at most one step off
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """The largest float not above `value`."""
    return -round_up(-value)


def add_up(losses: Iterable[float]) -> float:
    """Sum rounded towards more loss: the smallest float not below the exact sum of the floats given."""
    return round_up(sum((Fraction(loss) for loss in losses), Fraction(0)))


def split(total: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Shares of `total` in proportion to `weights`, each rounded down: add_up(shares) <= total.

    The exact sum of the shares is at most `total`, which is a float, so rounding that sum up to a float
    stays at or below it. At most one unit in the last place is lost per share.
    """
    check_loss("a total", total)
    if not weights or not all(math.isfinite(w) and w > 0 for w in weights):
        raise PrivacyError(f"weights must be one or more finite numbers above 0, got {tuple(weights)!r}")
    exact = [Fraction(weight) for weight in weights]
    whole = sum(exact, Fraction(0))
    shares = tuple(round_down(Fraction(total) * weight / whole) for weight in exact)
    if min(shares) <= 0:
        raise PrivacyError(f"every share of {total} must be above 0, got weights {tuple(weights)!r}")
    return shares


def laplace_scale(epsilon: float, l1_sensitivity: int) -> float:
    """The smallest scale whose own privacy map charges at most `epsilon`."""
    check_loss("epsilon", epsilon)
    scale = _scale("epsilon", epsilon, l1_sensitivity / epsilon)
    return _smallest(scale, lambda s: bridge.laplace_epsilon(s, l1_sensitivity) <= epsilon)


def gaussian_scale(rho: float, l2_sensitivity_squared: int) -> float:
    """The smallest discrete Gaussian scale whose own privacy map charges at most `rho`."""
    check_loss("rho", rho)
    scale = _scale("rho", rho, math.sqrt(l2_sensitivity_squared / (2 * rho)))
    return _smallest(scale, lambda s: gaussian_rho(s, l2_sensitivity_squared) <= rho)


def _scale(subject: str, loss: float, scale: float) -> float:
    if scale > LARGEST_SCALE:
        raise PrivacyError(f"{subject} of a table must leave noise that fits 64 bits, got {loss:.3g}: too little")
    return check_scale(max(SMALLEST_SCALE, scale))


def _smallest(scale: float, enough: Callable[[float], bool]) -> float:
    """Step by single floats to the smallest scale that satisfies `enough` (monotone)."""
    while not enough(scale):
        scale = math.nextafter(scale, math.inf)
    while (below := math.nextafter(scale, 0.0)) >= SMALLEST_SCALE and enough(below):
        scale = below
    if scale > LARGEST_SCALE:
        raise PrivacyError(f"a noise scale must be at most 2^50, got {scale}")
    return scale


def amplified(epsilon: float, rate: Fraction) -> float:
    """Loss of an epsilon-DP mechanism on a Poisson sample: ln(1 + rate (e^epsilon - 1)), rounded up."""
    rate = check_sampling(epsilon, rate)
    return min(epsilon, _log1p_expm1(epsilon, rate, 1)) if rate < 1 else epsilon


def before_sampling(epsilon: float, rate: Fraction) -> float:
    """The inverse, ln(1 + (e^epsilon - 1) / rate), rounded down (Algorithm 1, line 2).

    amplified(x, rate) <= epsilon for every x up to the result: x is at most the exact inverse lowered by a
    factor 1 - 1e-40, the exact map of that is below epsilon by more than amplified() adds, and epsilon is a float.
    """
    rate = check_sampling(epsilon, rate)
    if rate == 1:
        return epsilon
    result = _log1p_expm1(epsilon, 1 / rate, -1)
    while amplified(result, rate) > epsilon:
        result = math.nextafter(result, 0.0)
    return result


def _log1p_expm1(epsilon: float, ratio: Fraction, side: int) -> float:
    """ln(1 + ratio (e^epsilon - 1)), rounded up (side 1) or down (side -1)."""
    context = PRECISE
    factor = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    grown = context.subtract(context.exp(Decimal(epsilon)), Decimal(1))
    value = Fraction(context.ln(context.add(Decimal(1), context.multiply(factor, grown))))
    return round_up(value * (1 + MARGIN)) if side > 0 else round_down(value * (1 - MARGIN))


def gaussian_rho(scale: float, l2_sensitivity_squared: int) -> float:
    """zCDP loss of discrete Gaussian noise of `scale`, as OpenDP's map charges it."""
    root = math.isqrt(l2_sensitivity_squared)
    exact = root * root == l2_sensitivity_squared
    return bridge.gaussian_rho(
        scale, float(root) if exact else math.nextafter(math.sqrt(l2_sensitivity_squared), math.inf)
    )


def check_loss(subject: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise PrivacyError(f"{subject} must be finite and above 0, got {value!r}")


def check_sampling(epsilon: float, rate: Fraction) -> Fraction:
    if not 1e-20 <= epsilon <= 1e6:
        raise PrivacyError(f"epsilon must be in [1e-20, 1e6] to account for sampling, got {epsilon!r}")
    exact = Fraction(rate)
    if not Fraction(1, 10**10) <= exact <= 1:
        raise PrivacyError(f"a sampling rate must be in [1e-10, 1] to be accounted for, got {rate!r}")
    return exact
