"""Problems of the game, each recognized by its own signs; rules are tried from cause to effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

Rule = Callable[[TrainingCurve, FitSummary], Iterator[Diagnosis]]


# --- signs that several rules read ---------------------------------------------------------------


def _adversary_reads_index(curve: TrainingCurve, summary: FitSummary) -> bool:
    """Whether the adversary's loss measures what z tells of u; a domain classifier's does not."""
    if summary.is_conditional or not summary.is_adaptive:
        return False
    return summary.uses_head or not any(event.ceilings for event in curve.events)


def _final_index_share_read(curve: TrainingCurve, summary: FitSummary) -> float | None:
    """The share of u that is read in z in the last fifth of the run, where it is too much."""
    share = curve.index_share_read(0.8) if _adversary_reads_index(curve, summary) else None
    return share if share is not None and share >= THRESHOLDS.max_index_share_read else None


def _remaining_loss_share(curve: TrainingCurve, summary: FitSummary) -> float | None:
    """The remaining share of the marginal loss, where it is too much and neighbors do better."""
    last = curve.prediction_loss()
    if last is None or summary.knn_loss is None or not summary.marginal_label_loss:
        return None
    remaining_share = last / summary.marginal_label_loss
    learnable_share = remaining_share - summary.knn_loss / summary.marginal_label_loss
    is_unlearned = (
        remaining_share >= THRESHOLDS.max_remaining_loss_share
        and learnable_share >= THRESHOLDS.min_learnable_share
    )
    return remaining_share if is_unlearned else None


def _memorized_share(curve: TrainingCurve) -> float:
    """What D gains on the rows of a round, as a share of all that its loss is below the ceiling."""
    shares = []
    for event in curve.events_between(0.2, 1.0):
        for name, ceiling in event.ceilings.items():
            gap = ceiling - event.losses.get(name, ceiling)
            if "discriminator_gain" in event.health and gap > THRESHOLDS.max_loss_above_ceiling:
                shares.append(event.health["discriminator_gain"] / gap)
    return median(shares) if shares else 0.0


def _has_constant_encoding(summary: FitSummary) -> bool:
    """Whether all rows have nearly the same encoding."""
    if summary.encoding_std is None or summary.encoding_rms is None:
        return False
    return summary.encoding_std <= THRESHOLDS.min_relative_encoding_std * summary.encoding_rms


def _gradient_evidence(curve: TrainingCurve) -> dict[str, float]:
    share = curve.adversarial_gradient_share()
    return {} if share is None else {"adversarial_gradient_share": share}


# --- suggestions ---------------------------------------------------------------------------------


def _suggest_more_steps(summary: FitSummary) -> Suggestion:
    return Suggestion("steps", summary.steps, max(DEFAULT_STEPS, 3 * summary.steps))


def _suggest_learning_rate(summary: FitSummary, proposed: float) -> Suggestion:
    return Suggestion("learning_rate", summary.learning_rate, proposed)


def _suggest_more_discriminator_steps(summary: FitSummary) -> Suggestion:
    steps = summary.discriminator_steps
    proposed = max(2 * steps, 2 * DEFAULT_DISCRIMINATOR_STEPS)
    return Suggestion("discriminator_steps", steps, proposed)


# --- the rules -----------------------------------------------------------------------------------


def _diagnose_lagging_discriminator(
    curve: TrainingCurve, summary: FitSummary
) -> Iterator[Diagnosis]:
    if not _adversary_reads_index(curve, summary):
        return
    share_above = curve.share_above_ceiling(THRESHOLDS.max_loss_above_ceiling)
    is_harmful = (
        summary.index_r2 is None
        or summary.index_r2 >= THRESHOLDS.max_index_r2
        or _remaining_loss_share(curve, summary) is not None
    )
    if share_above >= THRESHOLDS.max_share_above_ceiling and is_harmful:
        yield Diagnosis(
            "discriminator-lagging",
            {"share_above_ceiling": share_above},
            _suggest_more_discriminator_steps(summary)
            if summary.ceiling
            else Suggestion("ceiling", False, True),
        )
        return
    max_share_read, overlooked_r2 = (
        curve.max_index_share_read(),
        _overlooked_index_r2(curve, summary),
    )
    if max_share_read is not None and overlooked_r2 is not None:
        yield Diagnosis(
            "discriminator-lagging",
            {"index_share_read": max_share_read, "index_r2": overlooked_r2},
            _suggest_more_discriminator_steps(summary),
        )


def _overlooked_index_r2(curve: TrainingCurve, summary: FitSummary) -> float | None:
    """What a linear probe reads of u in z and D never did.

    Either in the directions where z varies most, where no capable D would overlook it once the
    source is learned; or in any direction, where the encoder hardly ever felt an adversary.
    """
    dominant_r2, index_r2, active_share = (
        summary.dominant_index_r2,
        summary.index_r2,
        curve.active_probe_share(),
    )
    max_share_read = curve.max_index_share_read() or 0.0
    is_learned = _remaining_loss_share(curve, summary) is None
    if (
        dominant_r2 is not None
        and dominant_r2 >= THRESHOLDS.max_dominant_index_r2
        and 2 * max_share_read < dominant_r2
        and is_learned
    ):
        return dominant_r2
    is_inactive = (
        active_share is not None
        and active_share <= THRESHOLDS.min_active_probe_share
        and max_share_read < THRESHOLDS.max_index_share_read
    )
    if is_inactive and index_r2 is not None and index_r2 >= THRESHOLDS.max_index_r2:
        return index_r2
    return None


def _diagnose_large_lambda(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    remaining_share = _remaining_loss_share(curve, summary)
    if (
        remaining_share is None
        or not summary.is_adaptive
        or summary.discriminator_steps > THRESHOLDS.max_discriminator_steps
    ):
        return
    gradient_share = curve.adversarial_gradient_share()
    has_large_lambda = summary.lambda_d >= THRESHOLDS.max_lambda_ratio * summary.default_lambda
    has_large_gradient = (
        gradient_share is not None
        and gradient_share >= THRESHOLDS.max_adversarial_gradient_share
        and (has_large_lambda or not _has_constant_encoding(summary))
    )
    is_index_hidden = (curve.index_share_read(0.8) or 0.0) < THRESHOLDS.max_index_share_read
    if (has_large_gradient and is_index_hidden) or (
        has_large_lambda and (has_large_gradient or is_index_hidden)
    ):
        proposed = min(summary.default_lambda, summary.lambda_d / 10)
        yield Diagnosis(
            "lambda-too-large",
            {"remaining_loss_share": remaining_share, **_gradient_evidence(curve)},
            Suggestion("lambda_d", summary.lambda_d, proposed),
        )


def _diagnose_collapsed_encoder(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    if not _has_constant_encoding(summary):
        return
    assert summary.encoding_std is not None
    assert summary.encoding_rms is not None
    suggestion: Suggestion | None = None
    if summary.weight_decay > THRESHOLDS.max_weight_decay:
        suggestion = Suggestion("weight_decay", summary.weight_decay, 0.0)
    elif not summary.has_custom_encoder:
        proposed = min(DEFAULT_LEARNING_RATE, summary.learning_rate / 5)
        suggestion = _suggest_learning_rate(summary, proposed)
    evidence = {"encoding_std": summary.encoding_std, "encoding_rms": summary.encoding_rms}
    yield Diagnosis("encoder-collapsed", evidence, suggestion)


def _diagnose_small_lambda(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    share = _final_index_share_read(curve, summary)
    if share is None:
        return
    gradient_share = curve.adversarial_gradient_share()
    has_small_lambda = THRESHOLDS.max_lambda_ratio * summary.lambda_d <= summary.default_lambda
    has_small_gradient = (
        gradient_share is not None and gradient_share < THRESHOLDS.min_adversarial_gradient_share
    )
    if has_small_lambda or has_small_gradient:
        proposed = max(summary.default_lambda, 10 * summary.lambda_d)
        yield Diagnosis(
            "lambda-too-small",
            {"index_share_read": share, **_gradient_evidence(curve)},
            Suggestion("lambda_d", summary.lambda_d, proposed),
        )


def _diagnose_overpowering_discriminator(
    curve: TrainingCurve, summary: FitSummary
) -> Iterator[Diagnosis]:
    share, remaining_share, steps = (
        _final_index_share_read(curve, summary),
        _remaining_loss_share(curve, summary),
        summary.discriminator_steps,
    )
    has_many_steps = steps > THRESHOLDS.max_discriminator_steps
    if not summary.is_adaptive:
        return
    if not has_many_steps and _memorized_share(curve) < THRESHOLDS.max_memorized_share:
        return
    if share is not None:
        evidence = {"index_share_read": share}
    elif has_many_steps and remaining_share is not None:
        evidence = {"remaining_loss_share": remaining_share}
    else:
        return
    yield Diagnosis(
        "discriminator-overpowering",
        {**evidence, "discriminator_steps": steps},
        Suggestion("discriminator_steps", steps, DEFAULT_DISCRIMINATOR_STEPS)
        if steps > DEFAULT_DISCRIMINATOR_STEPS
        else None,
    )


def _diagnose_fast_curriculum(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    share = curve.max_index_share_read() if _adversary_reads_index(curve, summary) else None
    if summary.curriculum <= 0 or share is None or share < THRESHOLDS.max_curriculum_index_share:
        return
    yield Diagnosis(
        "curriculum-too-fast",
        {"curriculum": summary.curriculum, "steps": summary.steps, "index_share_read": share},
        Suggestion("curriculum", summary.curriculum, SLOW_CURRICULUM)
        if summary.curriculum < SLOW_CURRICULUM / 2
        else _suggest_more_steps(summary),
    )


def _diagnose_convergence(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    remaining_share, late_share, loss_decrease = (
        _remaining_loss_share(curve, summary),
        curve.late_decrease_share(),
        curve.loss_decrease(),
    )
    suggestion = _suggest_more_steps(summary)
    if summary.learning_rate < THRESHOLDS.min_learning_rate:
        suggestion = _suggest_learning_rate(summary, DEFAULT_LEARNING_RATE)
    if (
        remaining_share is not None
        and late_share is not None
        and loss_decrease is not None
        and summary.marginal_label_loss
    ):
        if remaining_share > 1 and summary.learning_rate > DEFAULT_LEARNING_RATE:
            suggestion = _suggest_learning_rate(summary, DEFAULT_LEARNING_RATE)
        min_decrease = THRESHOLDS.min_loss_decrease_share * summary.marginal_label_loss
        is_worse_than_constant = remaining_share >= 1
        is_still_falling = late_share >= THRESHOLDS.max_late_decrease_share
        if is_worse_than_constant or is_still_falling or loss_decrease <= min_decrease:
            evidence = {"remaining_loss_share": remaining_share}
            yield Diagnosis("not-converged", evidence, suggestion)
            return
    share = _final_index_share_read(curve, summary)
    has_label_shift = summary.label_shift is not None and summary.label_shift.is_suspected
    if share is not None and not has_label_shift:
        yield Diagnosis("not-converged", {"index_share_read": share}, suggestion)


GAME_RULES: tuple[Rule, ...] = (
    _diagnose_lagging_discriminator,
    _diagnose_large_lambda,
    _diagnose_collapsed_encoder,
    _diagnose_small_lambda,
    _diagnose_overpowering_discriminator,
    _diagnose_fast_curriculum,
    _diagnose_convergence,
)


# --- a symptom that any of them may cause --------------------------------------------------------


def diagnose_far_predictions(summary: FitSummary) -> Iterator[Diagnosis]:
    """One class is predicted for nearly all rows far from the source, but not in the source."""
    source_share, far_share = summary.majority_share_source, summary.majority_share_far
    if (
        source_share is None
        or far_share is None
        or far_share < THRESHOLDS.max_majority_share_far
        or source_share > THRESHOLDS.max_majority_share_source
    ):
        return
    if not summary.is_adaptive:
        suggestion = Suggestion("discriminator", None, "auto")
    elif summary.coordinates != "auto" and not summary.has_custom_encoder:
        suggestion = Suggestion("coordinates", summary.coordinates, "auto")
    elif summary.curriculum < SLOW_CURRICULUM / 2:
        suggestion = Suggestion("curriculum", summary.curriculum, SLOW_CURRICULUM)
    else:
        suggestion = _suggest_more_steps(summary)
    evidence = {"majority_share_far": far_share, "majority_share_source": source_share}
    yield Diagnosis("predictions-collapsed", evidence, suggestion)
