"""What was tried, what each candidate was worth, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from cida.io.json_decode import from_dict
from cida.selection.expected_score import Calibration

__all__ = ["CandidateReport", "Decision", "TrialRule", "Verdict"]

Verdict = Literal["adapt", "partly", "do-not-adapt"]
TrialRule = Literal["leave-range-out", "random-third", "few-source-rows"]

MIN_ADAPT_SHARE = 2 / 3  # of the weight, for the verdict to adapt
MAX_KEEP_SHARE = 1 / 3  # of the weight, for the verdict not to
RULE_TEXTS: Mapping[TrialRule, str] = {
    "leave-range-out": "each was tried on the nearest and on the farthest third of the source, "
    "whose labels were hidden",
    "random-third": "the source has no range along the index that could be left out, so each was "
    "tried on a random third of it, which says nothing of the way to the target",
    "few-source-rows": "the linear ones count, each the same: the source is too small for a trial",
}
VERDICT_TEXTS: Mapping[Verdict, str] = {
    "adapt": "The model adapts along the index",
    "partly": "The model adapts along the index in part",
    "do-not-adapt": "The model hardly adapts along the index",
}


@dataclass(frozen=True)
class CandidateReport:
    """One candidate: its losses on the ranges that were hidden from it, and its weight.

    Parameters
    ----------
    name : str
        Name of the candidate.
    coordinates : str
        How it sees x: "raw", "index" (u as a feature), or coordinates along u.
    is_adaptive : bool
        Whether it uses unlabelled rows along the index.
    weight : float
        Its share of the prediction; 0 where it clearly lost.
    losses : mapping of str to float
        Log loss, or squared error in units of the source's variance, on each hidden range.
    standard_errors : mapping of str to float
        The standard error of each loss.
    """

    name: str
    coordinates: str
    is_adaptive: bool
    weight: float
    losses: Mapping[str, float] = field(default_factory=dict)
    standard_errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean_loss(self) -> float:
        """The mean over the hidden ranges; NaN without a trial."""
        return sum(self.losses.values()) / len(self.losses) if self.losses else float("nan")


@dataclass(frozen=True)
class Decision:
    """Whether, how and how far a model adapts, with the evidence.

    Parameters
    ----------
    candidates : tuple of CandidateReport
        All candidates, in the order in which they were tried.
    rule : str
        How they were tried.
    metric : str
        What the losses are: "log_loss" or "squared_error".
    calibration : Calibration, optional
        How far the committee's confidence is off on the hidden ranges; of classes alone.
    """

    candidates: tuple[CandidateReport, ...]
    rule: TrialRule
    metric: str
    calibration: Calibration | None = None

    @property
    def adapted_share(self) -> float:
        """The weight of the candidates that adapt along the index."""
        return sum(each.weight for each in self.candidates if each.is_adaptive)

    @property
    def verdict(self) -> Verdict:
        """Whether the model adapts."""
        if self.adapted_share >= MIN_ADAPT_SHARE:
            return "adapt"
        return "do-not-adapt" if self.adapted_share <= MAX_KEEP_SHARE else "partly"

    def summary(self) -> list[str]:
        """Tell in three sentences what was decided, by which trial, and what carries it."""
        used = sorted((c for c in self.candidates if c.weight), key=lambda c: -c.weight)
        n_dropped = len(self.candidates) - len(used)
        share = f"{self.adapted_share:.0%} of the weight is on candidates that do"
        trial = f"Of {len(self.candidates)} candidates, {RULE_TEXTS[self.rule]}"
        has_losers = n_dropped and self.rule != "few-source-rows"
        dropped = f"; {n_dropped} clearly lost and do not count" if has_losers else ""
        weights = ", ".join(f"{each.name} ({each.weight:.0%})" for each in used[:3])
        best = min(used, key=lambda c: c.mean_loss)
        metric = self.metric.replace("_", " ")
        loss = f"; the lowest {metric} is {best.mean_loss:.3g}" if best.losses else ""
        return [
            f"{VERDICT_TEXTS[self.verdict]}: {share}.",
            f"{trial}{dropped}.",
            f"What counts most: {weights}{loss}.",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; refuses values of a wrong type."""
        return from_dict(cls, values)
