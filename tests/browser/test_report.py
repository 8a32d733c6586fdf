"""The report in a real browser: sorting, themes, keyboard, zoom, print, and how soon it opens."""

import json
import shutil
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from cida.cli import main
from cida.estimators import CidaWarning
from cida.report import RunCollection, read_runs, render_report, write_report

SECONDS = 2.0  # to open the largest report, on a quiet machine


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A short demo; its report has all sections."""
    folder = tmp_path_factory.mktemp("demo")
    methods = ["--methods", "source-only", "cida", "histogram", "default"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        command = ["demo", "--steps", "25", "--seeds", "2", "--first-seed", "100"]
        assert main([*command, *methods, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def report(runs):
    return runs / "report.html"


@pytest.fixture(scope="module")
def large(runs, tmp_path_factory):
    """Eleven methods with five seeds, each a copy of a real run under its own name."""
    folder = tmp_path_factory.mktemp("large")
    sources = [path for path in sorted(runs.iterdir()) if path.is_dir()]
    for number in range(11):
        for seed in range(100, 105):
            mine = folder / f"m{number}-seed{seed}"
            shutil.copytree(sources[number % len(sources)], mine)
            for name in ("run.json", "result.json"):
                words = json.loads((mine / name).read_text())
                words |= {"method": f"m{number}", "seed": seed}
                words |= {"title": f"Method {number}"} if name == "run.json" else {}
                (mine / name).write_text(json.dumps(words))
    page = render_report(read_runs([folder]), certificate_scope="none")
    write_report(page, folder / "report.html", with_files=False)
    return folder / "report.html"


def column(page, name):
    table = page.locator("table.sortable").first
    heads = [head.rstrip(" ↕↑↓") for head in table.locator("thead th").all_inner_texts()]
    place = heads.index(name) + 1
    return table.locator(f"tbody tr > :nth-child({place})").all_inner_texts()


def head(page, name):
    return page.locator("table.sortable").first.get_by_role("button", name=name, exact=True)


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_a_table_sorts_by_click_and_by_keyboard_and_says_so(open_file, report):
    page = open_file(report)
    numbers = sorted(float(cell) for cell in column(page, "target"))
    button = head(page, "target")
    button.click()
    cell = button.locator("xpath=..")
    assert cell.get_attribute("aria-sort") == "ascending"
    assert [float(text) for text in column(page, "target")] == numbers
    button.focus()
    page.keyboard.press("Enter")
    assert cell.get_attribute("aria-sort") == "descending"
    assert [float(text) for text in column(page, "target")] == numbers[::-1]
    head(page, "method").focus()
    page.keyboard.press("Space")
    assert column(page, "method") == sorted(column(page, "method"))
    assert cell.get_attribute("aria-sort") == "none"


def test_what_is_not_known_comes_last_whichever_way(open_file, report):
    page = open_file(report)
    for _ in range(2):
        head(page, "gain").click()
        assert column(page, "gain")[-1] == ""


def test_lines_are_turned_off_and_on_by_keyboard(open_file, report):
    page = open_file(report)
    button = page.locator("button[data-toggles=cida]")
    line = page.locator("[data-key=cida]").first
    assert line.is_visible()
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    assert not line.is_visible()
    page.keyboard.press("Space")
    assert line.is_visible()
    assert page.locator("[data-key=histogram]").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_until_the_reader_chooses(open_file, report, scheme):
    page = open_file(report, color_scheme=scheme)
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}
    other = "dark" if scheme == "light" else "light"
    assert background(page) == grounds[scheme]
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == other
    assert background(page) == grounds[other]
    page.reload()
    assert background(page) == grounds[other]
    page.locator("#theme").click()
    assert background(page) == grounds[scheme]


def test_the_first_thing_by_keyboard_is_the_way_to_the_results(open_file, report):
    page = open_file(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_what_has_the_focus_is_seen(open_file, report):
    page = open_file(report)
    for _ in range(4):
        page.keyboard.press("Tab")
        style = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(style) != "none"


@pytest.mark.parametrize(("width", "zoom"), [(360, 1), (1280, 1), (1280, 2), (640, 2)])
def test_the_page_never_scrolls_sideways(open_file, report, width, zoom):
    # Zoomed twice, a window has half as many CSS pixels.
    size = {"width": width // zoom, "height": 700}
    page = open_file(report, viewport=size, device_scale_factor=zoom)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    assert overflow(page) <= 0
    table = page.locator(".wide").first
    assert table.evaluate("box => box.scrollWidth - box.clientWidth") >= 0


def test_a_wide_table_scrolls_in_its_own_box_by_keyboard(open_file, report):
    page = open_file(report, viewport={"width": 360, "height": 700})
    box = page.locator(".wide").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.wide').scrollLeft > 0")


def test_on_paper_all_is_open_on_white_and_no_figure_is_cut(open_file, report):
    # A sheet of A4 has about 700 CSS pixels between its margins.
    page = open_file(report, color_scheme="dark", viewport={"width": 700, "height": 900})
    page.locator("#theme").click()
    page.locator("#theme").click()
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert background(page) == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert overflow(page) <= 0
    figures = page.locator("figure")
    assert figures.count() > 5
    cut = "all => all.filter(one => getComputedStyle(one).breakInside !== 'avoid').length"
    assert figures.evaluate_all(cut) == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0


def test_it_prints_to_a_pdf_of_several_sheets(open_file, report, tmp_path):
    page = open_file(report)
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    data = (tmp_path / "report.pdf").read_bytes()
    assert data.count(b"/Type /Page\n") >= 4 or data.count(b"/Type /Page") >= 5


def test_landmarks_and_names_are_there_for_who_does_not_see(open_file, report):
    page = open_file(report)
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1, role
    nameless = page.evaluate(
        "[...document.querySelectorAll('svg[role=img], img, button, [role=region]')].filter(part =>"
        " !(part.getAttribute('aria-label') || part.alt || part.textContent.trim())).length"
    )
    assert nameless == 0


def test_the_largest_report_opens_soon(open_file, large, capsys):
    started = time.perf_counter()
    page = open_file(large)
    page.wait_for_function("document.querySelector('.ex-panel') !== null")
    seconds = time.perf_counter() - started
    with capsys.disabled():
        size = large.stat().st_size / 1e6
        words = f"11 methods with 5 seeds: {size:.1f} MB, opened in {seconds:.2f} s"
        sys.stdout.write(f"\n{words}\n")
    assert large.stat().st_size < 10_000_000
    assert seconds < 5 * SECONDS  # other work may be going on beside it
    assert overflow(page) <= 0


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A report of two tasks, one of which has a dial."""
    folder = tmp_path_factory.mktemp("worlds")
    command = ["reproduce", "worlds", "--tasks", "plane", "hours", "--methods", "source-only"]
    more = ["--seeds", "1", "--first-seed", "100", "--steps", "25", "--no-figures"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        assert main([*command, *more, "--out", str(folder)]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The report of a table of one's own."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(100)
    lines = ["heat,state,a,b"]
    for heat, code, (a, b) in zip(
        rng.uniform(-10, 45, 400), rng.integers(0, 2, 400), rng.normal(size=(400, 2)), strict=True
    ):
        state = ("fails", "holds")[code] if heat < 20 else ""
        lines.append(f"{heat:.2f},{state},{a + 2 * code:.3f},{b:.3f}")
    (folder / "own.csv").write_text("\n".join(lines) + "\n")
    words = ["fit", str(folder / "own.csv"), "--label", "state", "--index", "heat"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        more = ["--steps", "30", "--seed", "100", "--out", str(folder / "run")]
        assert main([*words, *more]) == 0
    return folder / "run/report.html"


def test_on_a_narrow_page_the_head_of_a_table_has_two_lines_at_most(open_file, own):
    page = open_file(own, viewport={"width": 420, "height": 900})
    height, line = page.evaluate(
        "(() => { const head = document.querySelector('table').tHead; return "
        "[head.getBoundingClientRect().height, parseFloat(getComputedStyle(head).lineHeight)]; })()"
    )
    assert height < 2.9 * line
    assert overflow(page) <= 0


def test_a_lone_chart_takes_more_of_a_wide_page(open_file, own):
    page = open_file(own, viewport={"width": 1200, "height": 900})
    widths = page.locator(".panels.one > figure").evaluate_all("all => all.map(f => f.clientWidth)")
    assert widths
    assert all(600 < width <= 640 for width in widths)
    pair = page.locator(".panels.two > figure").evaluate_all("all => all.map(f => f.clientWidth)")
    assert all(width > 500 for width in pair)


def test_a_few_matrices_of_confusion_take_more_of_a_wide_page(open_file, own, tmp_path):
    (run,) = read_runs([own.parent])
    view = run.snapshot
    truth = np.where(view.source, view.predicted.argmax(1), np.nan)
    known = RunCollection((replace(run, snapshot=replace(view, truth=truth)),))
    page = render_report(known, certificate_scope="none")
    write_report(page, tmp_path / "report.html", with_files=False)
    page = open_file(tmp_path / "report.html", viewport={"width": 1200, "height": 900})
    strip = page.locator(".strip").first
    drawn = strip.locator("svg").first.evaluate("one => one.getBoundingClientRect().width")
    assert drawn > 124


def test_each_of_several_tasks_has_an_explorer_that_starts_when_it_is_reached(open_file, several):
    page = open_file(several)
    sections = page.locator("section.explorer")
    assert sections.count() == 2
    assert sections.nth(0).get_attribute("data-ready") == "true"
    assert sections.nth(1).get_attribute("data-ready") is None
    sections.nth(1).scroll_into_view_if_needed()
    page.locator("section.explorer >> nth=1").locator(".ex-panel").first.wait_for()
    value = sections.nth(1).locator(".ex-value").first
    before = value.inner_text()
    other = sections.nth(0).locator(".ex-value").first.inner_text()
    sections.nth(1).locator("input[type=range], [role=slider]").first.focus()
    page.keyboard.press("ArrowRight")
    assert value.inner_text() != before
    assert sections.nth(0).locator(".ex-value").first.inner_text() == other


def test_on_paper_no_explorer_is_left_out(open_file, several):
    page = open_file(several)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("section.explorer[data-ready]").count() == 2
