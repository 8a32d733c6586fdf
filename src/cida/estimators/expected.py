"""The accuracy that a fitted classifier can be expected to have along u."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from cida.batch import Rows
from cida.diagnostics import Expected, Field, calibrate, expected_along, outermost
from cida.estimators import inputs
from cida.estimators.inputs import CidaWarning, outside
from cida.estimators.restarts import candidate_of

if TYPE_CHECKING:
    from cida.estimators.classifier import CIDAClassifier

__all__ = ["expected_accuracy", "expected_of_rows"]


def expected_accuracy(
    model: CIDAClassifier, X: Any, y: Any, domain_index: Any, source: Any, bins: int
) -> list[Expected]:
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
    known = {label: code for code, label in enumerate(model.classes_.tolist())}
    codes[torch.from_numpy(labels.labelled)] = torch.tensor(
        [known[label] for label in labels.known.tolist()]
    )
    u = inputs.check_index(domain_index, len(x), model.index_width_)
    rows = Rows(model._scaling.apply(x), codes, u, torch.from_numpy(labels.labelled))
    found = expected_of_rows(model, rows, bins)
    beyond = [each for each in found if not each.checked]
    if beyond:
        warnings.warn(
            f"{len(beyond)} of {len(found)} cells along domain_index lie farther from the source "
            "than any range that could be left out to check the estimate (checked is False there); "
            "take what is expected there for a guess.",
            CidaWarning,
            stacklevel=outside(),
        )
    return found


def expected_of_rows(model: CIDAClassifier, rows: Rows, bins: int) -> list[Expected]:
    """The expected accuracy in cells along u, checked by a second training.

    The twin is fitted with the same settings and without the labels of the outermost source
    range, where its estimate is then compared with the truth. ``rows`` are those of `fit_rows`.
    """
    hidden = outermost(model.space_, rows.u, rows.labelled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)  # said when the model itself was fitted
        twin = clone(model).set_params(space=model.space_, standardise=False, restarts=1)
        twin.set_params(index_in_encoder=model.choices_.index_mode, steps=model.n_steps_)
        twin.set_params(verbose=False, callbacks=None)
        twin.fit_rows(rows.hiding(hidden))
    asked = Field.of(model.space_, rows.hiding(hidden))
    known = hidden[asked.row]
    calibration = calibrate(
        asked,
        candidate_of(twin, asked, twin.game_, []),
        known.nonzero()[:, 0].numpy(),
        rows.y[asked.row[known]].numpy(),
    )
    field = Field.of(model.space_, rows)
    candidate = candidate_of(model, field, model.game_, [])
    return expected_along(field, candidate, calibration, bins)
