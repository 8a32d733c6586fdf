"""The page of a user's own table: panels along its index, whatever its rows are like."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cida.report import RunCollection, read_runs, render_report
from cida.report.index_axis import find_source_bands
from cida.selection.expected_score import ExpectedScore
from cida.spaces import Line, Product


def page_of(runs):
    return render_report(runs, certificate_scope="none")


def test_a_source_across_midnight_is_shaded_on_both_sides(ward_folder):
    (run,) = read_runs([ward_folder])
    first, second = find_source_bands(run.snapshot)
    assert first.low < 0.5
    assert 5.5 < first.high <= 6
    assert 21 <= second.low < 21.5
    assert second.high > 23.5


def test_each_class_has_a_line_as_far_as_lines_can_be_told_apart(ward_folder):
    (run,) = read_runs([ward_folder])
    rng = np.random.default_rng(100)
    many = replace(
        run.snapshot,
        classes=tuple("abcdefgh"),
        predicted=rng.dirichlet(np.ones(8), len(run.snapshot.u)),
        truth=np.full(len(run.snapshot.u), np.nan),
        expected=(),
    )
    lines = []
    for view in (run.snapshot, many):
        html = page_of(RunCollection((replace(run, snapshot=view),))).html
        along = html.partition("Along hour</h2>")[2].partition("<h2")[0]
        lines.append(along.count("<polyline") - 2)  # those of the rows
    assert lines == [3, 6]


@pytest.mark.parametrize("rows", [1, 4])
def test_a_handful_of_rows_is_no_reason_to_fail(ward_folder, rows, read_page):
    (run,) = read_runs([ward_folder])
    v = run.snapshot
    few = replace(
        v, u=v.u[:rows], source=v.source[:rows], predicted=v.predicted[:rows],
        truth=v.truth[:rows], z=v.z[:rows], expected=(),
    )  # fmt: skip
    page = page_of(RunCollection((replace(run, snapshot=few),)))
    assert "Where the rows are" in page.html
    read_page(page.html)


def test_expected_accuracy_is_drawn_with_its_interval_and_dashed_where_it_is_a_guess(ward_folder):
    (run,) = read_runs([ward_folder])
    told = (
        ExpectedScore(6.0, 12.0, 0.8, 0.7, 0.9, 100, True),
        ExpectedScore(12.0, 21.0, 0.6, 0.4, 0.8, 300, False),
    )
    page = page_of(RunCollection((replace(run, snapshot=replace(run.snapshot, expected=told)),)))
    part = page.html.partition("Expected accuracy</h2>")[2].partition("<h2")[0]
    assert part.count("<polygon") == 2
    assert part.count(' dashed"') == 1
    assert "on the whole target 65 % (48 to 82)" in part
    assert [line["expected"] for line in page.tables["expected"].texts] == ["80.0", "60.0"]
    assert page.tables["results"].texts[0]["expected on the target"] == "65 % (48 to 82)"


@pytest.mark.parametrize(
    ("lows", "floor"), [((0.88, 0.93), 80), ((0.8, 0.95), 70), ((0.31, 0.9), 30), ((0.0, 0.5), 0)]
)
def test_the_axis_of_expected_accuracy_begins_below_the_lowest_interval_of_all(
    ward_folder, lows, floor
):
    (run,) = read_runs([ward_folder])
    runs = [
        replace(
            run,
            folder=run.folder.parent / f"run{number}",
            snapshot=replace(
                run.snapshot, expected=(ExpectedScore(6.0, 21.0, 0.97, low, 1.0, 100, True),)
            ),
        )
        for number, low in enumerate(lows)
    ]
    html = page_of(RunCollection(tuple(runs))).html
    part = html.partition("Expected accuracy</h2>")[2].partition("<h2")[0]
    labels = re.findall(r'role="img" aria-label="([^"]*)"', part)
    assert len(labels) == 2
    assert all(label.endswith(f"; the axis begins at {floor} %") for label in labels)
    assert f"The axis begins at {floor} %." in part
    for chart in re.findall(r"<figure>.*?</figure>", part):
        ticks = [int(t) for t in re.findall(r'<text class="end"[^>]*>(\d+) %</text>', chart)]
        assert floor <= min(ticks) <= floor + 10
        assert max(ticks) == 100


def on_a_line(run, u, known):
    """The run's view along a line, with a truth where it is known."""
    view = run.snapshot
    some = np.resize(np.arange(len(view.u)), len(u))
    truth = np.where(known, np.arange(len(u)) % 3, np.nan)
    moved = replace(
        view, space=Product([Line(float(u.min()), float(u.max()))]), u=u[:, None],
        source=known, truth=truth, predicted=view.predicted[some], z=view.z[some], expected=(),
    )  # fmt: skip
    return page_of(RunCollection((replace(run, snapshot=moved),)))


