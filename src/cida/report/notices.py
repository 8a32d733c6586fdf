"""What reports say of each experiment beside its numbers."""

from __future__ import annotations

from cida.runs.records import ExperimentText

__all__ = ["SIMULATED_NOTICE", "USER_TABLES_TEXT"]


SIMULATED_NOTICE = (
    "SIMULATED: these people exist in a computer alone. The paper's numbers below ours are of real "
    "people, and are there to show the form of its table, not to be beaten."
)
USER_TABLES_TEXT = ExperimentText(
    "Models of your own table",
    "No target label was seen: how right a model is on the target nobody can say from the table "
    "alone. What can be said without them is here.",
    "held-out source: on source rows that were not trained on. expected: the accuracy to expect on "
    "the target, told without its labels.",
)
