"""What went wrong in a training, and what to change: rules on its events and its summary."""

from __future__ import annotations

from collections.abc import Sequence

from cida.doctor.data_rules import diagnose_index, diagnose_label_shift, diagnose_row_counts
from cida.doctor.diagnosis import DIAGNOSIS_CODES, Diagnosis
from cida.doctor.fit_summary import FitSummary
from cida.doctor.game_rules import GAME_RULES, diagnose_far_predictions
from cida.doctor.training_curve import TrainingCurve
from cida.training import Event

__all__ = ["DIAGNOSIS_CODES", "Diagnosis", "diagnose", "final_metrics", "skipped_checks"]

MIN_DIAGNOSIS_STEPS = 200
MIN_HEALTH_PROBES = 10  # at the game's health
# Where these are the cause, what is predicted far away says nothing more.
_CODES_EXPLAINING_PREDICTIONS = ("label-shift", "encoder-collapsed", "lambda-too-large")


def diagnose(history: Sequence[Event], summary: FitSummary) -> list[Diagnosis]:
    """Return the faults of a training, causes before consequences; none if nothing is wrong.

    Trainings of fewer than 200 steps and models without an index are not examined. A faulty index
    and too few rows are reported alone, since figures of the game mean little until they are
    corrected. Of the game's faults only the first is reported: it is the cause of the others.

    Parameters
    ----------
    history : sequence of Event
        The events of training.
    summary : FitSummary
        Settings, rows, index and final figures.

    Returns
    -------
    list of Diagnosis
        What was found.
    """
    if not summary.has_index or summary.steps < MIN_DIAGNOSIS_STEPS:
        return []
    diagnoses = [*diagnose_index(summary), *diagnose_row_counts(summary)]
    if diagnoses:
        return diagnoses
    diagnoses += diagnose_label_shift(summary)
    curve = TrainingCurve(history)
    if curve.n_probes >= MIN_HEALTH_PROBES:
        diagnoses += [found for rule in GAME_RULES for found in rule(curve, summary)][:1]
    if not any(finding.code in _CODES_EXPLAINING_PREDICTIONS for finding in diagnoses):
        diagnoses += diagnose_far_predictions(summary)
    return diagnoses


def skipped_checks(history: Sequence[Event], summary: FitSummary) -> list[str]:
    """What could not be looked at, a sentence each."""
    if not summary.has_index:
        return ["It was fitted without an index: there is no game to examine."]
    if summary.steps < MIN_DIAGNOSIS_STEPS:
        return [f"{summary.steps} steps are too few to judge; it takes {MIN_DIAGNOSIS_STEPS}."]
    sentences = []
    if TrainingCurve(history).n_probes < MIN_HEALTH_PROBES:
        sentences.append("The events have too few health figures to say how the game went.")
    if not summary.is_complete:
        sentences.append(
            "The model file says nothing of the rows: index, labels and final figures are unknown."
        )
    return sentences


def final_metrics(history: Sequence[Event], summary: FitSummary) -> dict[str, float]:
    """The main figures of the end of a run, as far as they are known.

    ``index_told`` is the share of u that the adversary reads in z, ``pull`` its share of the
    gradient in z, ``prediction_left`` the share of the blind prediction loss that is left.
    """
    curve = TrainingCurve(history)
    loss = curve.prediction_loss() if history else None
    metrics = {
        "index_told": curve.index_share_read(0.8) if history else None,
        "pull": curve.adversarial_gradient_share() if history else None,
        "prediction_loss": loss,
        "prediction_left": loss / summary.marginal_label_loss
        if loss and summary.marginal_label_loss
        else None,
        "encoding_spread": summary.encoding_std,
        "same_source": summary.majority_share_source,
        "same_far": summary.majority_share_far,
    }
    return {name: value for name, value in metrics.items() if value is not None}
