"""Tables of results: means, spreads, gains and missing seeds."""

import pytest

from cida.report.result_tables import build_result_lines, build_table
from cida.report.tables import render_markdown
from cida.runs.records import PublishedScore, RunResult
from cida.runs.result_table import ResultTable

TITLES = {"source-only": "Source-Only", "cida": "CIDA (L2)"}


def texts(line):
    return ResultTable.of([line.cells()]).texts[0]


def row(method, seed, target, seconds, fresh=None):
    told = None if fresh is None else {"target_score": fresh, "all_score": fresh + 0.05}
    return RunResult(method, seed, 0.9 + seed / 20, target, target + 0.1, [], seconds, told)


def test_a_line_is_means_over_seeds_and_the_gain_over_source_only():
    rows = [
        row("source-only", 0, 0.5, 1.0),
        row("source-only", 1, 0.6, 2.0),
        row("cida", 0, 0.7, 3.0),
        row("cida", 1, 0.9, 4.0),
    ]
    plain, cida = build_result_lines(rows, TITLES)
    assert (plain.title, plain.gain, plain.n_seeds) == ("Source-Only", None, 2)
    assert plain.source_score == pytest.approx(0.925)
    assert plain.target_score == pytest.approx(0.55)
    assert plain.seconds == pytest.approx(1.5)
    assert cida.gain == pytest.approx(0.25)
    # The sample deviation of 0.7 and 0.9 is 0.1 times the root of two.
    assert texts(cida) == {
        "method": "CIDA (L2)", "source": "92.5", "target": "80.0", "std": "14.1",
        "worst seed": "70.0", "gain": "+25.0", "seconds": "4",
    }  # fmt: skip
    assert texts(plain)["gain"] == ""


def test_without_source_only_there_is_no_gain_and_with_one_seed_no_spread():
    (line,) = build_result_lines([row("cida", 0, 0.7, 3.0)], TITLES)
    assert line.gain is None
    assert texts(line) == {
        "method": "CIDA (L2)", "source": "90.0", "target": "70.0", "gain": "", "seconds": "3",
    }  # fmt: skip


def test_a_loss_against_source_only_has_its_sign():
    rows = [row("source-only", 0, 0.5, 1.0), row("cida", 0, 0.4, 1.0)]
    assert build_result_lines(rows, TITLES)[1].cells()["gain"].value_text == "-10.0"


def test_fresh_points_and_the_record_have_their_columns():
    rows = [row("cida", 0, 0.7, 3.0, fresh=0.6), row("cida", 1, 0.7, 3.0, fresh=0.8)]
    (line,) = build_result_lines(rows, TITLES, {"cida": PublishedScore(0.95, "all", "a story")})
    words = texts(line)
    assert words["all"] == "80.0"
    assert words["fresh"] == "70.0"
    assert words["fresh std"] == "14.1"
    assert words["fresh worst seed"] == "60.0"
    assert words["fresh all"] == "75.0"
    assert words["record"] == "95.0 (all)"
    (unknown,) = build_result_lines(rows, TITLES, {})
    assert texts(unknown)["record"] == ""


def test_markdown_is_a_head_a_rule_and_a_row_a_method():
    rows = [row("source-only", 0, 0.5, 1.2), row("cida", 0, 0.7, 3.0)]
    assert render_markdown(build_table(build_result_lines(rows, TITLES))) == (
        "| method | source | target | gain | seconds |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| Source-Only | 90.0 | 50.0 |  | 1 |\n"
        "| CIDA (L2) | 90.0 | 70.0 | +20.0 | 3 |\n"
    )


def turned_row(method, seed, *accuracies):
    by_index = [{"lo": 45.0 * k, "score": accuracy} for k, accuracy in enumerate(accuracies)]
    target = sum(accuracies[1:]) / (len(accuracies) - 1)
    return RunResult(method, seed, accuracies[0], target, 0.5, by_index, 1.0)


def test_intervals_of_the_target_have_a_column_each_with_the_mean_over_seeds():
    rows = [turned_row("cida", 0, 0.9, 0.8, 0.4), turned_row("cida", 1, 0.9, 0.6, 0.2)]
    (line,) = build_result_lines(rows, TITLES, by_index=True)
    assert line.interval_accuracies == {"45": pytest.approx(0.7), "90": pytest.approx(0.3)}
    words = texts(line)
    assert list(words)[:5] == ["method", "source", "45", "90", "target"]
    assert (words["45"], words["90"], words["target"]) == ("70.0", "30.0", "50.0")
    assert "record" not in words


def test_the_published_table_stands_below_ours_column_by_column():
    rows = [turned_row("source-only", 0, 0.9, 0.5, 0.3), turned_row("cida", 0, 0.9, 0.8, 0.4)]
    records = {
        "cida": PublishedScore(0.857, "target", "a story", (0.991, 0.872, 0.842)),
        "adda": PublishedScore(0.5, "target", "not run here", (0.5, 0.5, 0.5)),
    }
    table = build_table(build_result_lines(rows, TITLES, records, by_index=True))
    assert [row.role for row in table.rows] == ["own", "own", "published"]
    plain, mine, paper = table.texts
    assert plain.keys() == mine.keys() == paper.keys()
    assert paper == {
        "method": "paper: CIDA (L2)", "source": "99.1", "45": "87.2", "90": "84.2",
        "target": "85.7", "gain": "", "seconds": "",
    }  # fmt: skip
    assert mine["gain"] == "+20.0"


def test_a_published_number_without_intervals_has_no_line_of_its_own():
    rows = [turned_row("cida", 0, 0.9, 0.8, 0.4)]
    lines = build_result_lines(
        rows, TITLES, {"cida": PublishedScore(0.9, "all", "a story")}, by_index=True
    )
    assert len(build_table(lines).rows) == 1


def test_a_method_of_one_seed_among_others_of_several_keeps_its_cells_in_their_columns():
    rows = [row("source-only", 0, 0.5, 1.2), row("cida", 0, 0.7, 3.0), row("cida", 1, 0.9, 3.0)]
    one, several = build_table(build_result_lines(rows, TITLES)).texts
    assert list(one) == list(several)
    assert (one["std"], one["seconds"]) == ("", "1")
