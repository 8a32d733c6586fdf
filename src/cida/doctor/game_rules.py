"""Problems of the game, each recognized by its own signs; rules are tried from cause to effect."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from cida.doctor.diagnosis import Diagnosis, Suggestion
from cida.doctor.fit_summary import FitSummary
from cida.doctor.thresholds import THRESHOLDS
from cida.doctor.training_curve import TrainingCurve

__all__ = ["GAME_RULES", "diagnose_far_predictions"]

# Values that suggestions lead back to
DEFAULT_DISCRIMINATOR_STEPS = 2
DEFAULT_LEARNING_RATE = 5e-4
DEFAULT_STEPS = 6000
SLOW_CURRICULUM = 0.9

Rule = Callable[[TrainingCurve, FitSummary], Diagnosis | None]


def _adversary_reads_index(curve: TrainingCurve, fit: FitSummary) -> bool:
    """Whether the adversary's loss measures what z tells of u; a domain classifier's does not."""
    if fit.is_conditional or not fit.is_adaptive:
        return False
    return fit.uses_head or not any(event.ceilings for event in curve.events)


def _final_index_share_read(curve: TrainingCurve, fit: FitSummary) -> float | None:
    """The share of u that is read in z in the last fifth of the run, where it is too much."""
    share = curve.index_share_read(0.8) if _adversary_reads_index(curve, fit) else None
    return share if _is_at_least(share, THRESHOLDS.max_index_share_read) else None


def _remaining_loss_share(curve: TrainingCurve, fit: FitSummary) -> float | None:
    """The remaining share of the marginal loss, where it is too much and neighbors do better."""
    last = curve.prediction_loss()
    if last is None or fit.knn_loss is None or not fit.marginal_label_loss:
        return None
    remaining_share = last / fit.marginal_label_loss
    learnable_share = remaining_share - fit.knn_loss / fit.marginal_label_loss
    is_unlearned = remaining_share >= THRESHOLDS.max_remaining_loss_share
    is_learnable = learnable_share >= THRESHOLDS.min_learnable_share
    return remaining_share if is_unlearned and is_learnable else None


def _memorized_share(curve: TrainingCurve) -> float:
    """What D gains on the rows of a round, as a share of all that its loss is below the ceiling."""
    shares = []
    for event in curve.events_between(0.2, 1.0):
        for name, ceiling in event.ceilings.items():
            gap = ceiling - event.losses.get(name, ceiling)
            if "discriminator_gain" in event.health and gap > THRESHOLDS.max_loss_above_ceiling:
                shares.append(event.health["discriminator_gain"] / gap)
    return median(shares) if shares else 0.0


def _has_constant_encoding(fit: FitSummary) -> bool:
    """Whether all rows have nearly the same encoding."""
    if fit.encoding_std is None or fit.encoding_rms is None:
        return False
    return fit.encoding_std <= THRESHOLDS.min_relative_encoding_std * fit.encoding_rms


def _gradient_evidence(curve: TrainingCurve) -> dict[str, float]:
    share = curve.adversarial_gradient_share()
    return {} if share is None else {"adversarial_gradient_share": share}


def _is_at_least(value: float | None, limit: float) -> bool:
    return value is not None and value >= limit


def _suggest_more_steps(fit: FitSummary) -> Suggestion:
    return Suggestion("steps", fit.steps, max(DEFAULT_STEPS, 3 * fit.steps))


def _suggest_learning_rate(fit: FitSummary, proposed: float) -> Suggestion:
    return Suggestion("learning_rate", fit.learning_rate, proposed)


def _suggest_more_discriminator_steps(fit: FitSummary) -> Suggestion:
    steps = fit.discriminator_steps
    return Suggestion("discriminator_steps", steps, 2 * max(steps, DEFAULT_DISCRIMINATOR_STEPS))


def _diagnose_lagging(curve: TrainingCurve, fit: FitSummary) -> Diagnosis | None:
    if not _adversary_reads_index(curve, fit):
        return None
    share_above = curve.share_above_ceiling(THRESHOLDS.max_loss_above_ceiling)
    is_harmful = (
        fit.index_r2 is None
        or fit.index_r2 >= THRESHOLDS.max_index_r2
        or _remaining_loss_share(curve, fit) is not None
    )
    suggestion = _suggest_more_discriminator_steps(fit)
    if share_above >= THRESHOLDS.max_share_above_ceiling and is_harmful:
        if not fit.ceiling:
            suggestion = Suggestion("ceiling", False, True)
        return Diagnosis("discriminator-lagging", {"share_above_ceiling": share_above}, suggestion)
    share_read, index_r2 = curve.max_index_share_read(), _overlooked_index_r2(curve, fit)
    if share_read is None or index_r2 is None:
        return None
    evidence = {"index_share_read": share_read, "index_r2": index_r2}
    return Diagnosis("discriminator-lagging", evidence, suggestion)


def _overlooked_index_r2(curve: TrainingCurve, fit: FitSummary) -> float | None:
    """What a linear probe reads of u in z and D never did.

    Either in the directions where z varies most, where no capable D would overlook it once the
    source is learned; or in any direction, where the encoder hardly ever felt an adversary.
    """
    share_read = curve.max_index_share_read() or 0.0
    dominant_r2, active_share = fit.dominant_index_r2 or 0.0, curve.active_probe_share()
    is_dominant = dominant_r2 >= THRESHOLDS.max_dominant_index_r2 and 2 * share_read < dominant_r2
    if is_dominant and _remaining_loss_share(curve, fit) is None:
        return dominant_r2
    is_inactive = (
        active_share is not None
        and active_share <= THRESHOLDS.min_active_probe_share
        and share_read < THRESHOLDS.max_index_share_read
    )
    is_readable = _is_at_least(fit.index_r2, THRESHOLDS.max_index_r2)
    return fit.index_r2 if is_inactive and is_readable else None


def _diagnose_large_lambda(curve: TrainingCurve, fit: FitSummary) -> Diagnosis | None:
    remaining_share = _remaining_loss_share(curve, fit)
    has_many_steps = fit.discriminator_steps > THRESHOLDS.max_discriminator_steps
    if remaining_share is None or not fit.is_adaptive or has_many_steps:
        return None
    has_large_lambda = fit.lambda_d >= THRESHOLDS.max_lambda_ratio * fit.default_lambda
    has_large_gradient = _is_at_least(
        curve.adversarial_gradient_share(), THRESHOLDS.max_adversarial_gradient_share
    ) and (has_large_lambda or not _has_constant_encoding(fit))
    is_index_hidden = (curve.index_share_read(0.8) or 0.0) < THRESHOLDS.max_index_share_read
    if has_large_lambda + has_large_gradient + is_index_hidden < 2:  # two signs of the three
        return None
    proposed = min(fit.default_lambda, fit.lambda_d / 10)
    evidence = {"remaining_loss_share": remaining_share, **_gradient_evidence(curve)}
    return Diagnosis("lambda-too-large", evidence, Suggestion("lambda_d", fit.lambda_d, proposed))


def _diagnose_collapsed_encoder(curve: TrainingCurve, fit: FitSummary) -> Diagnosis | None:
    if not _has_constant_encoding(fit):
        return None
    assert fit.encoding_std is not None
    assert fit.encoding_rms is not None
    suggestion = None
    if fit.weight_decay > THRESHOLDS.max_weight_decay:
        suggestion = Suggestion("weight_decay", fit.weight_decay, 0.0)
    elif not fit.has_custom_encoder:
        proposed = min(DEFAULT_LEARNING_RATE, fit.learning_rate / 5)
        suggestion = _suggest_learning_rate(fit, proposed)
    evidence = {"encoding_std": fit.encoding_std, "encoding_rms": fit.encoding_rms}
    return Diagnosis("encoder-collapsed", evidence, suggestion)


def _diagnose_small_lambda(curve: TrainingCurve, fit: FitSummary) -> Diagnosis | None:
    share = _final_index_share_read(curve, fit)
    gradient_share = curve.adversarial_gradient_share()
    has_small_lambda = THRESHOLDS.max_lambda_ratio * fit.lambda_d <= fit.default_lambda
    has_small_gradient = (
        gradient_share is not None and gradient_share < THRESHOLDS.min_adversarial_gradient_share
    )
    if share is None or not (has_small_lambda or has_small_gradient):
        return None
    proposed = max(fit.default_lambda, 10 * fit.lambda_d)
    evidence = {"index_share_read": share, **_gradient_evidence(curve)}
    return Diagnosis("lambda-too-small", evidence, Suggestion("lambda_d", fit.lambda_d, proposed))


def _diagnose_overpowering(curve: TrainingCurve, fit: FitSummary) -> Diagnosis | None:
    steps, default_steps = fit.discriminator_steps, DEFAULT_DISCRIMINATOR_STEPS
    has_many_steps = steps > THRESHOLDS.max_discriminator_steps
    is_memorized = _memorized_share(curve) >= THRESHOLDS.max_memorized_share
    if not fit.is_adaptive or not (has_many_steps or is_memorized):
        return None
    share, remaining_share = _final_index_share_read(curve, fit), _remaining_loss_share(curve, fit)
    if share is not None:
        evidence = {"index_share_read": share}
    elif has_many_steps and remaining_share is not None:
        evidence = {"remaining_loss_share": remaining_share}
    else:
        return None
    suggestion = Suggestion("discriminator_steps", steps, default_steps)
    return Diagnosis(
        "discriminator-overpowering",
        {**evidence, "discriminator_steps": steps},
        suggestion if steps > default_steps else None,
    )


def _diagnose_fast_curriculum(curve: TrainingCurve, fit: FitSummary) -> Diagnosis | None:
    share = curve.max_index_share_read() if _adversary_reads_index(curve, fit) else None
    if fit.curriculum <= 0 or share is None or share < THRESHOLDS.max_curriculum_index_share:
        return None
    evidence = {"curriculum": fit.curriculum, "steps": fit.steps, "index_share_read": share}
    return Diagnosis("curriculum-too-fast", evidence, _suggest_slower_curriculum(fit))


def _suggest_slower_curriculum(fit: FitSummary) -> Suggestion:
    if fit.curriculum < SLOW_CURRICULUM / 2:
        return Suggestion("curriculum", fit.curriculum, SLOW_CURRICULUM)
    return _suggest_more_steps(fit)


def _diagnose_convergence(curve: TrainingCurve, fit: FitSummary) -> Diagnosis | None:
    remaining_share, decrease = _remaining_loss_share(curve, fit), curve.loss_decrease()
    suggestion = _suggest_more_steps(fit)
    if fit.learning_rate < THRESHOLDS.min_learning_rate:
        suggestion = _suggest_learning_rate(fit, DEFAULT_LEARNING_RATE)
    if remaining_share is not None and decrease is not None and fit.marginal_label_loss:
        if remaining_share > 1 and fit.learning_rate > DEFAULT_LEARNING_RATE:
            suggestion = _suggest_learning_rate(fit, DEFAULT_LEARNING_RATE)
        if (
            remaining_share >= 1  # worse than a constant prediction
            or _is_at_least(curve.late_decrease_share(), THRESHOLDS.max_late_decrease_share)
            or decrease <= THRESHOLDS.min_loss_decrease_share * fit.marginal_label_loss
        ):
            return Diagnosis("not-converged", {"remaining_loss_share": remaining_share}, suggestion)
    share = _final_index_share_read(curve, fit)
    has_label_shift = fit.label_shift is not None and fit.label_shift.is_suspected
    if share is None or has_label_shift:
        return None
    return Diagnosis("not-converged", {"index_share_read": share}, suggestion)


GAME_RULES: tuple[Rule, ...] = (
    _diagnose_lagging,
    _diagnose_large_lambda,
    _diagnose_collapsed_encoder,
    _diagnose_small_lambda,
    _diagnose_overpowering,
    _diagnose_fast_curriculum,
    _diagnose_convergence,
)


def diagnose_far_predictions(fit: FitSummary) -> Diagnosis | None:
    """One class is predicted for nearly all rows far from the source, but not in the source."""
    source_share, far_share = fit.majority_share_source, fit.majority_share_far
    if (
        source_share is None
        or far_share is None
        or far_share < THRESHOLDS.max_majority_share_far
        or source_share > THRESHOLDS.max_majority_share_source
    ):
        return None
    suggestion = _suggest_slower_curriculum(fit)
    if not fit.is_adaptive:
        suggestion = Suggestion("discriminator", None, "auto")
    elif fit.coordinates != "auto" and not fit.has_custom_encoder:
        suggestion = Suggestion("coordinates", fit.coordinates, "auto")
    evidence = {"majority_share_far": far_share, "majority_share_source": source_share}
    return Diagnosis("predictions-collapsed", evidence, suggestion)
