"""The numbers to stand beside ours: the paper's, or the public record of its code."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RECORD", "Record"]


@dataclass(frozen=True)
class Record:
    """A published accuracy, as a fraction, over target domains or over all of them, and its story.

    The paper shows its toy experiments as pictures alone.
    """

    accuracy: float
    domains: str
    story: str


RECORD: dict[str, dict[str, Record]] = {
    "circle": {
        "cida": Record(
            0.928,
            "target",
            "the authors' code, saved output: 94.3 over all 30 domains; an L1 discriminator, "
            "domains added in stages, trained on its own pseudo-labels",
        ),
        "dann": Record(
            0.977, "target", "30 domain classes, label smoothing 0.05, u in the encoder, one seed"
        ),
    },
    "sine": {
        "cida": Record(
            0.950,
            "all",
            "the authors' code, saved output, source included; a Gaussian discriminator with an "
            "extra variance term, each domain's mean subtracted from x",
        ),
    },
}
