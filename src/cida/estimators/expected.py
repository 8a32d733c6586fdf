"""The accuracy that a fitted classifier can be expected to have along u."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from cida.data import IndexedDataset
from cida.estimators import inputs
from cida.estimators.inputs import CidaWarning, caller_stacklevel
from cida.estimators.restarts import make_candidate
from cida.selection.expected_score import ExpectedScore, calibrate, expected_scores_by_cell
from cida.selection.source_ranges import nearest_source_third
from cida.selection.validation_set import ValidationSet

if TYPE_CHECKING:
    from cida.estimators.classifier import CIDAClassifier

__all__ = ["estimate_dataset_score", "estimate_expected_score"]


def estimate_expected_score(
    model: CIDAClassifier, X: Any, y: Any, domain_index: Any, source: Any, n_bins: int
) -> list[ExpectedScore]:
    """`expected_of_rows` for the arguments of a fit; warns where u is beyond what was checked."""
    check_is_fitted(model)
    if model.index_width_ is None:
        raise ValueError(
            "domain_index was not given to fit, so there is no index to look along; fit again with "
            "domain_index."
        )
    x = model._read_x(X, reset=False)
    labels = model._read_labels(y, len(x), True, source)
    codes = torch.zeros(len(x), dtype=torch.long)
    code_by_label = {label: code for code, label in enumerate(model.classes_.tolist())}
    codes[torch.from_numpy(labels.labelled)] = torch.tensor(
        [code_by_label[label] for label in labels.source_labels.tolist()]
    )
    u = inputs.check_domain_index(domain_index, len(x), model.index_width_)
    dataset = IndexedDataset(
        model._scaler.transform(x), codes, u, torch.from_numpy(labels.labelled)
    )
    cells = estimate_dataset_score(model, dataset, n_bins)
    unchecked = [each for each in cells if not each.is_within_calibration]
    if unchecked:
        warnings.warn(
            f"{len(unchecked)} of {len(cells)} cells along domain_index lie farther from the "
            "source "
            "than any range that could be left out to check the estimate (checked is False there); "
            "take what is expected there for a guess.",
            CidaWarning,
            stacklevel=caller_stacklevel(),
        )
    return cells


def estimate_dataset_score(
    model: CIDAClassifier, dataset: IndexedDataset, n_bins: int
) -> list[ExpectedScore]:
    """The expected accuracy in cells along u, checked by a second training.

    The twin is fitted with the same settings and without the labels of the outermost source
    range, where its estimate is then compared with the truth. ``rows`` are those of `fit_rows`.
    """
    hidden = nearest_source_third(model.space_, dataset.u, dataset.labelled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)  # said when the model itself was fitted
        refitted = clone(model).set_params(space=model.space_, standardize=False, n_restarts=1)
        refitted.set_params(coordinates=model.plan_.coordinates, steps=model.n_steps_)
        refitted.set_params(verbose=False, callbacks=None)
        refitted.fit_dataset(dataset.with_hidden_labels(hidden))
    hidden_validation_set = ValidationSet.from_dataset(
        model.space_, dataset.with_hidden_labels(hidden)
    )
    is_hidden = hidden[hidden_validation_set.row_indices]
    calibration = calibrate(
        hidden_validation_set,
        make_candidate(refitted, hidden_validation_set, refitted.game_, []),
        is_hidden.nonzero()[:, 0].numpy(),
        dataset.y[hidden_validation_set.row_indices[is_hidden]].numpy(),
    )
    validation_set = ValidationSet.from_dataset(model.space_, dataset)
    candidate = make_candidate(model, validation_set, model.game_, [])
    return expected_scores_by_cell(validation_set, candidate, calibration, n_bins)
