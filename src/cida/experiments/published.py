"""The numbers to stand beside ours: the paper's, or the public record of its code."""

from __future__ import annotations

from cida.runs.records import PublishedScore

__all__ = ["PUBLISHED_SCORES"]


def _table_1_score(method: str, *percent: float) -> PublishedScore:
    """A line of the paper's Table 1: the source, the seven targets, the mean of the targets."""
    *intervals, mean = (round(value / 100, 4) for value in percent)
    return PublishedScore(mean, "target", f"the paper's Table 1, {method}", tuple(intervals))


PUBLISHED_SCORES: dict[str, dict[str, PublishedScore]] = {
    "circle": {
        "cida": PublishedScore(
            0.928,
            "target",
            "the authors' code, saved output: 94.3 over all 30 domains; an L1 discriminator, "
            "domains added in stages, trained on its own pseudo-labels",
        ),
        "dann": PublishedScore(
            0.977, "target", "30 domain classes, label smoothing 0.05, u in the encoder, one seed"
        ),
    },
    "sine": {
        "cida": PublishedScore(
            0.950,
            "all",
            "the authors' code, saved output, source included; a Gaussian discriminator with an "
            "extra variance term, each domain's mean subtracted from x",
        ),
    },
    "rotating-mnist": {
        "source-only": _table_1_score(
            "Source-Only", 98.4, 81.4, 29.8, 33.6, 41.4, 39.0, 30.4, 81.1, 48.1
        ),
        "adda": _table_1_score("ADDA", 95.0, 70.2, 25.5, 44.0, 59.2, 46.2, 23.7, 61.4, 47.2),
        "dann-merged": _table_1_score("DANN", 98.1, 80.1, 44.8, 42.2, 43.6, 46.8, 57.3, 79.3, 56.3),
        "cua": _table_1_score("CUA", 91.4, 73.9, 60.1, 55.0, 52.7, 45.1, 55.2, 88.4, 61.5),
        "cida": _table_1_score("CIDA", 99.1, 87.2, 56.7, 79.6, 91.2, 91.5, 96.2, 97.5, 85.7),
        "pcida": _table_1_score("PCIDA", 98.6, 90.1, 82.2, 90.5, 91.9, 87.1, 80.0, 88.2, 87.1),
    },
}
