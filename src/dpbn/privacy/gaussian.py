"""What discrete Gaussian noise costs: from rho to one (epsilon, delta), rounded up, and back.

rho is the sum over all noisy cells of s^2 / (2 scale^2), when one record shifts counts by whole numbers s. Two proofs
give an epsilon for it, and the smaller one counts: zCDP (`zcdp_epsilon`), and a comparison with the continuous Gaussian
(`normal_epsilon`), whose delta is known exactly. The second needs all tables to be asked for at once.

The comparison. Let X be the noise of the cells that the record touches, and r = s^2 / (2 scale^2) the part of each in
rho. delta = E[(e^L - e^epsilon)+] with the log odds L = -rho + sum s X / scale^2.
1. Add to every cell an independent normal variable V of mean 0 and some variance v. Since (e^L - e^epsilon)+ is convex
   in X, its mean can only grow (Jensen's inequality).
2. X + V has at most (1 + h) times the density of a normal variable of variance scale^2 + v, where
   h = 2 (q + q^4 + q^9 + ...), q = e^(-2 pi^2 w), 1/w = 1/scale^2 + 1/v: both by Poisson's summation formula, once for
   sum exp(-(x-c)^2 / 2w) <= root(2 pi w) (1 + h), once for sum exp(-x^2 / 2 scale^2) >= root(2 pi) scale.
3. Choose w = ln(2.2 / (k r)) / (2 pi^2) with k r < 0.809: then h <= k r, and all (1 + h) together are at most
   e^(k rho). L becomes normal, with mean -rho and variance 2 rho' = 2 rho + sum s^2 v / scale^4 <= 2 rho + sum 4 r^2 v.
   As r w and so r v <= r w / (1 - 2 r w) grow with r, rho' <= rho (1 + 2 l w / (1 - 2 l w)) for the largest part l. So
   delta <= e^(k rho) (e^(rho' - rho) F(m - (epsilon + rho) / m) - e^epsilon F(-(epsilon + rho) / m)),
   with m = root(2 rho') and F the normal distribution function. Any k proves it.
All that is needed of s is that it is a whole number, so at least 1 where it is not 0. The bound grows with rho and l
(more rho multiplies e^L by at least 1 and spreads it), so both may be given too large. Floats look for k and epsilon;
decimals prove them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dpbn.errors import PrivacyError
from dpbn.privacy.accounting import add_up, check_loss, round_up
from dpbn.privacy.precise import MARGIN, PRECISE

MOST = 0.809  # of k times the largest part: below 2.2 / e, so that r ln(2.2 / (k r)) grows with r
FURTHEST = 40.0  # deviations: beyond, the normal tail is below 1e-340 and not asked for
LEAST_DELTA = 1e-40  # below, zCDP serves alone
SLACK = 1e-11  # added to what is charged: the searches may end elsewhere on another machine, by much less


def gaussian_epsilon(losses: Sequence[float], delta: float) -> float:
    """What tables with discrete Gaussian noise of these rho, asked for at once, cost at `delta`."""
    return proved_epsilon(losses, delta) * (1.0 + SLACK)


def proved_epsilon(losses: Sequence[float], delta: float) -> float:
    """The smallest epsilon that the search on this machine finds and proves."""
    rho = add_up(losses)
    return min(zcdp_epsilon(rho, delta), normal_epsilon(rho, max(losses, default=0.0), delta))


@lru_cache(maxsize=256, typed=True)
def rho_budget(epsilon: float, delta: float, largest: float = 1.0) -> float:
    """The largest rho that costs at most `epsilon` at `delta`, if no table has more than the part `largest` of it."""
    check_loss("epsilon", epsilon)
    check_delta(delta)
    order = _search(lambda a: -(epsilon - _without_rho(a, delta)) / a)
    zcdp = (epsilon - _without_rho(order, delta)) / order  # a rho + c(a) <= epsilon at the best order a
    rho = max(zcdp, _bisect(lambda r: _bound(epsilon, r, _part(largest * r, r))[0] > delta, zcdp, 4.0 * zcdp))
    part = min(1.0, largest * (1.0 + 1e-9))  # shares are rounded

    def fits(rho: float) -> bool:
        cost = min(zcdp_epsilon(rho, delta), normal_epsilon(rho, part * rho, delta))
        return cost * (1.0 + SLACK) <= epsilon

    for start in (rho, zcdp):
        for margin in range(-9, -1):  # more than the searches may differ by; decimals have the last word
            lowered = start * (1.0 - 10.0**margin)
            if lowered > 0 and fits(lowered) and fits(lowered * (1.0 - 1e-12)):
                return lowered
    raise PrivacyError(f"epsilon and delta must leave a budget for Gaussian noise, got {epsilon} and {delta}")


@lru_cache(maxsize=1024, typed=True)
def normal_epsilon(rho: float, largest: float, delta: float) -> float:
    """By comparison with the continuous Gaussian; infinite where that proves nothing better than zCDP."""
    check_delta(delta)
    if rho == 0:
        return 0.0
    check_loss("rho", rho)
    if delta < LEAST_DELTA:
        return math.inf
    largest, most = _part(largest, rho), zcdp_epsilon(rho, delta)
    found = _bisect(lambda epsilon: _bound(epsilon, rho, largest)[0] <= delta, 0.0, most)
    for margin in range(-13, -5):
        epsilon = found * (1.0 + 10.0**margin)
        if epsilon < most and _proved(epsilon, rho, largest, delta, _bound(epsilon, rho, largest)[1]):
            return epsilon
    return math.inf


def _part(largest: float, rho: float) -> float:
    """The largest part, or a thousandth of all if that is more: smaller ones gain nothing."""
    return max(largest, rho / 1000.0)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest epsilon known at which rho-zCDP implies (epsilon, delta)-DP.

    Canonne, Kamath, Steinke 2020, Proposition 12: for every order a > 1,
    epsilon = a rho + ln((a-1)/a) - (ln delta + ln a)/(a-1) is enough. Any order proves it; floats look for
    the best one, and the formula is then evaluated at that order in decimals and rounded up.
    """
    check_delta(delta)
    if rho == 0:
        return 0.0
    check_loss("rho", rho)
    order = _best_order(rho, delta)
    context, a = PRECISE, _decimal(Fraction(order))
    log_ratio = context.ln(context.divide(context.subtract(a, Decimal(1)), a))
    tail = context.divide(context.ln(context.multiply(_decimal(Fraction(delta)), a)), context.subtract(a, Decimal(1)))
    value = context.subtract(context.add(context.multiply(a, _decimal(Fraction(rho))), log_ratio), tail)
    return max(0.0, round_up(Fraction(value) + MARGIN * (1 + abs(Fraction(value)))))


