"""Faults of the game, each told by its own signs; the rules are tried from cause to effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from cida.doctor.diagnosis import Diagnosis
from cida.doctor.fit_summary import FitSummary
from cida.doctor.training_curve import TrainingCurve
from cida.training.round_probe import (
    MAX_INDEX_SHARE_READ,
    MAX_LOSS_ABOVE_CEILING,
    MAX_MAJORITY_SHARE_FAR,
    MAX_MAJORITY_SHARE_SOURCE,
    MIN_ADVERSARIAL_GRADIENT_SHARE,
    MIN_RELATIVE_ENCODING_STD,
)

__all__ = ["GAME_RULES", "diagnose_far_predictions"]

# Set on the worlds circle, sine, plane, ladder and irrelevant_index, seeds 100 to 105, healthy and
# with faults planted, and on no other world (docs/doctor.md).
MAX_REMAINING_LOSS_SHARE = (
    0.5  # of the blind prediction loss, above which the source was hardly learnt
)
MIN_LEARNABLE_SHARE = 0.25  # of it less is what neighbours in x leave
MAX_ADVERSARIAL_GRADIENT_SHARE = 0.85  # of the gradient in z is the adversary's
MAX_LAMBDA_RATIO = 5.0  # the game's usual lambda_d, or a fifth of it
MAX_SHARE_ABOVE_CEILING = 0.3  # of the events
MIN_ACTIVE_PROBE_SHARE = 0.2  # of the looks
MAX_INDEX_R2 = 0.3  # of V[u] in z, by a straight line
MAX_DOMINANT_INDEX_R2 = 0.25  # of it in the directions in which z spreads
DEFAULT_DISCRIMINATOR_STEPS = 2
MANY_DISCRIMINATOR_STEPS = 5
MAX_MEMORIZED_SHARE = 0.25  # of what D reads of u it learnt on the very rows of the round
MAX_CURRICULUM_INDEX_SHARE = 0.35  # of u is read in z at some time, with a curriculum
MAX_LATE_DECREASE_SHARE = 0.12  # of the whole fall happens in the last fifth of the way
MIN_LOSS_DECREASE_SHARE = 0.05  # of the blind loss
MIN_LEARNING_RATE = 1e-4
DEFAULT_LEARNING_RATE = 5e-4
DEFAULT_STEPS = 6000
SLOW_CURRICULUM = 0.9

Rule = Callable[[TrainingCurve, FitSummary], Iterator[Diagnosis]]


# --- signs that several rules read ---------------------------------------------------------------


def _adversary_reads_index(curve: TrainingCurve, summary: FitSummary) -> bool:
    """Whether the adversary's loss says what z tells of u: not that of merged groups of rows."""
    if summary.is_conditional or not summary.is_adaptive:
        return False
    return summary.uses_head or not any(event.ceilings for event in curve.events)


def _final_index_share_read(curve: TrainingCurve, summary: FitSummary) -> float | None:
    """The share of u that is read in z in the last fifth, where it is too much."""
    share = curve.index_share_read(0.8) if _adversary_reads_index(curve, summary) else None
    return share if share is not None and share >= MAX_INDEX_SHARE_READ else None


def _remaining_loss_share(curve: TrainingCurve, summary: FitSummary) -> float | None:
    """The share of the blind loss that is left on the source, where neighbours in x do better."""
    last = curve.prediction_loss()
    if last is None or summary.knn_loss is None or not summary.marginal_label_loss:
        return None
    remaining_share, knn_share = (
        last / summary.marginal_label_loss,
        summary.knn_loss / summary.marginal_label_loss,
    )
    return (
        remaining_share
        if remaining_share >= MAX_REMAINING_LOSS_SHARE
        and remaining_share - knn_share >= MIN_LEARNABLE_SHARE
        else None
    )


def _memorized_share(curve: TrainingCurve) -> float:
    """What D gains on the rows of a round, as a share of all that its loss is below the ceiling."""
    shares = []
    for event in curve.events_between(0.2, 1.0):
        for name, ceiling in event.ceilings.items():
            gap = ceiling - event.losses.get(name, ceiling)
            if "gained" in event.health and gap > MAX_LOSS_ABOVE_CEILING:
                shares.append(event.health["gained"] / gap)
    return median(shares) if shares else 0.0


def _suggest_more_steps(summary: FitSummary) -> str:
    return f"Raise steps from {summary.steps} to {max(DEFAULT_STEPS, 3 * summary.steps)}."


# --- the rules -----------------------------------------------------------------------------------


