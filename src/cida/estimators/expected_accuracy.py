"""The accuracy that a fitted classifier can be expected to have along u."""

from __future__ import annotations

import warnings
from dataclasses import replace

from cida.errors import CidaWarning, warn_user
from cida.estimators.fitted_state import FittedState
from cida.estimators.fitting import FitOptions, fit_state, make_candidate
from cida.estimators.validation import TrainingData
from cida.selection import (
    ExpectedScore,
    ValidationSet,
    calibrate,
    expected_scores_by_cell,
    nearest_source_third,
)

__all__ = ["estimate_accuracy", "warn_beyond_calibration"]


def estimate_accuracy(
    state: FittedState, options: FitOptions, data: TrainingData, seed: int, n_bins: int
) -> list[ExpectedScore]:
    """The expected accuracy in cells along u, checked by a second training.

    The second training follows the same plan without the labels of the nearest source third, where
    its estimate is then compared with the truth. ``data`` are those of the fit.
    """
    space, dataset = state.plan.space, data.dataset
    hidden = nearest_source_third(space, dataset.u, dataset.labelled)
    hidden_dataset = dataset.with_hidden_labels(hidden)
    options = replace(options, n_restarts=1, n_members=1, verbose=False, callbacks=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)  # told when the model itself was fitted
        refitted = fit_state(state.plan, replace(data, dataset=hidden_dataset), options, seed)
    hidden_set = ValidationSet.from_dataset(space, hidden_dataset)
    is_hidden = hidden[hidden_set.row_indices]
    network = refitted.network(refitted.game, options.n_draws)
    calibration = calibrate(
        hidden_set,
        make_candidate(hidden_set, refitted.game, network, ()),
        is_hidden.nonzero()[:, 0].numpy(),
        dataset.y[hidden_set.row_indices[is_hidden]].numpy(),
    )
    validation_set = ValidationSet.from_dataset(space, dataset)
    network = state.network(state.game, options.n_draws)
    candidate = make_candidate(validation_set, state.game, network, ())
    return expected_scores_by_cell(validation_set, candidate, calibration, n_bins)


def warn_beyond_calibration(cells: list[ExpectedScore]) -> None:
    """Warn where u is beyond what could be checked."""
    unchecked = [each for each in cells if not each.is_within_calibration]
    if unchecked:
        warn_user(
            f"{len(unchecked)} of {len(cells)} cells along domain_index lie farther from the "
            "source than any range that could be left out to check the estimate "
            "(is_within_calibration is False there); take what is expected there for a guess."
        )
