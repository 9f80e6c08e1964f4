"""Exact inference in float64 numpy: plan, then execute."""

from dpbn.inference.answer import Answer, Comparison
from dpbn.inference.networks import BatchInference
from dpbn.inference.plan import Plan
from dpbn.inference.queries import Inference

__all__ = [
    "Answer",
    "BatchInference",
    "Comparison",
    "Inference",
    "Plan",
]
