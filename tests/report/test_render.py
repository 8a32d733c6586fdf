"""The page: what it says, and that any browser and reader can make sense of it."""

import json
import re
import shutil
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cida.certificate import Certificate
from cida.io.json_decode import from_dict
from cida.report import RunCollection, read_runs, render_report
from cida.report.result_tables import build_result_lines, build_table
from cida.report.sections.encodings_section import project_principal_components
from cida.runs.fit_lines import data_lines, result_lines
from cida.runs.fit_record import FitRecord
from cida.runs.records import Origin

EVIL = "<script>alert(1)</script>"


def page_of(runs, **more):
    return render_report(runs, **{"certificate_scope": "none", **more})


@pytest.fixture(scope="module")
def circle_page(circle_runs):
    return page_of(circle_runs, certificate_scope="every")


@pytest.fixture(scope="module")
def ward_page(ward_folder):
    return page_of(read_runs([ward_folder]))


def changed(runs, change, **rows):
    """The same runs, each with other figures: ``change(run)`` gives a row's fields."""
    found = [replace(r, result=replace(r.result, **change(r), **rows)) for r in runs]
    return RunCollection(tuple(found))


def headings(html):
    found = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    return [re.sub("<.*?>", "", words) for words in found]


# --- what is there -------------------------------------------------------------------------------


def test_every_section_is_there_and_the_page_is_well_formed(circle_page, read_page):
    reader = read_page(circle_page.html)
    assert headings(circle_page.html) == [
        "Results", "Explorer", "Accuracy along u", "Confusion along u",
        "Does the encoding still tell the index?", "What the doctor says",
        "Losses against their ceilings", "Encodings", "Figures of the experiment",
        "What was run, and how to repeat it",
    ]  # fmt: skip
    assert {"header", "nav", "main", "footer"} <= set(reader.tags)
    assert reader.links[0] == "#main"
    assert "$" not in circle_page.html.partition("<script>")[0]


def test_the_page_says_what_was_run_and_how_to_repeat_it(circle_page, circle_runs):
    html = circle_page.html
    assert "cida demo --seeds 2" in html
    for run in circle_runs:
        assert run.record.data in html
        assert run.command in html
    for name, version in circle_runs.runs[0].record.versions.items():
        assert f"{name} {version}" in html
    assert "training points" in html


def test_the_headline_is_the_table_of_results(circle_page, circle_runs, read_page):
    rows = [run.result for run in circle_runs]
    titles = {run.method: run.title for run in circle_runs}
    order = ["source-only", "cida", "histogram"]
    rows.sort(key=lambda row: (order.index(row.method), row.seed))
    expected = build_table(build_result_lines(rows, titles, {})).texts
    found = circle_page.tables["results"].texts
    columns = list(expected[0])
    assert [{name: line[name] for name in columns} for line in found] == expected
    texts = read_page(circle_page.html).cells
    first = texts.index("Source-Only")
    assert texts[first : first + len(found[0])] == list(found[0].values())


def test_tables_have_captions_and_scopes(circle_page, ward_page):
    for html in (circle_page.html, ward_page.html):
        tables = re.findall(r"<table.*?</table>", html, re.DOTALL)
        assert tables
        for table in tables:
            assert "<caption>" in table
            assert '<th scope="col"' in table
            assert table.count('<th scope="row">') == table.count("<tr") - 1


def test_a_published_number_stands_beside_ours_with_its_story(circle_runs):
    fresh = {"target_score": 0.8, "all_score": 0.85}
    html = page_of(changed(circle_runs, lambda run: {}, fresh=fresh)).html
    assert "<td>92.8 (target)</td>" in html or "92.8 (target)" in html
    assert "CIDA (L2): the authors&#39; code, saved output" in html
    assert "<td>80.0</td>" in html
    assert "<td>85.0</td>" in html


def test_an_oracle_is_never_called_the_best(circle_runs):
    scores = {"source-only": 0.4, "cida": 0.6, "histogram": 0.99}
    runs = changed(circle_runs, lambda run: {"target_score": scores[run.method]})
    found = [
        replace(run, record=replace(run.record, is_oracle=run.method == "histogram"))
        for run in runs
    ]
    html = page_of(RunCollection(tuple(found))).html
    assert "Best on the target: <b>CIDA (L2)</b>, 60.0 %" in html
    assert html.count('class="best"') == 1


