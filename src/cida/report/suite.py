"""The report of an experiment of several tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from cida.benchmarks.tables import Cells
from cida.report.parts import pictures_section, whole_page

__all__ = ["suite_report"]

TITLES = {
    "sleep-intra": "Sleep staging across ages",
    "sleep-cross": "Sleep staging across studies",
    "sleep-multi": "Sleep staging along several indices",
}
LEAD = (
    "The stage of sleep (awake, light, deep or REM) from 30 seconds of a breathing belt. Labels "
    "exist for the source people; the target people, of other ages, have none."
)
SIMULATED = (
    "SIMULATED: these people exist in a computer alone. The paper's numbers below ours are of real "
    "people, and are there to show the form of its table, not to be beaten."
)
COLUMNS = (
    "Accuracy in %, on target people who were not trained on; in bold the best mean of those "
    "without target labels. gain: points over Source-Only; of the gap: the gain's share of the "
    "oracle's; kappa: Cohen's, agreement beyond chance; then the recall of each stage."
)
WORDS = "Means over all seeds. The source's ages are shaded in green."


def suite_report(
    experiment: str,
    simulated: bool,
    table: Sequence[Cells],
    details: Sequence[Cells],
    told: Sequence[str],
    facts: Mapping[str, Any],
    pictures: Mapping[str, str],
) -> str:
    """One page: the paper's form of table, what is behind it, figures, and how to repeat it."""
    title = f"cida: {TITLES[experiment]}"
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in told)
    sections = [
        f"<h1>{escape(title)}</h1>",
        f"<p class='lead'>{LEAD}</p>",
        f"<p class='notice'>{SIMULATED}</p>" if simulated else "",
        f"<p class='soft'>Protocol {escape(str(facts['protocol']))}.</p>",
        _table(table),
        f"<p class='soft'>{COLUMNS}</p>",
        f"<ul class='soft'>{sentences}</ul>",
        pictures_section(pictures, WORDS) if pictures else "",
        "<h2>Every method</h2>",
        _table(details),
        "<h2>How to repeat it</h2>",
        f"<pre>{escape(json.dumps(dict(facts), indent=2))}</pre>",
    ]
    return whole_page(title, "\n".join(part for part in sections if part))


def _table(found: Sequence[Cells]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in found[0])
    body = []
    for line in found:
        kind = " class='soft'" if line.get("task", "").startswith("the paper") else ""
        body.append(f"<tr{kind}>{''.join(f'<td>{_cell(c)}</td>' for c in line.values())}</tr>")
    return (
        f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
        "</table></div>"
    )


def _cell(words: str) -> str:
    """Bold where Markdown has it."""
    if words.startswith("**"):
        return f"<b>{escape(words.strip('*'))}</b>"
    return escape(words)
