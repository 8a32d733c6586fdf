"""How labels lie along the index: weights for those near the target, and a word of warning."""

from __future__ import annotations

import warnings

from cida.data import IndexedDataset
from cida.estimators.inputs import CidaWarning, caller_stacklevel
from cida.indexing import subsample
from cida.label_shift import measure_label_shift
from cida.spaces import Space
from cida.training import proximity_weights

__all__ = ["describe_label_shift", "warn_label_shift", "weight_by_proximity"]

MIN_LABEL_SHIFT_ROWS = 200  # below, no balance can be told from chance


def weight_by_proximity(space: Space, dataset: IndexedDataset, share: float) -> IndexedDataset:
    """The rows, source rows weighted by how near to the target they are (`near_weights`)."""
    target_index = dataset.u[subsample(dataset.target_rows)]
    distance = space.distance_to_set(dataset.source_index, target_index)
    weight = dataset.weight.clone()
    weight[dataset.source_rows] *= proximity_weights(distance, share).float()
    return dataset.with_weights(weight)


def describe_label_shift(space: Space, dataset: IndexedDataset) -> str | None:
    """How the balance of source labels moves along u; empty where it does not, None if unknown."""
    if len(dataset.source_rows) < MIN_LABEL_SHIFT_ROWS or len(dataset.source_rows) == len(dataset):
        return None
    sample = subsample(dataset.source_rows)
    shift = measure_label_shift(space, dataset.u[sample], dataset.y[sample])
    if not shift.is_suspected:
        return ""
    if shift.label is None:
        return f"{shift.shift:.0%} of y's variance in the source lies between places along u"
    return f"the share of one class in the source goes from {shift.low:.0%} to {shift.high:.0%}"


def warn_label_shift(space: Space, dataset: IndexedDataset) -> None:
    """Warns where the balance of source labels moves along u: invariance may hurt there."""
    description = describe_label_shift(space, dataset)
    if description:
        warnings.warn(
            f"y itself seems to depend on domain_index ({description}): an encoding that hides "
            "the index "
            "may hide y with it, and be worse than no adaptation; compare with "
            "discriminator=None, or use game='conditional' with coordinates='raw'.",
            CidaWarning,
            stacklevel=caller_stacklevel(),
        )