def test_several_seeds_are_averaged_and_banded(circle_runs):
    scores = {100: 0.8, 101: 0.9}
    html = page_of(changed(circle_runs, lambda run: {"target_score": scores[run.seed]})).html
    assert "<td>85.0</td>" in html
    assert "<td>80.0</td>" in html
    assert "worst to the best of 2 seeds" in html
    one = RunCollection(tuple(run for run in circle_runs if run.seed == 100))
    assert html.count("<polygon") == 3
    assert page_of(one).html.count("<polygon") == 0


def test_methods_with_unlike_numbers_of_seeds_share_a_table(circle_runs, read_page):
    some = [run for run in circle_runs if run.method == "cida" or run.seed == 100]
    page = page_of(RunCollection(tuple(some)))
    first, second, third = page.tables["results"].texts
    assert list(first) == list(second) == list(third)
    assert (first["std"], third["std"]) == ("", "")
    assert second["std"] != ""
    read_page(page.html)


def test_pictures_of_a_story_are_images_of_their_own(circle_page):
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', circle_page.html)
    assert b64decode(data).decode() == "<svg>picture</svg>"
    assert "A &lt;title&gt;" in circle_page.html


def test_the_certificate_of_every_method_is_there_and_few_where_few_are_asked_for(
    circle_runs, circle_page
):
    assert circle_page.html.count("The whole certificate") == 3
    started, seen = [], []
    page = page_of(
        circle_runs, certificate_scope="few", on_start=started.append, on_certificate=seen.append
    )
    assert page.html.count("The whole certificate") == 1
    assert started == [1]
    assert [run.seed for run in seen] == [100]
    assert "Not looked at here" in page.html


def test_every_seed_is_in_the_panels_of_losses_and_source_only_has_none(circle_page):
    losses = circle_page.html.partition("Losses against their ceilings</h2>")[2]
    losses = losses.partition("<h2")[0]
    assert losses.count("<figure>") == 2
    assert losses.count("<polyline") == 2 * 2 * 2  # methods, seeds, loss and ceiling
    assert losses.count("mean of 2") >= 2


def test_confusion_counts_every_row_whose_truth_is_known(circle_page, circle_runs):
    lines = circle_page.tables["confusion"].texts
    mine = [line for line in lines if line["method"] == "CIDA (L2)"]
    count = sum(int(line["as 0"]) + int(line["as 1"]) for line in mine)
    views = [run.snapshot for run in circle_runs if run.method == "cida"]
    assert count == sum(int(np.isfinite(view.truth).sum()) for view in views)
    right = sum(int(line[f"as {line['true']}"]) for line in mine)
    assert right == sum(int((v.predicted.argmax(1) == v.truth).sum()) for v in views)
    assert f"{count:,} rows, {100 * right / count:.1f} % of them right" in circle_page.html


def test_ten_classes_and_twelve_methods_stay_one_page(circle_runs, read_page):
    first = next(run for run in circle_runs if run.method == "cida" and run.seed == 100)
    rng = np.random.default_rng(100)
    view = replace(
        first.snapshot,
        classes=tuple(f"class {k}" for k in range(10)),
        predicted=rng.dirichlet(np.ones(10), len(first.snapshot.u)),
        truth=rng.integers(0, 10, len(first.snapshot.u)).astype(float),
    )
    runs = [
        replace(
            first,
            snapshot=view,
            record=replace(first.record, method=f"m{k}", title=f"Method {k}"),
            result=replace(first.result, method=f"m{k}"),
        )
        for k in range(12)
    ]
    page = page_of(RunCollection(tuple(runs)))
    reader = read_page(page.html)
    assert "The other 11 methods" in page.html
    styles = set(re.findall(r'<polyline class="line (s\d+)', page.html))
    assert {f"s{k}" for k in range(12)} <= styles
    assert sum("right by class: class 0" in (label or "") for label in reader.labels) == 8 * 12


# --- users' own tables ---------------------------------------------------------------------------


def test_the_page_of_a_users_table_has_what_was_understood_and_what_can_be_trusted(
    ward_page, ward_folder, read_page
):
    words = json.loads((ward_folder / "run.json").read_text())
    reader = read_page(ward_page.html)
    text = " ".join(reader.text)
    fit = from_dict(FitRecord, words["fit"])
    certificate = Certificate.from_dict(words["fit"]["certificate"])
    for line in (*data_lines(fit.data), *result_lines(fit), *certificate.summary()):
        assert line in text
    assert headings(ward_page.html)[:4] == ["Results", "Explorer", "What it came to", "Along hour"]
    assert "Where the rows are" in text
    assert "What is predicted" in text
    assert "cida fit" in text
    (line,) = ward_page.tables["results"].texts
    assert line["rows"] == "420"
    assert line["source, as trained"] == f"{100 * words['fit']['figures']['train_score']:.1f} %"


