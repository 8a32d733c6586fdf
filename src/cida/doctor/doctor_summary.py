"""The doctor's diagnoses in English: templates that are filled with the evidence.

A diagnosis may rest on different figures from run to run, so a code has several pairs of
templates. The first pair counts whose figures are all there. This module knows plain values only,
so that the records can use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

__all__ = ["describe_change", "describe_evidence", "describe_metrics", "describe_skipped_check"]

_LOSS_LEFT = "{remaining_loss_share:.0%} of the loss of the best constant prediction is left"
_NOT_LEARNED = "The source was not learned: " + _LOSS_LEFT
_GRADIENT = "{adversarial_gradient_share:.1%} of the gradient in z was the adversary's"
_DENSE = "{densest_share:.0%} of the rows lie within a hundredth of the range of "
_OUTLIERS = "domain_index: a few outliers make up the rest of the range."
_UNSCALED = (
    "domain_index has a standard deviation of {index_std:.3g} in the coordinates of space, where 1 "
    "is expected."
)
_SCALE_INDEX = "Remove or clip the outliers in domain_index, or pass its logarithm or rank."
_FIT_SPACE = "Use space=cida.Line(), which scales it, or scale it in the fit method of your space."
_LARGER_BATCH = "Raise batch_size, so that the discriminator cannot memorize the rows of a round."

# code -> what was found, and what to do where that is no single parameter
TEMPLATES: dict[str, tuple[str | tuple[str, str], ...]] = {
    "index-constant": (
        (
            "{mode_share:.0%} of the rows have the same value in column {column:.0f} of "
            "domain_index.",
            "Give a column that differs between rows, or leave it out of domain_index.",
        ),
        (
            "{mode_share:.0%} of the rows have the same value in domain_index.",
            "Give a domain_index that differs between rows.",
        ),
    ),
    "index-unscaled": (
        (_DENSE + "column {column:.0f} of " + _OUTLIERS, _SCALE_INDEX),
        (_DENSE + _OUTLIERS, _SCALE_INDEX),
        ("Column {column:.0f} of " + _UNSCALED, _FIT_SPACE),
        (_UNSCALED, _FIT_SPACE),
    ),
    "too-few-rows": (
        (
            "Only {n_source_rows:.0f} rows have a label.",
            "Label at least {min_source_rows:.0f} rows in y, or compare with discriminator=None "
            "before trusting the result.",
        ),
        (
            "Only {n_target_rows:.0f} rows have no label, which is too few to align.",
            "Add rows without a label to X and domain_index, at least {min_target_rows:.0f} in "
            "all, or use discriminator=None.",
        ),
    ),
    "label-shift": (
        "y itself seems to depend on domain_index: the share of one class in the source goes from "
        "{min_class_share:.0%} to {max_class_share:.0%}.",
        "y itself seems to depend on domain_index: {between_variance_share:.0%} of y's variance in "
        "the source lies between places along u.",
    ),
    "discriminator-lagging": (
        "The discriminator's loss was above its ceiling at {share_above_ceiling:.0%} of the "
        "events: it does worse than a prediction that ignores z, and the encoder exploits that.",
        "The discriminator never read more than {index_share_read:.0%} of the index in z, where a "
        "linear probe reads {index_r2:.0%}: the encoder had nothing to hide from.",
    ),
    "lambda-too-large": (_NOT_LEARNED + ", and " + _GRADIENT + ".", _NOT_LEARNED + "."),
    "encoder-collapsed": (
        (
            "All rows have nearly the same encoding: z has a standard deviation of "
            "{encoding_std:.2g} at a root mean square of {encoding_rms:.2g}.",
            "Use another encoder: without a ReLU on z, and with initial weights that tell rows "
            "apart.",
        ),
    ),
    "lambda-too-small": (
        "z still tells {index_share_read:.0%} of the index, and " + _GRADIENT + ".",
        "z still tells {index_share_read:.0%} of the index.",
    ),
    "discriminator-overpowering": (
        (
            "The discriminator reads {index_share_read:.0%} of the index in z until the end, with "
            "{discriminator_steps:.0f} steps per step of the encoder.",
            _LARGER_BATCH,
        ),
        (
            "The encoder only hides the index: " + _LOSS_LEFT + ", with {discriminator_steps:.0f} "
            "steps of the discriminator per step of the encoder.",
            _LARGER_BATCH,
        ),
    ),
    "curriculum-too-fast": (
        "The index range widened over {curriculum:.0%} of {steps:.0f} steps, and up to "
        "{index_share_read:.0%} of the index could be read in z: rows were added before nearer "
        "ones were aligned.",
    ),
    "not-converged": (
        "The source was not learned yet when training ended: " + _LOSS_LEFT + ".",
        "The game had not converged when training ended: z still tells {index_share_read:.0%} of "
        "the index.",
    ),
    "predictions-collapsed": (
        "{majority_share_far:.0%} of the target rows farthest from the source are predicted as one "
        "class, and {majority_share_source:.0%} of the source rows.",
    ),
}

# (code, parameter) -> the sentence around the change, where it needs one
_CHANGE_TEMPLATES = {
    ("label-shift", "game"): "Compare with discriminator=None, or use game='conditional' with "
    "coordinates='raw'.",
    ("discriminator-lagging", "discriminator_steps"): "Give the discriminator wider layers, such "
    "as Histogram(hidden=(128, 128, 128)), or {change}.",
    ("predictions-collapsed", "discriminator"): "Adapt to the target: {change}.",
    ("predictions-collapsed", "coordinates"): "Let the encoder follow the index: {change}.",
    ("predictions-collapsed", "curriculum"): "Go from near to far: {change}.",
}

_SKIPPED_TEMPLATES = {
    "no-index": "The model was fitted without an index: there is no game to examine.",
    "too-few-steps": "{steps:.0f} steps are too few to judge; at least {min_steps:.0f} are needed.",
    "too-few-probes": "The events have too few health figures to judge the game.",
    "unknown-rows": "The model file does not describe its rows: index, labels and final figures "
    "are unknown.",
}

_METRIC_TEMPLATES = {
    "index_share_read": "z tells {:.0%} of the index",
    "adversarial_gradient_share": "{:.0%} of the gradient in z was the adversary's",
    "remaining_loss_share": "{:.0%} of the loss of the best constant prediction is left on the "
    "source",
    "majority_share_source": "{:.0%} of the source rows are predicted as one class",
    "majority_share_far": "{:.0%} of the far target rows",
}


def describe_evidence(code: str, evidence: Mapping[str, float]) -> str:
    """What was found; figures that no template knows are listed by name."""
    if (pair := _find_templates(code, evidence)) is None:
        return ", ".join(f"{name} = {value:.3g}" for name, value in evidence.items()) + "."
    return pair[0].format(**evidence)


def describe_change(
    code: str, evidence: Mapping[str, float], change: tuple[str, Any, Any] | None
) -> str:
    """What to do: the change of a parameter (name, current, proposed), or other advice."""
    if change is None:
        pair = _find_templates(code, evidence)
        return "See docs/doctor.md." if pair is None else pair[1].format(**evidence)
    name, current, proposed = change
    if _is_number(current) and _is_number(proposed):
        verb = "raise" if proposed > current else "lower"
        clause = f"{verb} {name} from {current:g} to {proposed:g}"
    else:
        clause = f"set {name}={proposed!r}"
    template = _CHANGE_TEMPLATES.get((code, name))
    return template.format(change=clause) if template else f"{clause[0].upper()}{clause[1:]}."


def describe_skipped_check(code: str, evidence: Mapping[str, float]) -> str:
    """Why rules were skipped."""
    return _SKIPPED_TEMPLATES[code].format(**evidence)


def describe_metrics(metrics: Mapping[str, float]) -> str:
    """The final metrics of a healthy run in one line."""
    return ", ".join(
        text.format(metrics[name]) for name, text in _METRIC_TEMPLATES.items() if name in metrics
    )


def _find_templates(code: str, evidence: Mapping[str, float]) -> tuple[str, str] | None:
    for template in TEMPLATES.get(code, ()):
        pair = (template, "") if isinstance(template, str) else template
        if {name for _, name, _, _ in Formatter().parse("".join(pair)) if name} <= set(evidence):
            return pair
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
