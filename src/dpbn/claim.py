"""Whether a release claims what it must: the total is computed again from its own measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dpbn.errors import FormatError, PrivacyError
from dpbn.learners.coarse import as_told
from dpbn.learners.strategy import holders_of
from dpbn.matching import POLICIES
from dpbn.measurement import AT_ONCE, Looked, Measurement, check_draws, joint_groups, total_loss
from dpbn.privacy import blocks, joint
from dpbn.privacy.guarantee import Sensitivity
from dpbn.privacy.noise import check_scale
from dpbn.statement import METHODS

if TYPE_CHECKING:
    from dpbn.release import Release


def check_claim(release: Release) -> None:
    """Refuse a file whose guarantee claims less than its own measurements cost, or that claims in words of its own."""
    guarantee = release.guarantee
    if release.method not in METHODS:
        raise FormatError(f"method of a release must be one of {sorted(METHODS)}, got {release.method!r:.80}")
    policies = [*POLICIES, *sorted({variable.catch_all for variable in release.structure.schema if variable.catch_all})]
    if release.on_unknown not in policies:
        raise FormatError(f"on_unknown of a release must be one of {policies!r:.400}, got {release.on_unknown!r:.80}")
    try:
        sensitivity = Sensitivity(guarantee.neighbors, guarantee.max_contributions)
        for m in release.measurements:
            _check_loss(m, sensitivity)
        for looked in release.looks:
            _check_look(looked, sensitivity)
        _check_joint(release.measurements)
        _check_at_once(release.measurements, sensitivity)
        spent = total_loss(release.measurements, guarantee.delta, looks=release.looks, proved=True)
    except PrivacyError as error:
        raise FormatError(f"measurements of a release must be ones that can be accounted for: {error}") from None
    if not spent <= guarantee.epsilon:
        raise FormatError(
            f"a release must claim what its measurements cost, epsilon {spent}, got a claim of {guarantee.epsilon}"
        )
    if release.method != "icml2020" and any(m.sampling is not None for m in release.measurements):
        raise FormatError(f"sampling must be credited to icml2020 only, got method {release.method!r}")
    special = release.looks or any(m.ladder or m.together for m in release.measurements)
    if release.method != "optimized" and special:
        raise FormatError(f"looks, gradual release and joint noise must be of method optimized, got {release.method!r}")
    if release.private:
        _check_private(release)


def _check_loss(m: Measurement, sensitivity: Sensitivity) -> None:
    scale = Fraction(check_scale(m.scale))
    check_draws(m.mechanism, m.scale, m.draws)
    cost = sensitivity.l1 / scale if m.mechanism != "gaussian" else sensitivity.l2_squared / (2 * scale**2)
    if Fraction(m.loss) < cost:  # exact: the privacy maps of OpenDP round up
        raise FormatError(f"loss of the measurement of {m.names} must be what scale {m.scale} costs, got {m.loss}")
    if m.sampling is not None and sensitivity.l1 != 1:
        raise FormatError("sampling must not be credited unless neighbours differ by one row, got more")


def _check_look(looked: Looked, sensitivity: Sensitivity) -> None:
    look = looked.look
    if Fraction(looked.loss) < len(look.tables) * sensitivity.max_contributions / Fraction(look.scale):
        raise FormatError(f"loss of a look must be what scale {look.scale} costs, got {looked.loss}")


def _check_joint(measurements: Sequence[Measurement]) -> None:
    """Tables said to have joint noise must have equal totals: noise drawn apart would cost more, and shows."""
    for found in joint_groups(measurements):
        folded = blocks.fold([m.values for m in found], [m.names for m in found])
        blocks.check_totals(folded)
        joint.check_joint([table.shape[1] for table in folded], found[0].scale, len(folded[0]))


def _check_at_once(measurements: Sequence[Measurement], sensitivity: Sensitivity) -> None:
    """What tables cost with delta is proved for tables asked for at once, and summed noise for single records."""
    stages = {m.stage for m in measurements if m.mechanism in AT_ONCE}
    if len(stages) > 1:
        raise FormatError(f"Gaussian or summed measurements of a release must be of one stage, got {sorted(stages)}")
    if sensitivity.max_contributions > 1 and any(m.mechanism == "summed" for m in measurements):
        raise FormatError(f"summed noise must protect one record of a person, got {sensitivity.max_contributions}")


def _check_private(release: Release) -> None:
    """A private release has a claim, and noisy counts of all records behind every CPT that is not public."""
    if release.method == "exact" or not math.isfinite(release.guarantee.epsilon) or release.guarantee.delta >= 1:
        raise FormatError(
            "a private release must have noise, a finite epsilon and a delta below 1, got others: the file was edited"
        )
    measured = holders_of({m.names: m.names for m in release.measurements if m.sampling is None})
    public = set(release.public_nodes)
    learned = [node for node in release.structure.nodes if node not in public]
    told = as_told(release.structure, [m.names for m in release.measurements if m.sampling is None], learned)
    for node in learned:
        if node not in measured:
            raise FormatError(f"a private release must hold the measurement behind the CPT of {node!r}, got none")
        for axis, name in enumerate(release.structure.parents(node)):
            if name not in told.parents(node) and np.ptp(release.network.cpt(node), axis=axis).any():
                raise FormatError(
                    f"the CPT of {node!r} in a private release must be the same for all states of {name!r}, since no "
                    "measurement tells them apart, got differences"
                )
