"""The systems the paper names, and today's best, each behind one call: counts, epsilon, seed -> CPTs.

One file each; its docstring says what it outputs, under what guarantee, at what sensitivity, from which paper.
Neighbours add or remove one record throughout. A size a baseline cannot do raises TooLargeError with the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from dpbn.evaluate.baselines.common import Learner
from dpbn.evaluate.baselines.datacube import learn_datacube
from dpbn.evaluate.baselines.fourier import learn_fourier
from dpbn.evaluate.baselines.hdmm import learn_hdmm
from dpbn.evaluate.baselines.mwem import learn_mwem
from dpbn.evaluate.baselines.opendp_fixed import learn_opendp
from dpbn.evaluate.baselines.private_pgm import learn_private_pgm
from dpbn.evaluate.baselines.private_pgm_tables import learn_private_pgm_tables
from dpbn.evaluate.baselines.privbayes import learn_privbayes
from dpbn.evaluate.baselines.priview import learn_priview


@dataclass(frozen=True)
class Baseline:
    title: str
    learn: Learner
    guarantee: str

    @property
    def description(self) -> dict[str, str]:
        """What its file says: `what`, and the fields Output, Guarantee, Sensitivity, Source, as running text."""
        text = sys.modules[self.learn.__module__].__doc__ or ""
        parts = re.split(r"^(Output|Guarantee|Sensitivity|Source): ", text, flags=re.MULTILINE)
        fields = dict(zip(parts[1::2], parts[2::2], strict=True))
        return {"what": _running(parts[0]), **{name: _running(field) for name, field in fields.items()}}


def _running(text: str) -> str:
    return " ".join(text.split())


BASELINES: Mapping[str, Baseline] = {
    "fourier": Baseline("Fourier-domain Laplace (Zhang 2016)", learn_fourier, "ε-DP"),
    "privbayes": Baseline("PrivBayes, structure given", learn_privbayes, "ε-DP"),
    "priview": Baseline("PriView, pairwise views", learn_priview, "ε-DP"),
    "mwem": Baseline("MWEM", learn_mwem, "ε-DP"),
    "hdmm": Baseline("HDMM, marginal strategies", learn_hdmm, "ε-DP"),
    "datacube": Baseline("Ding et al.'s data cubes", learn_datacube, "ε-DP"),
    "private-pgm": Baseline("Private-PGM (mbi), all families", learn_private_pgm, "ε-DP"),
    "private-pgm-tables": Baseline("Private-PGM (mbi), dpbn's tables", learn_private_pgm_tables, "ε-DP"),
    "opendp": Baseline("OpenDP, prespecified marginals", learn_opendp, "ε-DP"),
}
