"""Differentially private Bayesian networks: learn, release, ask."""

from dpbn.domain import Schema, Variable
from dpbn.formats import load_network
from dpbn.graph import Dag, Family
from dpbn.learning import learn
from dpbn.network import BayesianNetwork, Structure
from dpbn.privacy.noise import InsecureNoise, SecureNoise
from dpbn.release import Release, load_release
from dpbn.version import __version__

__all__ = [
    "BayesianNetwork",
    "Dag",
    "Family",
    "InsecureNoise",
    "Release",
    "Schema",
    "SecureNoise",
    "Structure",
    "Variable",
    "__version__",
    "learn",
    "load_network",
    "load_release",
]