def _diagnose_lagging_discriminator(
    curve: TrainingCurve, summary: FitSummary
) -> Iterator[Diagnosis]:
    if not _adversary_reads_index(curve, summary):
        return
    index_r2, share_above = summary.index_r2, curve.share_above_ceiling(MAX_LOSS_ABOVE_CEILING)
    is_harmful = (
        index_r2 is None
        or index_r2 >= MAX_INDEX_R2
        or _remaining_loss_share(curve, summary) is not None
    )
    if share_above >= MAX_SHARE_ABOVE_CEILING and is_harmful:
        yield Diagnosis(
            "discriminator-lagging",
            f"The discriminator's loss was above its ceiling at {share_above:.0%} of the "
            "events: it "
            "plays worse than a belief that ignores z, and the encoder exploits that.",
            _suggest_stronger_discriminator(summary) if summary.ceiling else "Set ceiling=True.",
        )
        return
    max_share_read, overlooked_r2 = (
        curve.max_index_share_read(),
        _overlooked_index_r2(curve, summary),
    )
    if max_share_read is not None and overlooked_r2 is not None:
        yield Diagnosis(
            "discriminator-lagging",
            f"The discriminator never read more than {max_share_read:.0%} of the index in z, "
            "where a "
            f"straight line reads {overlooked_r2:.0%}: the encoder had nothing to hide from.",
            _suggest_stronger_discriminator(summary),
        )


