"""What went wrong in a run, and what to change: faults named from its events and facts."""

from __future__ import annotations

from collections.abc import Sequence

from cida.diagnostics.course import Course
from cida.diagnostics.facts import Facts
from cida.diagnostics.findings import FAULTS, Finding
from cida.diagnostics.game_faults import GAME_FAULTS, one_class_far_away
from cida.diagnostics.row_faults import few_rows, index_faults, shifting_labels
from cida.training import Event

__all__ = ["FAULTS", "Finding", "examine", "figures", "unjudged"]

FEWEST_STEPS = 200
FEWEST_LOOKS = 10  # at the game's health
# Where these are the cause, what is predicted far away says nothing more.
_EXPLAIN_PREDICTIONS = ("label-shift", "encoder-collapsed", "lambda-too-large")


def examine(history: Sequence[Event], facts: Facts) -> list[Finding]:
    """The faults of a run, causes before what follows from them; none where nothing is amiss.

    Runs of under 200 steps have had no time to go wrong, and models without an index no game to:
    nothing is said of them. An index that is amiss and too few rows are told alone, since figures
    of the game mean little until they are mended. Of the faults of the game the first that shows
    its signs is told: it is the cause of the others.
    """
    if not facts.indexed or facts.steps < FEWEST_STEPS:
        return []
    told = [*index_faults(facts), *few_rows(facts)]
    if told:
        return told
    told += shifting_labels(facts)
    course = Course(history)
    if course.looks >= FEWEST_LOOKS:
        told += [found for rule in GAME_FAULTS for found in rule(course, facts)][:1]
    if not any(finding.fault in _EXPLAIN_PREDICTIONS for finding in told):
        told += one_class_far_away(facts)
    return told


def unjudged(history: Sequence[Event], facts: Facts) -> list[str]:
    """What could not be looked at, a sentence each."""
    if not facts.indexed:
        return ["It was fitted without an index: there is no game to examine."]
    if facts.steps < FEWEST_STEPS:
        return [f"{facts.steps} steps are too few to judge; it takes {FEWEST_STEPS}."]
    told = []
    if Course(history).looks < FEWEST_LOOKS:
        told.append("The events have too few health figures to say how the game went.")
    if not facts.complete:
        told.append(
            "The model file says nothing of the rows: index, labels and final figures are unknown."
        )
    return told


def figures(history: Sequence[Event], facts: Facts) -> dict[str, float]:
    """The main figures of the end of a run, as far as they are known.

    ``index_told`` is the share of u that the adversary reads in z, ``pull`` its share of the
    gradient in z, ``prediction_left`` the share of the blind prediction loss that is left.
    """
    course = Course(history)
    loss = course.prediction() if history else None
    found = {
        "index_told": course.known(0.8) if history else None,
        "pull": course.pull() if history else None,
        "prediction_loss": loss,
        "prediction_left": loss / facts.blind_loss if loss and facts.blind_loss else None,
        "encoding_spread": facts.encoding_spread,
        "same_source": facts.same_source,
        "same_far": facts.same_far,
    }
    return {name: value for name, value in found.items() if value is not None}
