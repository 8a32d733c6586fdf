"""The report of a user's own table."""

import numpy as np
import pytest

from cida.report.table import Along, table_report
from cida.training import Event

EVIL = "<script>alert(1)</script>"


def along(classes, width, rows=300):
    rng = np.random.default_rng(0)
    u = rng.uniform(0, 24, rows)
    predicted = rng.dirichlet(np.ones(width), rows) if classes else rng.normal(size=(rows, 1))
    return Along(EVIL, u, u < 8, predicted, classes)


def page(where, ceilings=True):
    losses = {"discriminator": 1.0, "predictor": 0.5}
    event = Event(10, 10, 1.0, 1e-3, 1.0, losses, {"discriminator": 1.01} if ceilings else {})
    facts = {"method": EVIL}
    trust = {"certificate": [EVIL], "faults": [EVIL]}
    history = {"seed 0": [event, event]}
    return table_report(EVIL, [EVIL], [EVIL], [EVIL], trust, where, history, facts)


@pytest.mark.parametrize(
    "where", [along(("no", EVIL), 2), along(None, 1), along(tuple("abcdefgh"), 8)]
)
def test_what_a_user_wrote_is_text_and_never_markup(where):
    assert "<script" not in page(where)


def test_each_class_has_a_line_as_far_as_lines_can_be_told_apart():
    assert page(along(("no", "yes"), 2)).count("<polyline") == 2 + 2 + 2  # rows, classes, losses
    assert page(along(tuple("abcdefgh"), 8)).count("<polyline") == 2 + 6 + 2


def test_without_an_adversary_there_is_no_ceiling_to_draw():
    assert "ceilings" not in page(along(None, 1), ceilings=False)


@pytest.mark.parametrize("rows", [1, 4])
def test_a_handful_of_rows_is_no_reason_to_fail(rows):
    u = np.linspace(0, 1, rows)
    where = Along("u", u, u <= 0, np.ones((rows, 1)), None)
    assert "Where the rows are" in page(where)
