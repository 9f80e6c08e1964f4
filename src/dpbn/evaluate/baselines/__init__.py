"""The systems the paper names, and today's best, each behind one call: counts, epsilon, seed -> CPTs.

One file each; its docstring says what it outputs, under what guarantee, at what sensitivity, from which paper.
Neighbours add or remove one record throughout. A size a baseline cannot do raises TooLargeError with the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from dpbn.evaluate.baselines.common import Method
from dpbn.evaluate.baselines.datacube import learn_datacube
from dpbn.evaluate.baselines.fourier import learn_fourier
from dpbn.evaluate.baselines.hdmm import learn_hdmm
from dpbn.evaluate.baselines.mwem import learn_mwem
from dpbn.evaluate.baselines.opendp_fixed import learn_opendp
from dpbn.evaluate.baselines.private_pgm import learn_private_pgm
from dpbn.evaluate.baselines.private_pgm_tables import learn_private_pgm_tables
from dpbn.evaluate.baselines.privbayes import learn_privbayes
from dpbn.evaluate.baselines.priview import learn_priview

BASELINES: Mapping[str, Method] = {
    "fourier": Method("Fourier-domain Laplace (Zhang 2016)", learn_fourier),
    "privbayes": Method("PrivBayes, structure given", learn_privbayes),
    "priview": Method("PriView, pairwise views", learn_priview),
    "mwem": Method("MWEM", learn_mwem),
    "hdmm": Method("HDMM, marginal strategies", learn_hdmm),
    "datacube": Method("Ding et al.'s data cubes", learn_datacube),
    "private-pgm": Method("Private-PGM (mbi), all families", learn_private_pgm),
    "private-pgm-tables": Method("Private-PGM (mbi), dpbn's tables", learn_private_pgm_tables),
    "opendp": Method("OpenDP, prespecified marginals", learn_opendp),
}


def description(name: str) -> dict[str, str]:
    """What a baseline's file says: `what`, and the fields Output, Guarantee, Sensitivity, Source, as running text."""
    text = sys.modules[BASELINES[name].learn.__module__].__doc__ or ""
    what, *parts = re.split(r"^(Output|Guarantee|Sensitivity|Source): ", text, flags=re.MULTILINE)
    fields = {"what": what, **dict(zip(parts[::2], parts[1::2], strict=True))}
    return {field: " ".join(its.split()) for field, its in fields.items()}
