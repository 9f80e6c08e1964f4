"""Decimals of 100 digits, with exp, ln and roots rounded correctly, and how far results then move to be safe."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context
from fractions import Fraction

PRECISE = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)
MARGIN = Fraction(1, 10**40)  # of a result, to the private side: far more than any error carried
