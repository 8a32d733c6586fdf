"""The report of rotating digits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cida.benchmarks.runner import Outcome
from cida.benchmarks.tables import ResultLine
from cida.report.parts import (
    best_line,
    loss_section,
    pictures_section,
    results_table,
    whole_page,
)

__all__ = ["rotating_report"]

WORDS = (
    "Bands run from the worst seed to the best; the labelled source is shaded. The learned angle "
    "is that by which the transformer turns an image back. Encodings are drawn on their first two "
    "principal components."
)


def rotating_report(
    name: str,
    lines: Sequence[ResultLine],
    outcomes: Sequence[Outcome],
    facts: Mapping[str, Any],
    pictures: Mapping[str, str],
) -> str:
    """One page: the table beside the paper's, the figures, the losses, and how to repeat it."""
    first = [o for o in outcomes if o.row.seed == outcomes[0].row.seed]
    title = f"cida on {name.replace('-', ' ').title().replace('Mnist', 'MNIST')}"
    best = best_line(lines, outcomes)
    sections = [
        f"<h1>{escape(title)}</h1>",
        "<p class='lead'>Digits turned by any angle; the angle is the index u. Labels exist from 0 "
        "to 45 degrees; from 45 to 360 there are none. Best on the target: "
        f"<b>{escape(best.title)}</b>, {100 * best.target:.1f} %.</p>",
        f"<p class='soft'>Protocol {escape(str(facts['protocol']))}.</p>",
        results_table(lines, outcomes),
        pictures_section(pictures, WORDS) if pictures else "",
        loss_section(first),
        "<h2>How to repeat it</h2>",
        f"<pre>{escape(json.dumps(dict(facts), indent=2))}</pre>",
    ]
    return whole_page(title, "\n".join(part for part in sections if part))
