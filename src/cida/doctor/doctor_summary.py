"""The doctor's diagnoses in English: templates that are filled with the evidence.

A diagnosis may rest on different figures from run to run, so a code has several pairs of
templates. The first pair counts whose figures are all there. This module knows plain values only,
so that the records can use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

__all__ = ["describe_change", "describe_evidence", "describe_metrics", "describe_skipped_check"]

_NOT_LEARNED = "The source was not learned: {remaining_loss_share:.0%} of the loss of the best "
_GRADIENT = "{adversarial_gradient_share:.1%} of the gradient in z was the adversary's"

# code -> (what was found, what to do where that is no single parameter)
_TEMPLATES: dict[str, tuple[tuple[str, str], ...]] = {
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
        (
            "{densest_share:.0%} of the rows lie within a hundredth of the range of column "
            "{column:.0f} of domain_index: a few outliers make up the rest of the range.",
            "Remove or clip the outliers in domain_index, or pass its logarithm or rank.",
        ),
        (
            "{densest_share:.0%} of the rows lie within a hundredth of the range of "
            "domain_index: a few outliers make up the rest of the range.",
            "Remove or clip the outliers in domain_index, or pass its logarithm or rank.",
        ),
        (
            "Column {column:.0f} of domain_index has a standard deviation of {index_std:.3g} in "
            "the coordinates of space, where 1 is expected.",
            "Use space=cida.Line(), which scales it, or scale it in the fit method of your space.",
        ),
        (
            "domain_index has a standard deviation of {index_std:.3g} in the coordinates of "
            "space, where 1 is expected.",
            "Use space=cida.Line(), which scales it, or scale it in the fit method of your space.",
        ),
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
        (
            "y itself seems to depend on domain_index: the share of one class in the source goes "
            "from {min_class_share:.0%} to {max_class_share:.0%}.",
            "",
        ),
        (
            "y itself seems to depend on domain_index: {between_variance_share:.0%} of y's "
            "variance in the source lies between places along u.",
            "",
        ),
    ),
    "discriminator-lagging": (
        (
            "The discriminator's loss was above its ceiling at {share_above_ceiling:.0%} of the "
            "events: it does worse than a prediction that ignores z, and the encoder exploits "
            "that.",
            "",
        ),
        (
            "The discriminator never read more than {index_share_read:.0%} of the index in z, "
            "where a linear probe reads {index_r2:.0%}: the encoder had nothing to hide from.",
            "",
        ),
    ),
    "lambda-too-large": (
        (_NOT_LEARNED + "constant prediction is left, and " + _GRADIENT + ".", ""),
        (_NOT_LEARNED + "constant prediction is left.", ""),
    ),
    "encoder-collapsed": (
        (
            "All rows have nearly the same encoding: z has a standard deviation of "
            "{encoding_std:.2g} at a root mean square of {encoding_rms:.2g}.",
            "Use another encoder: without a ReLU on z, and with initial weights that tell rows "
            "apart.",
        ),
    ),
    "lambda-too-small": (
        ("z still tells {index_share_read:.0%} of the index, and " + _GRADIENT + ".", ""),
        ("z still tells {index_share_read:.0%} of the index.", ""),
    ),
    "discriminator-overpowering": (
        (
            "The discriminator reads {index_share_read:.0%} of the index in z until the end, with "
            "{discriminator_steps:.0f} steps per step of the encoder.",
            "Raise batch_size, so that the discriminator cannot memorize the rows of a round.",
        ),
        (
            "The encoder only hides the index: {remaining_loss_share:.0%} of the loss of the best "
            "constant prediction is left, with {discriminator_steps:.0f} steps of the "
            "discriminator per step of the encoder.",
            "Raise batch_size, so that the discriminator cannot memorize the rows of a round.",
        ),
    ),
    "curriculum-too-fast": (
        (
            "The index range widened over {curriculum:.0%} of {steps:.0f} steps, and up to "
            "{index_share_read:.0%} of the index could be read in z: rows were added before "
            "nearer ones were aligned.",
            "",
        ),
    ),
    "not-converged": (
        (
            "The source was not learned yet when training ended: {remaining_loss_share:.0%} of "
            "the loss of the best constant prediction is left.",
            "",
        ),
        (
            "The game had not converged when training ended: z still tells "
            "{index_share_read:.0%} of the index.",
            "",
        ),
    ),
    "predictions-collapsed": (
        (
            "{majority_share_far:.0%} of the target rows farthest from the source are predicted "
            "as one class, and {majority_share_source:.0%} of the source rows.",
            "",
        ),
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
    pair = _find_templates(code, evidence)
    if pair is None:
        return ", ".join(f"{name} = {value:.3g}" for name, value in evidence.items()) + "."
    return pair[0].format(**evidence)


def describe_change(
    code: str, evidence: Mapping[str, float], change: Mapping[str, Any] | None
) -> str:
    """What to do: the change of a parameter (parameter, current, proposed), or other advice."""
    if change is None:
        pair = _find_templates(code, evidence)
        return "See docs/doctor.md." if pair is None else pair[1].format(**evidence)
    name, current, proposed = change["parameter"], change["current"], change["proposed"]
    if _is_number(current) and _is_number(proposed):
        verb = "raise" if proposed > current else "lower"
        clause = f"{verb} {name} from {current:g} to {proposed:g}"
    else:
        clause = f"set {name}={proposed!r}"
    template = _CHANGE_TEMPLATES.get((code, name))
    if template is None:
        return f"{clause[0].upper()}{clause[1:]}."
    return template.format(change=clause)


def describe_skipped_check(code: str, evidence: Mapping[str, float]) -> str:
    """Why rules were skipped."""
    return _SKIPPED_TEMPLATES[code].format(**evidence)


def describe_metrics(metrics: Mapping[str, float]) -> str:
    """The final metrics of a healthy run in one line."""
    return ", ".join(
        text.format(metrics[name]) for name, text in _METRIC_TEMPLATES.items() if name in metrics
    )


def _find_templates(code: str, evidence: Mapping[str, float]) -> tuple[str, str] | None:
    pairs: Sequence[tuple[str, str]] = _TEMPLATES.get(code, ())
    return next((pair for pair in pairs if _field_names(" ".join(pair)) <= set(evidence)), None)


def _field_names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
