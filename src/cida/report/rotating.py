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

COLUMNS = (
    "The column 45 is the target from 45 to 90 degrees, and so on; target is their mean. Rows that "
    "begin with paper are its Table 1."
)
WORDS = (
    "Accuracy is over all seeds, and bands run from the worst to the best; what else is drawn is "
    "the first seed's. The source is shaded or boxed in green. A digit comes turned by u, and the "
    "transformer turns it further, by the learned angle. Turning it back by u is right, or by u "
    "less any constant c, since alignment cannot tell one common place from another: c is where "
    "the source is put. Off by: the mean distance from the right answer on the target. Who has all "
    "labels has no need to turn. Encodings are drawn on their first two principal components."
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
        f"<p class='soft'>{COLUMNS}</p>",
        pictures_section(pictures, WORDS) if pictures else "",
        loss_section(first),
        "<h2>How to repeat it</h2>",
        f"<pre>{escape(json.dumps(dict(facts), indent=2))}</pre>",
    ]
    return whole_page(title, "\n".join(part for part in sections if part))