def spans(page):
    found = [(line["hour from"], line["hour to"]) for line in page.tables["confusion"].texts]
    return list(dict.fromkeys(found))


def test_cells_of_confusion_cover_the_rows_with_a_known_truth_alone(ward_folder):
    (run,) = read_runs([ward_folder])
    u = np.linspace(-10, 45, 1101)
    found = spans(on_a_line(run, u, u <= 20))
    assert found[0] == ("-10", "-6.25")
    assert found[-1] == ("16.2", "20")
    assert len(found) == 8
    gap = spans(on_a_line(run, u, (u <= 0) | (u >= 40)))
    assert "0" in {hi for _, hi in gap}
    assert "40" in {lo for lo, _ in gap}
    assert (gap[0][0], gap[-1][1]) == ("-10", "45")


def test_few_rows_have_few_cells_of_confusion_and_one_value_has_one(ward_folder):
    (run,) = read_runs([ward_folder])
    u = np.linspace(0, 1, 300)
    assert len(spans(on_a_line(run, u, u < 0.3))) == 3
    steps = np.repeat([5.0, 6.0], 100)
    page = on_a_line(run, steps, steps == 5)
    assert spans(page) == [("5", "5")]
    assert 'aria-label="5, 100 rows;' in page.html


def with_truth(run):
    """The run, with a truth for every row of the source."""
    view = run.snapshot
    truth = np.where(view.source, np.arange(len(view.u)) % 3, np.nan)
    return replace(run, snapshot=replace(view, truth=truth))


def test_a_circle_has_cells_up_to_where_the_truth_ends(ward_folder):
    (run,) = read_runs([ward_folder])
    page = page_of(RunCollection((with_truth(run),)))
    edges = [float(edge) for pair in spans(page) for edge in pair]
    assert all(edge <= 6 or edge >= 21 for edge in edges)
    assert {0.0, 24.0} <= set(edges)


def test_one_run_has_wide_panels_and_several_have_one_name_everywhere(ward_folder):
    run = with_truth(*read_runs([ward_folder]))
    alone = page_of(RunCollection((run,)))
    assert '<div class="panels one">' in alone.html
    assert '<div class="panels two">' in alone.html
    other = replace(run, folder=run.folder.parent / "other")
    page = page_of(RunCollection((other, run)))
    names = ["other (auto)", "run (auto)"]
    assert [line["run"] for line in page.tables["results"].texts] == names
    assert list(dict.fromkeys(line["method"] for line in page.tables["confusion"].texts)) == names
    heads = re.findall(r"<h[34][^>]*>([^<]*)</h[34]>", page.html)
    assert not {"run", "other", "auto"} & set(heads)
    assert set(names) <= set(heads)
    assert "The other run</summary>" in page.html


def test_numbers_that_are_predicted_are_shown_as_numbers(ward_folder, read_page):
    (run,) = read_runs([ward_folder])
    view = replace(
        run.snapshot,
        classes=None,
        predicted=run.snapshot.u,
        truth=run.snapshot.u[:, 0],
        expected=(),
    )
    page = page_of(RunCollection((replace(run, snapshot=view),)))
    read_page(page.html)
    assert "mean prediction" in page.html
    assert "Confusion" not in page.html
