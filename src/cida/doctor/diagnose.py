"""What went wrong in a training, and what to change: rules on its events and its summary."""

from __future__ import annotations

from collections.abc import Sequence

from cida.doctor.data_rules import diagnose_index, diagnose_label_shift, diagnose_row_counts
from cida.doctor.diagnosis import Diagnosis, SkippedCheck
from cida.doctor.fit_summary import FitSummary
from cida.doctor.game_rules import GAME_RULES, diagnose_far_predictions
from cida.doctor.thresholds import THRESHOLDS
from cida.doctor.training_curve import TrainingCurve
from cida.training import Event

__all__ = ["diagnose", "final_metrics", "skipped_checks"]

# Where one of these was found, it explains what is predicted far from the source.
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
    if not summary.has_index or summary.steps < THRESHOLDS.min_steps:
        return []
    diagnoses = [*diagnose_index(summary), *diagnose_row_counts(summary)]
    if diagnoses:
        return diagnoses
    diagnoses += diagnose_label_shift(summary)
    curve = TrainingCurve(history)
    if curve.n_probes >= THRESHOLDS.min_health_probes:
        diagnoses += list(filter(None, (rule(curve, summary) for rule in GAME_RULES)))[:1]
    if not any(each.code in _CODES_EXPLAINING_PREDICTIONS for each in diagnoses):
        diagnoses += filter(None, [diagnose_far_predictions(summary)])
    return diagnoses


def skipped_checks(history: Sequence[Event], summary: FitSummary) -> list[SkippedCheck]:
    """The groups of rules that could not be applied to this run."""
    if not summary.has_index:
        return [SkippedCheck("no-index", {})]
    if summary.steps < THRESHOLDS.min_steps:
        step_counts = {"steps": float(summary.steps), "min_steps": float(THRESHOLDS.min_steps)}
        return [SkippedCheck("too-few-steps", step_counts)]
    checks = []
    n_probes = TrainingCurve(history).n_probes
    if n_probes < THRESHOLDS.min_health_probes:
        checks.append(SkippedCheck("too-few-probes", {"n_probes": n_probes}))
    if not summary.is_complete:
        checks.append(SkippedCheck("unknown-rows", {}))
    return checks


def final_metrics(history: Sequence[Event], summary: FitSummary) -> dict[str, float]:
    """The main figures of the end of a run, as far as they are known.

    ``index_share_read`` is the share of u that the adversary reads in z,
    ``adversarial_gradient_share`` its share of the gradient in z, ``remaining_loss_share`` the
    prediction loss as a share of that of the best constant prediction.
    """
    curve = TrainingCurve(history)
    loss, marginal_loss = curve.prediction_loss(), summary.marginal_label_loss
    metrics = {
        "index_share_read": curve.index_share_read(0.8),
        "adversarial_gradient_share": curve.adversarial_gradient_share(),
        "prediction_loss": loss,
        "remaining_loss_share": loss / marginal_loss if loss and marginal_loss else None,
        "encoding_std": summary.encoding_std,
        "majority_share_source": summary.majority_share_source,
        "majority_share_far": summary.majority_share_far,
    }
    return {name: value for name, value in metrics.items() if value is not None}
