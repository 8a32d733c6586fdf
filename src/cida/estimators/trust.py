"""How far a fitted model can be trusted: scores along the index, the alignment certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from cida.certificate.certificate import Certificate, certify
from cida.estimators import inputs
from cida.metrics import BinScore, score_by_bin

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["certify_model", "score_by_index"]


def certify_model(model: CIDAEstimator, X: Any, domain_index: Any) -> Certificate:
    """Whether the encodings of these rows still tell their index; no label is read."""
    check_is_fitted(model)
    if model.index_width_ is None:
        raise ValueError(
            "domain_index was not given to fit, so there is nothing that the encoding should be "
            "free of; fit again with domain_index."
        )
    if domain_index is None:
        raise ValueError("domain_index is missing; give the index of each row of X.")
    z = model.transform(X, domain_index=domain_index)
    u = inputs.check_domain_index(domain_index, len(z), model.index_width_)
    predicted = model.predict(X, domain_index=domain_index)
    names = model._index_names
    return certify(model.space_, z, u, predicted, index_names=names)


def score_by_index(
    model: CIDAEstimator, X: Any, y: Any, domain_index: Any, n_bins: int
) -> list[BinScore]:
    """The score of labelled rows in each of ``bins`` cells along u."""
    check_is_fitted(model)
    if model.index_width_ is None:
        raise ValueError(
            "domain_index was not given to fit, so there is no index to score along; fit again "
            "with domain_index."
        )
    if n_bins < 1:
        raise ValueError(f"bins is {n_bins}; it must be at least 1.")
    predicted = model.predict(X, domain_index=domain_index)
    labels = model._scorable_labels(y, len(predicted))
    u = inputs.check_domain_index(domain_index, len(predicted), model.index_width_)
    rows = labels.labelled
    return score_by_bin(
        model.space_, u[rows], labels.source_labels, predicted[rows], n_bins, model._bin_metric()
    )
