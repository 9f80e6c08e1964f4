"""Differentially private Bayesian networks: learn, release, ask.

Names load on first use, so that `import dpbn` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpbn.domain import Schema, Variable
    from dpbn.formats import load_network, load_structure, write_network
    from dpbn.graph import Dag, Family
    from dpbn.inference import Inference
    from dpbn.learning import check, learn
    from dpbn.network import BayesianNetwork, Structure
    from dpbn.privacy.ledger import Ledger
    from dpbn.privacy.noise import InsecureNoise, SecureNoise
    from dpbn.release import Release, load_release
    from dpbn.uncertainty.forecast import plan

from dpbn.version import __version__

# The public surface: name -> module. tests/test_surface.py pins it.
_HOME = {
    "BayesianNetwork": "dpbn.network",
    "Dag": "dpbn.graph",
    "Family": "dpbn.graph",
    "Inference": "dpbn.inference",
    "InsecureNoise": "dpbn.privacy.noise",
    "Ledger": "dpbn.privacy.ledger",
    "Release": "dpbn.release",
    "Schema": "dpbn.domain",
    "SecureNoise": "dpbn.privacy.noise",
    "Structure": "dpbn.network",
    "Variable": "dpbn.domain",
    "check": "dpbn.learning",
    "learn": "dpbn.learning",
    "load_network": "dpbn.formats",
    "load_release": "dpbn.release",
    "plan": "dpbn.uncertainty.forecast",
    "load_structure": "dpbn.formats",
    "write_network": "dpbn.formats",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpbn' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "BayesianNetwork",
    "Dag",
    "Family",
    "Inference",
    "InsecureNoise",
    "Ledger",
    "Release",
    "Schema",
    "SecureNoise",
    "Structure",
    "Variable",
    "__version__",
    "check",
    "learn",
    "load_network",
    "load_release",
    "plan",
    "load_structure",
    "write_network",
]
