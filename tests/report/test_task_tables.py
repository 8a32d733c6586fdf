"""Tables of several tasks, from rows made by hand."""

import pytest

from cida.methods import METHODS, Role
from cida.report.task_tables import (
    build_detail_table,
    build_paper_table,
    summarize_categorical_wins,
    transpose_table,
)
from cida.runs.records import PublishedScore, RunResult, TaskRecord

TITLES = {
    "source-only": "Source-Only", "dann": "DANN", "histogram": "Histogram head",
    "oracle": "Oracle (all labels)",
}  # fmt: skip


def task(name, title, **records):
    found = {m: PublishedScore(accuracy, "target", "a story") for m, accuracy in records.items()}
    return TaskRecord(name, title, published_scores=found)


YOUNG = task("s/young", "Young → old", dann=0.771, pcida=0.806)
OLD = task("s/old", "Old → young")


def row(task, method, target, seed=0, source=0.9, seconds=1.0, more=None):
    role = METHODS[method].role if method in METHODS else Role.ADAPTIVE
    return RunResult(
        method,
        seed,
        source,
        target,
        0.5,
        [],
        seconds,
        extra_metrics=more,
        task=task.name,
        role=role,
    )


def told(task, **targets):
    return [row(task, m.replace("_", "-"), target) for m, target in targets.items()]


def marked(table):
    """The cells as Markdown writes them."""
    return [
        {n: f"**{c.value_text}**{c.note}" if c.is_best else str(c) for n, c in row.cells.items()}
        for row in table.rows
    ]


def paper_lines(*arguments):
    return marked(build_paper_table(*arguments))


def detail_lines(*arguments):
    return marked(build_detail_table(*arguments))


# --- the paper's form ----------------------------------------------------------------------------


def test_a_line_a_task_with_the_best_in_bold_and_the_papers_line_below_it():
    rows = [
        *told(YOUNG, source_only=0.7, dann=0.75, histogram=0.8, oracle=0.9),
        *told(OLD, source_only=0.625, dann=0.5, histogram=0.6, oracle=0.65),
    ]
    assert paper_lines(rows, [YOUNG, OLD], TITLES) == [
        {
            "task": "Young → old", "Source-Only": "70.0", "DANN": "75.0",
            "Histogram head": "**80.0**", "Oracle (all labels)": "90.0",
        },
        {
            "task": "the paper, on real data", "Source-Only": "", "DANN": "77.1",
            "Histogram head": "", "Oracle (all labels)": "",
        },
        {
            "task": "Old → young", "Source-Only": "**62.5**", "DANN": "50.0",
            "Histogram head": "60.0", "Oracle (all labels)": "65.0",
        },
    ]  # fmt: skip


def test_turned_it_has_a_line_a_method_and_a_column_a_task():
    rows = [
        *told(YOUNG, source_only=0.7, dann=0.75, oracle=0.9),
        *told(OLD, source_only=0.625, dann=0.5, oracle=0.65),
    ]
    titles = {method: TITLES[method] for method in ("source-only", "dann", "oracle")}
    for tasks, old, young in (([YOUNG, OLD], "(2)", "(1)"), ([OLD, YOUNG], "(1)", "(2)")):
        table = build_paper_table(rows, tasks, titles)
        plain, beside = (
            marked(transpose_table(table, with_paper=False)),
            marked(transpose_table(table, with_paper=True)),
        )
        assert [list(line) for line in plain] == [["method", "(1)", "(2)"]] * 3
        assert [line["method"] for line in plain] == list(titles.values())
        assert [line[young] for line in plain] == ["70.0", "**75.0**", "90.0"]
        assert [line[young] for line in beside] == ["70.0", "**75.0** (77.1)", "90.0"]
        assert [line[old] for line in plain] == [line[old] for line in beside]
        assert [line[old] for line in plain] == ["**62.5**", "50.0", "65.0"]


def test_equal_bests_are_both_bold_and_the_oracle_is_not_even_then():
    (line,) = paper_lines(
        told(OLD, source_only=0.5, dann=0.75, histogram=0.75, oracle=0.75), [OLD], TITLES
    )
    assert list(line.values())[1:] == ["50.0", "**75.0**", "**75.0**", "75.0"]
    (alone,) = paper_lines(told(OLD, oracle=0.9), [OLD], {"oracle": "Oracle"})
    assert alone["Oracle"] == "90.0"


