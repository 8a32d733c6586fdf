"""How labels lie along the index: weights for those near the target, and a word of warning."""

from __future__ import annotations

import warnings

from cida.data import IndexedDataset
from cida.estimators.inputs import CidaWarning, caller_stacklevel
from cida.indexing import subsample
from cida.label_shift import measure_source_label_shift
from cida.spaces import Space
from cida.training import proximity_weights

__all__ = ["warn_label_shift", "weight_by_proximity"]


def weight_by_proximity(space: Space, dataset: IndexedDataset, share: float) -> IndexedDataset:
    """The rows, source rows weighted by how near to the target they are (`near_weights`)."""
    target_index = dataset.u[subsample(dataset.target_rows)]
    distance = space.distance_to_set(dataset.source_index, target_index)
    weight = dataset.weight.clone()
    weight[dataset.source_rows] *= proximity_weights(distance, share).float()
    return dataset.with_weights(weight)


def warn_label_shift(space: Space, dataset: IndexedDataset) -> None:
    """Warns where the balance of source labels moves along u: invariance may hurt there."""
    shift = measure_source_label_shift(space, dataset)
    if shift is not None and shift.is_suspected:
        warnings.warn(
            f"y itself seems to depend on domain_index ({shift.summary()}): an encoding that hides "
            "the index may hide y with it, and be worse than no adaptation; compare with "
            "discriminator=None, or use game='conditional' with coordinates='raw'.",
            CidaWarning,
            stacklevel=caller_stacklevel(),
        )