def test_without_an_adversary_there_is_no_ceiling_to_draw(circle_runs):
    plain = RunCollection(tuple(run for run in circle_runs if run.method == "source-only"))
    assert "ceilings" not in page_of(plain).html.partition("<main")[2].partition("<footer")[0]


# --- what is missing, and what is mixed -----------------------------------------------------------


def test_older_runs_without_a_view_say_what_is_missing_and_why(circle_runs, read_page):
    page = page_of(RunCollection(tuple(replace(run, snapshot=None) for run in circle_runs)))
    read_page(page.html)
    assert "kept no snapshot.safetensors; run them again" in page.html
    assert "Accuracy along u" in page.html
    assert "Explorer" not in headings(page.html)


def test_runs_of_several_kinds_are_chapters_side_by_side(
    circle_folder, ward_folder, tmp_path, read_page
):
    other = tmp_path / "paper/cida-seed100"
    shutil.copytree(circle_folder / "cida-seed100", other)
    words = json.loads((other / "run.json").read_text())
    words["origin"]["preset"] = "paper"
    (other / "run.json").write_text(json.dumps(words))
    page = page_of(read_runs([circle_folder, other, ward_folder]))
    read_page(page.html)
    assert headings(page.html) == [
        "Circle, preset demo", "circle, preset paper", "Models of your own table",
    ]  # fmt: skip
    assert {"circle-preset-demo-results", "models-of-your-own-table-results"} <= set(page.tables)
    assert "8 runs side by side" in page.html


def test_a_cut_short_run_is_named_on_the_page(circle_runs):
    left = replace(circle_runs, incomplete_folders=(Path("runs/x"),))
    assert "runs/x is left out" in page_of(left).html


def test_the_same_runs_give_the_same_page(circle_runs, circle_page):
    assert page_of(circle_runs, certificate_scope="every").html == circle_page.html


def test_a_title_of_ones_own(circle_runs):
    html = page_of(circle_runs, title="Tuesday's <runs>").html
    assert "<h1>Tuesday&#39;s &lt;runs&gt;</h1>" in html


def test_principal_components_are_those_of_scikit_learn(circle_runs):
    from sklearn.decomposition import PCA

    z = circle_runs.runs[0].snapshot.z
    points, shares = project_principal_components(z)
    other = PCA(2, svd_solver="full").fit(z.astype(np.float64))
    np.testing.assert_allclose(
        np.abs(points), np.abs(other.transform(z.astype(np.float64))), atol=1e-5
    )
    np.testing.assert_allclose(shares, other.explained_variance_ratio_, atol=1e-6)


# --- hostile words -------------------------------------------------------------------------------

hostile = st.sampled_from(
    [EVIL, "</script><b>", "\"&'", "' onload='x", '" onload="x', "<!--", "]]>", "$title", "\\u003c"]
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(method=hostile, title=hostile, name=hostile, command=hostile)
def test_what_a_user_wrote_is_text_and_never_markup(
    circle_runs, ward_folder, read_page, method, title, name, command
):
    (own,) = read_runs([ward_folder])
    view = replace(own.snapshot, index_names=(name,), classes=(title, name, command), expected=())
    data = replace(own.record.fit.data, label=title, index_names=(name,), missing=(command,))
    fit = replace(own.record.fit, data=data, warnings=(name,))
    record = replace(own.record, method=method, origin=Origin(command=command), fit=fit)
    mine = replace(own, record=record, snapshot=view)
    toys = [
        replace(
            run,
            record=replace(
                run.record,
                method=f"{run.method}{method}",
                title=f"{run.title}{title}",
                data=name,
                origin=replace(run.record.origin, command=command, preset=method),
            ),
            snapshot=replace(run.snapshot, index_names=(name,), classes=(title, f"{name} ")),
        )
        for run in circle_runs
    ]
    code = [s for s, data in scripts(read_page(page_of(RunCollection((own,))).html)) if not data]
    for runs in (RunCollection((mine,)), RunCollection(tuple(toys)), RunCollection((mine, *toys))):
        reader = read_page(page_of(runs, title=title).html)
        found = scripts(reader)
        assert [s for s, data in found if not data] in (code, [code[0], code[-1]])
        explored = [json.loads(s) for s, data in found if data]  # what is no code is JSON
        if len(runs) == 1:
            assert explored[0]["columns"][0]["name"] == name
        for word in (title, name):
            assert any(word in text for text in reader.text + [str(x) for x in reader.labels])


def scripts(reader):
    return list(zip(reader.scripts, reader.data, strict=True))