def test_the_mean_over_seeds_decides_and_what_was_not_run_is_empty():
    rows = [
        row(YOUNG, "dann", 0.9), row(YOUNG, "dann", 0.5, seed=1), row(YOUNG, "histogram", 0.72),
    ]  # fmt: skip
    line, paper = paper_lines(rows, [YOUNG, OLD], TITLES)
    assert (line["DANN"], line["Histogram head"], line["Source-Only"]) == ("70.0", "**72.0**", "")
    assert paper["DANN"] == "77.1"


# --- what is behind it ---------------------------------------------------------------------------


def test_the_gain_is_over_source_only_and_its_share_is_of_the_oracles():
    found = detail_lines(
        told(YOUNG, source_only=0.6, dann=0.55, histogram=0.75, oracle=0.8), [YOUNG], TITLES
    )
    assert [line["method"] for line in found] == list(TITLES.values())
    assert {line["task"] for line in found} == {"Young → old"}
    assert [line["gain"] for line in found] == ["", "-5.0", "+15.0", "+20.0"]
    assert [line["of the gap"] for line in found] == ["", "-25%", "75%", "100%"]


@pytest.mark.parametrize("oracle", [{}, {"oracle": 0.6}, {"oracle": 0.5}])
def test_without_a_gap_there_is_no_share_of_it(oracle):
    rows = told(OLD, source_only=0.6, histogram=0.7, **oracle)
    line = detail_lines(rows, [OLD], TITLES)[1]
    assert (line["gain"], line["of the gap"]) == ("+10.0", "")


def test_without_source_only_there_is_no_gain():
    (line,) = detail_lines(told(OLD, histogram=0.7), [OLD], TITLES)
    assert (line["gain"], line["of the gap"]) == ("", "")


def test_a_task_is_compared_with_its_own_source_only_and_oracle():
    rows = [
        *told(YOUNG, source_only=0.5, histogram=0.6, oracle=0.7),
        *told(OLD, source_only=0.8, histogram=0.82, oracle=0.9),
    ]
    found = detail_lines(rows, [YOUNG, OLD], TITLES)
    assert [(line["task"], line["of the gap"]) for line in found[1::3]] == [
        ("Young → old", "50%"), ("Old → young", "20%"),
    ]  # fmt: skip


def test_a_line_has_spread_worst_seed_kappa_and_recalls():
    def more(kappa, awake, rem):
        return {"kappa": kappa, "recall": {"awake": awake, "rem": rem}}

    rows = [
        row(OLD, "histogram", 0.7, 0, 0.9, 2.0, more(0.5, 0.8, 0.2)),
        row(OLD, "histogram", 0.9, 1, 0.8, 4.0, more(0.7, 0.9, 0.4)),
    ]
    # The sample deviation of 0.7 and 0.9 is 0.1 times the root of two.
    assert detail_lines(rows, [OLD], TITLES) == [
        {
            "task": "Old → young", "method": "Histogram head", "seeds": "2", "source": "85.0",
            "target": "80.0", "std": "14.1", "worst seed": "70.0", "gain": "", "of the gap": "",
            "kappa": "0.60", "awake": "85.0", "rem": "30.0", "seconds": "3",
        }
    ]  # fmt: skip
    (one,) = detail_lines(rows[:1], [OLD], TITLES)
    assert (one["seeds"], one["std"], one["worst seed"]) == ("1", "", "70.0")


# --- who wins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["adda", "dann", "cdann", "mdd", "cua"])
def test_a_categorical_winner_is_told(method):
    titles = {**TITLES, method: method.upper()}
    rows = told(YOUNG, source_only=0.5, histogram=0.6, oracle=0.9, **{method: 0.7})
    assert summarize_categorical_wins(rows, [YOUNG, OLD], titles) == [
        f"Young → old: the best is {method.upper()}, which takes domains for categories."
    ]


def test_where_another_wins_nothing_is_told_and_the_oracle_does_not_count():
    assert (
        summarize_categorical_wins(
            told(YOUNG, dann=0.6, histogram=0.7, oracle=0.8), [YOUNG], TITLES
        )
        == []
    )
    assert summarize_categorical_wins(told(YOUNG, dann=0.6, source_only=0.7), [YOUNG], TITLES) == []
    assert len(summarize_categorical_wins(told(YOUNG, dann=0.6, oracle=0.8), [YOUNG], TITLES)) == 1
    assert summarize_categorical_wins([], [YOUNG], TITLES) == []