def _overlooked_index_r2(curve: TrainingCurve, summary: FitSummary) -> float | None:
    """What a straight line reads of u in z and D never did.

    Either in the directions in which z spreads, where no capable D would overlook it once the
    source is learnt; or in any direction, where the encoder hardly ever felt an adversary.
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
        and dominant_r2 >= MAX_DOMINANT_INDEX_R2
        and 2 * max_share_read < dominant_r2
        and is_learned
    ):
        return dominant_r2
    is_inactive = (
        active_share is not None
        and active_share <= MIN_ACTIVE_PROBE_SHARE
        and max_share_read < MAX_INDEX_SHARE_READ
    )
    return index_r2 if is_inactive and index_r2 is not None and index_r2 >= MAX_INDEX_R2 else None


def _suggest_stronger_discriminator(summary: FitSummary) -> str:
    steps = summary.discriminator_steps
    return (
        "Give the discriminator wider layers, such as Histogram(hidden=(128, 128, 128)), or raise "
        f"discriminator_steps from {steps} to {max(2 * steps, 2 * DEFAULT_DISCRIMINATOR_STEPS)}."
    )


def _diagnose_large_lambda(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    remaining_share, gradient_share = (
        _remaining_loss_share(curve, summary),
        curve.adversarial_gradient_share(),
    )
    if (
        remaining_share is None
        or not summary.is_adaptive
        or summary.discriminator_steps >= MANY_DISCRIMINATOR_STEPS
    ):
        return
    has_large_lambda = summary.lambda_d >= MAX_LAMBDA_RATIO * summary.default_lambda
    has_large_gradient = (
        gradient_share is not None
        and gradient_share >= MAX_ADVERSARIAL_GRADIENT_SHARE
        and (has_large_lambda or not _has_constant_encoding(summary))
    )
    is_index_hidden = (curve.index_share_read(0.8) or 0.0) < MAX_INDEX_SHARE_READ
    if (has_large_gradient and is_index_hidden) or (
        has_large_lambda and (has_large_gradient or is_index_hidden)
    ):
        gradient_clause = (
            ""
            if gradient_share is None
            else f", and {gradient_share:.0%} of the gradient in z was the adversary's"
        )
        proposed = min(summary.default_lambda, summary.lambda_d / 10)
        yield Diagnosis(
            "lambda-too-large",
            f"The source was not learnt: {remaining_share:.0%} of the blind prediction loss is "
            f"left{gradient_clause}.",
            f"Lower lambda_d from {summary.lambda_d:g} to {proposed:g}.",
        )


def _has_constant_encoding(summary: FitSummary) -> bool:
    """Whether all rows have nearly the same encoding."""
    if summary.encoding_std is None or summary.encoding_rms is None:
        return False
    return summary.encoding_std <= MIN_RELATIVE_ENCODING_STD * summary.encoding_rms


def _diagnose_collapsed_encoder(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    if not _has_constant_encoding(summary):
        return
    if summary.weight_decay > 0.1:
        suggestion = f"Lower weight_decay from {summary.weight_decay:g} to 0."
    elif summary.has_custom_encoder:
        suggestion = (
            "Give another encoder: no ReLU on z, and weights that tell rows apart from the start."
        )
    else:
        proposed = min(DEFAULT_LEARNING_RATE, summary.learning_rate / 5)
        suggestion = f"Lower learning_rate from {summary.learning_rate:g} to {proposed:g}."
    yield Diagnosis(
        "encoder-collapsed",
        f"All rows have nearly the same encoding: z spreads by {summary.encoding_std:.2g} around "
        f"a length of {summary.encoding_rms:.2g}.",
        suggestion,
    )


def _diagnose_small_lambda(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    share, gradient_share = (
        _final_index_share_read(curve, summary),
        curve.adversarial_gradient_share(),
    )
    if share is None:
        return
    has_small_lambda = MAX_LAMBDA_RATIO * summary.lambda_d <= summary.default_lambda
    if has_small_lambda or (
        gradient_share is not None and gradient_share < MIN_ADVERSARIAL_GRADIENT_SHARE
    ):
        gradient_clause = (
            ""
            if gradient_share is None
            else f", and {gradient_share:.1%} of the gradient in z was the adversary's"
        )
        proposed = max(summary.default_lambda, 10 * summary.lambda_d)
        yield Diagnosis(
            "lambda-too-small",
            f"z still tells {share:.0%} of the index{gradient_clause}.",
            f"Raise lambda_d from {summary.lambda_d:g} to {proposed:g}.",
        )


def _diagnose_overpowering_discriminator(
    curve: TrainingCurve, summary: FitSummary
) -> Iterator[Diagnosis]:
    share, remaining_share, steps = (
        _final_index_share_read(curve, summary),
        _remaining_loss_share(curve, summary),
        summary.discriminator_steps,
    )
    has_many_steps = steps >= MANY_DISCRIMINATOR_STEPS
    if not summary.is_adaptive or (
        share is None and not (has_many_steps and remaining_share is not None)
    ):
        return
    if not has_many_steps and _memorized_share(curve) < MAX_MEMORIZED_SHARE:
        return
    if share is None:
        evidence = (
            f"The encoder did nothing but hide: {remaining_share:.0%} of the blind prediction "
            "loss is left"
        )
    else:
        evidence = f"The discriminator reads {share:.0%} of the index in z to the end"
    yield Diagnosis(
        "discriminator-overpowering",
        f"{evidence}, with {steps} of its steps to each of the encoder's.",
        f"Lower discriminator_steps from {steps} to {DEFAULT_DISCRIMINATOR_STEPS}."
        if steps > DEFAULT_DISCRIMINATOR_STEPS
        else "Raise batch_size, so that it cannot learn the rows of a round by heart.",
    )


def _diagnose_fast_curriculum(curve: TrainingCurve, summary: FitSummary) -> Iterator[Diagnosis]:
    share = curve.max_index_share_read() if _adversary_reads_index(curve, summary) else None
    if summary.curriculum <= 0 or share is None or share < MAX_CURRICULUM_INDEX_SHARE:
        return
    yield Diagnosis(
        "curriculum-too-fast",
        f"The index range widened over {summary.curriculum:.0%} of {summary.steps} steps, and "
        "up to "
        f"{share:.0%} of the index could be read in z: rows came before nearer ones were aligned.",
        f"Raise curriculum from {summary.curriculum:g} to {SLOW_CURRICULUM:g}."
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
    if summary.learning_rate < MIN_LEARNING_RATE:
        suggestion = (
            f"Raise learning_rate from {summary.learning_rate:g} to {DEFAULT_LEARNING_RATE:g}."
        )
    if (
        remaining_share is not None
        and late_share is not None
        and loss_decrease is not None
        and summary.marginal_label_loss
    ):
        if remaining_share > 1 and summary.learning_rate > DEFAULT_LEARNING_RATE:
            suggestion = (
                f"Lower learning_rate from {summary.learning_rate:g} to {DEFAULT_LEARNING_RATE:g}."
            )
        if (
            late_share >= MAX_LATE_DECREASE_SHARE
            or loss_decrease <= MIN_LOSS_DECREASE_SHARE * summary.marginal_label_loss
        ):
            yield Diagnosis(
                "not-converged",
                f"The source was not learnt yet when training ended: {remaining_share:.0%} of "
                "the blind "
                "prediction loss is left.",
                suggestion,
            )
            return
    share = _final_index_share_read(curve, summary)
    if share is not None and not summary.label_shift_summary:
        yield Diagnosis(
            "not-converged",
            f"The game had not come to rest when training ended: z still tells {share:.0%} of the "
            "index.",
            suggestion,
        )


GAME_RULES: tuple[Rule, ...] = (
    _diagnose_lagging_discriminator,
    _diagnose_large_lambda,
    _diagnose_collapsed_encoder,
    _diagnose_small_lambda,
    _diagnose_overpowering_discriminator,
    _diagnose_fast_curriculum,
    _diagnose_convergence,
)


# --- what may come of any ------------------------------------------------------------------------


def diagnose_far_predictions(summary: FitSummary) -> Iterator[Diagnosis]:
    """One class is predicted for nearly all rows far from the source, and not in the source."""
    source_share, far_share = summary.majority_share_source, summary.majority_share_far
    if (
        source_share is None
        or far_share is None
        or far_share < MAX_MAJORITY_SHARE_FAR
        or source_share > MAX_MAJORITY_SHARE_SOURCE
    ):
        return
    if not summary.is_adaptive:
        suggestion = "Adapt to the target: discriminator='auto'."
    elif summary.coordinates != "auto" and not summary.has_custom_encoder:
        suggestion = "Let the encoder follow the index: coordinates='auto'."
    elif summary.curriculum < SLOW_CURRICULUM / 2:
        suggestion = (
            f"Go from near to far: raise curriculum from {summary.curriculum:g} to "
            f"{SLOW_CURRICULUM:g}."
        )
    else:
        suggestion = _suggest_more_steps(summary)
    yield Diagnosis(
        "predictions-collapsed",
        f"{far_share:.0%} of the target rows farthest from the source are predicted as one "
        "class, and "
        f"{source_share:.0%} of the source rows.",
        suggestion,
    )
