"""Differentially private Bayesian networks."""

from dpbn.domain import Schema, Variable
from dpbn.formats import load_network
from dpbn.graph import Dag, Family
from dpbn.network import BayesianNetwork, Structure

__all__ = ["BayesianNetwork", "Dag", "Family", "Schema", "Structure", "Variable", "load_network"]
__version__ = "0.1.0"