def _best_order(rho: float, delta: float) -> float:
    """The order at which the conversion is smallest."""
    return _search(lambda a: a * rho + _without_rho(a, delta))


def _without_rho(order: float, delta: float) -> float:
    return math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)


def _search(bound: Callable[[float], float]) -> float:
    """The order a > 1 at which `bound` is smallest: golden section over ln(a - 1). Any answer is safe."""
    low, high, golden = -15.0, 45.0, (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(90):
        left, right = high - golden * (high - low), low + golden * (high - low)
        smaller = bound(1.0 + math.exp(left)) < bound(1.0 + math.exp(right))
        low, high = (low, right) if smaller else (left, high)
    return 1.0 + math.exp((low + high) / 2.0)


def _bound(epsilon: float, rho: float, largest: float) -> tuple[float, float]:
    """The bound of the comparison and the k that gives it, in floats; 1 where they cannot say."""
    found = (1.0, 0.0)
    if not (largest > 1e-200 and rho <= 100.0 and epsilon <= 700.0):
        return found
    for step in range(40):
        k = 0.7**step * 0.8 / largest  # any up to MOST / largest would do
        wide = largest * math.log(2.2 / (k * largest)) / math.pi**2  # 2 l w
        if wide > 0.8:
            break
        grown = rho * (1.0 + wide / (1.0 - wide))
        root = math.sqrt(2.0 * grown)
        away = (epsilon + rho) / root
        inside = math.exp(grown - rho) * _normal(root - away) - math.exp(epsilon) * _normal(-away)
        found = min(found, (math.exp(min(k * rho, 700.0)) * inside, k))
    return found


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _proved(epsilon: float, rho: float, largest: float, delta: float, k: float) -> bool:
    """The same at this k in decimals, every step moved by `MARGIN` to the private side: is it at most `delta`?"""
    e, r, part = Fraction(epsilon), Fraction(rho), Fraction(k) * Fraction(largest)
    if not 0 < part <= Fraction(MOST) or k * rho > 700.0:
        return False
    up, down = 1 + MARGIN, 1 - MARGIN
    logarithm = Fraction(PRECISE.ln(_decimal(Fraction(11, 5) / part)))
    wide = Fraction(largest) * logarithm / Fraction(_pi(100)) ** 2 * up
    if wide >= 1:
        return False
    grown = r * (1 + wide / (1 - wide))
    root = Fraction(PRECISE.sqrt(_decimal(2 * grown)))
    away = (e + r) / root
    if max(away, abs(root - away)) > FURTHEST:
        return False
    ahead = Fraction(normal(root - away + MARGIN * (1 + root + away))) * up
    behind = Fraction(normal(-away - MARGIN * (1 + away))) * down
    inside = _exp(grown - r) * up * ahead - _exp(e) * down * behind
    return _exp(Fraction(k) * r) * up * inside <= Fraction(delta)


def normal(x: Fraction) -> Decimal:
    """The normal distribution function: 1/2 + density(x) (x + x^3/3 + x^5/15 + ...), correct to 60 digits or more.

    All terms have one sign; in the left tail their sum nearly cancels 1/2, so digits are added for what it takes away.
    """
    digits = 120 + math.ceil(x * x / 4)
    with localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)) as context:
        z = _decimal(x, context)
        square = z * z
        term, total, odd, small = z, z, 1, Decimal(10) ** -digits
        while abs(term) > abs(total) * small:
            odd += 2
            term = term * square / odd
            total += term
        density = (square / -2).exp() / (2 * _pi(digits)).sqrt()
        return Decimal("0.5") + density * total


@lru_cache(maxsize=64)
def _pi(digits: int) -> Decimal:
    """Machin: pi = 16 arctan(1/5) - 4 arctan(1/239), in whole numbers with 10 spare digits."""
    one = 10 ** (digits + 10)

    def arctan_of_inverse(x: int) -> int:
        term = total = one // x
        odd, sign = 1, 1
        while term:
            term //= x * x
            odd, sign = odd + 2, -sign
            total += sign * (term // odd)
        return total

    scaled = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)
    return Decimal(scaled).scaleb(-(digits + 10), Context(prec=digits + 10))


def _exp(value: Fraction) -> Fraction:
    return Fraction(PRECISE.exp(_decimal(value)))


def _decimal(value: Fraction, context: Context = PRECISE) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _bisect(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Where `enough` (monotone, false then true) turns true between `low` and `high`; `high` if nowhere."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def check_delta(delta: float) -> None:
    if not isinstance(delta, (int, float)) or not 0 < delta < 1:
        raise PrivacyError(f"delta must be in (0, 1) for noise that needs it, got {delta!r}")
