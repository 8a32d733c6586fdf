"""How far a fitted model can be trusted: the alignment certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from cida.diagnostics import Certificate, certify
from cida.estimators import inputs

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["alignment_report"]


def alignment_report(model: CIDAEstimator, X: Any, domain_index: Any) -> Certificate:
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
    u = inputs.check_index(domain_index, len(z), model.index_width_)
    predicted = model.predict(X, domain_index=domain_index)
    names = model._index_names
    return certify(model.space_, z, u, predicted, index_names=names)
