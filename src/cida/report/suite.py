"""The report of an experiment of several tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from cida.benchmarks.tables import Cells
from cida.report.parts import pictures_section, whole_page

__all__ = ["suite_report"]


@dataclass(frozen=True)
class Words:
    """What a report says of an experiment beside its numbers."""

    title: str
    lead: str
    columns: str
    figures: str


COLUMNS = (
    "In bold the best mean of those without target labels. gain: points over Source-Only; of the "
    "gap: the gain's share of the oracle's."
)
SLEEP = Words(
    "",
    "The stage of sleep (awake, light, deep or REM) from 30 seconds of a breathing belt. Labels "
    "exist for the source people; the target people, of other ages, have none.",
    "Accuracy in %, on target people who were not trained on. " + COLUMNS + " kappa: Cohen's, "
    "agreement beyond chance; then the recall of each stage.",
    "Means over all seeds. The source's ages are shaded in green.",
)
TABLE = (
    "Accuracy in %, on one half of the target rows, all of which were trained on without their "
    "labels; source: on the rows trained on. " + COLUMNS + " The oracle has the labels of the "
    "other half."
)
WORDS = {
    "sleep-intra": replace(SLEEP, title="Sleep staging across ages"),
    "sleep-cross": replace(SLEEP, title="Sleep staging across studies"),
    "sleep-multi": replace(SLEEP, title="Sleep staging along several indices"),
    "nhanes": Words(
        "Sex from 17 measurements, across ages",
        "NHANES 2017-18: body and blood values of 6,507 people. Labels exist up to the age of 20; "
        "what tells men from women then keeps drifting with age.",
        TABLE,
        "Means over all seeds, in cells along the age. The source's ages are shaded in green.",
    ),
    "support2": Words(
        "Death within 180 days, across ages",
        "SUPPORT2: 9,105 seriously ill patients and what was known of them by day 3. Labels exist "
        "up to the age of 55. The gap between no adaptation and an oracle is small here: there is "
        "little to win, and the table shows whether something is lost.",
        TABLE,
        "Means over all seeds, in cells along the age. The source's ages are shaded in green.",
    ),
    "king-county": Words(
        "House prices across King County",
        "21,613 sales; the index is latitude and longitude, labels exist in the eastern third. "
        "Dear for its neighbourhood: above the median of the 400 nearest. Above the median of all "
        "is the example where the label itself depends on the place, and invariance does harm.",
        TABLE + " The regression's figure is R² in %.",
        "Means over all seeds in cells of the map; source houses in green.",
    ),
}
LADDER = Words(
    "The moment ladder",
    "Three switches: the label is the product of two. The third repeats the label in the source, "
    "in the middle of the range, and tells the side of u in the target, where p(u|z) of the two "
    "sides differs in its mean, only in its variance, only in its skewness, or only as a whole. A "
    "head that sees the difference makes the encoder let go of the shortcut.",
    "Accuracy in % on the target. " + COLUMNS + " left of u: the bias-corrected squared distance "
    "correlation of z and u. Where the encoder begins as the shortcut, seen at the start: how far "
    "below its ceiling a discriminator at its best gets there (or the dependence), and gradient at "
    "the start: the norm of what it tells the encoder.",
    "Means over all seeds. The source is shaded in green.",
)
WORLDS = Words(
    "Small worlds, and the defaults",
    "One world for each way in which an index can matter, or not. The default is the estimator "
    "with no arguments.",
    "Accuracy in % on the target, of the regression R² in %. " + COLUMNS + " left of u: the "
    "bias-corrected squared distance correlation of z and u.",
    "Means over all seeds. The source is shaded in green.",
)
SELECTION = Words(
    "Which run to keep, without target labels",
    "Heads and weights of the adversarial loss over six worlds: good runs and bad ones. Validators "
    "score them without a label of the target; here their scores meet the truth.",
    "First the target accuracy of each run in %, the mean over seeds. Then, for each validator: "
    "Spearman's correlation of its score with the accuracy; how often the run that it keeps is "
    "within 1 point of the best of its group, and how far below it is; the correlation in each "
    "world.",
    "Every run as a point; the one that is kept, in a group of runs on the same data, has a ring.",
)
RESTARTS = Words(
    "The best of four games",
    "The estimator with no arguments, once with one game and once with four, of which it keeps one "
    "by a validator that sees no label of the target.",
    "Accuracy in % on the target. " + COLUMNS,
    "Means over all seeds. The source is shaded in green.",
)
WORDS |= {"moments": LADDER, "worlds": WORLDS, "selection": SELECTION, "restarts": RESTARTS}
SIMULATED = (
    "SIMULATED: these people exist in a computer alone. The paper's numbers below ours are of real "
    "people, and are there to show the form of its table, not to be beaten."
)


def suite_report(
    experiment: str,
    simulated: bool,
    tables: Sequence[Sequence[Cells]],
    details: Sequence[Cells],
    told: Sequence[str],
    facts: Mapping[str, Any],
    pictures: Mapping[str, str],
) -> str:
    """One page: the paper's form of table, what is behind it, figures, and how to repeat it."""
    words = WORDS[experiment]
    title = f"cida: {words.title}"
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in told)
    sections = [
        f"<h1>{escape(title)}</h1>",
        f"<p class='lead'>{words.lead}</p>",
        f"<p class='notice'>{SIMULATED}</p>" if simulated else "",
        f"<p class='soft'>Protocol {escape(str(facts['protocol']))}.</p>",
        *(_table(table) for table in tables),
        f"<p class='soft'>{words.columns}</p>",
        f"<ul class='soft'>{sentences}</ul>",
        pictures_section(pictures, words.figures) if pictures else "",
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
