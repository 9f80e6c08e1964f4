"""Shares of a budget among tables whose error saturates.

What a table tells of its families goes from everything to nothing as its noise grows: the predicted error is
w c / (c + r), where w is the weight of the families, c what the noise of the whole budget would do to them, and
1/r how much more noise a share e of it means: r = e for Laplace noise, r = root(e) for Gaussian.
For small c that is w c / r, and the best shares are in proportion to the roots of w c (to their power 2/3). For
large c more budget buys next to nothing. The sum of the errors is convex in the shares, so one price of
budget, at which no table wants more or less, gives the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST = 0.2  # of its share in proportion to the roots, which every table keeps


@dataclass(frozen=True, slots=True)
class Error:
    """w c / (c + r) for one table or for many: see above."""

    weight: Array
    scale: Array
    gaussian: bool

    def at(self, share: Array) -> Array:
        return np.asarray(self.weight * self.scale / (self.scale + (np.sqrt(share) if self.gaussian else share)))

    def wanted(self, price: float) -> Array:
        """The share that minimises error + price * share."""
        product = self.weight * self.scale
        if not self.gaussian:
            return np.maximum(np.sqrt(product / price) - self.scale, 0.0)
        root = np.cbrt(product / (2.0 * price))  # solves it for c = 0, and lies above the answer: Newton falls to it
        for _ in range(20):
            whole = self.scale + root
            root = root - (2 * price * root * whole**2 - product) / (2 * price * whole * (whole + 2 * root))
        return np.square(root)

    def linear(self) -> Array:
        """Shares in proportion to the roots: the optimum if no error saturated."""
        parts = (self.weight * self.scale) ** (2 / 3 if self.gaussian else 1 / 2)
        return np.asarray(parts / parts.sum())


def best_shares(error: Error) -> tuple[Array, float]:
    """Shares that sum to 1, and the price of budget there."""
    low, high = np.log(1e-300), np.log(1e300)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if error.wanted(float(np.exp(middle))).sum() > 1 else (low, middle)
    price = float(np.exp(high))
    shares = np.maximum(error.wanted(price), LEAST * error.linear())
    return np.asarray(shares / shares.sum()), price
