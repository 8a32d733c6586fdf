"""How labels lie along the index: weights for those near the target, and a word of warning."""

from __future__ import annotations

import warnings

from cida.batch import Rows
from cida.diagnostics import label_shift
from cida.estimators.inputs import CidaWarning, outside
from cida.scratch import few, filled, parts, places
from cida.space import Space
from cida.training import near_weights

__all__ = ["nearer", "shift_words", "warn_label_shift"]

FEWEST_ROWS = 200  # below, no balance can be told from chance


def nearer(space: Space, rows: Rows, share: float) -> Rows:
    """The rows, source rows weighted by how near to the target they are (`near_weights`)."""
    sources, targets = rows.sources, places(lambda part: ~rows.labelled[part], len(rows))
    distance = space.distance_to_set(rows.known_u, rows.u[few(targets)])
    near = near_weights(distance, share)
    weight = filled(len(rows), lambda part: rows.weight[part].clone())
    for part in parts(len(sources)):
        weight[sources[part]] *= near[part].float()
    return rows.weighted(weight)


def shift_words(space: Space, rows: Rows) -> str | None:
    """How the balance of source labels moves along u; empty where it does not, None if unknown."""
    if len(rows.sources) < FEWEST_ROWS or len(rows.sources) == len(rows):
        return None
    some = few(rows.sources)
    shift = label_shift(space, rows.u[some], rows.y[some])
    if not shift.suspected:
        return ""
    if shift.label is None:
        return f"{shift.moves:.0%} of y's variance in the source lies between places along u"
    return f"the share of one class in the source goes from {shift.low:.0%} to {shift.high:.0%}"


def warn_label_shift(space: Space, rows: Rows) -> None:
    """Warns where the balance of source labels moves along u: invariance may hurt there."""
    told = shift_words(space, rows)
    if told:
        warnings.warn(
            f"y itself seems to depend on domain_index ({told}): an encoding that hides the index "
            "may hide y with it, and be worse than no adaptation; compare with "
            "discriminator=None, or use game='conditional' with index_in_encoder=False.",
            CidaWarning,
            stacklevel=outside(),
        )
