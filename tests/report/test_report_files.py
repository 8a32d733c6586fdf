"""The report's figures and tables as files of their own."""

import csv
import io
import json
import shutil
import struct
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cida.report import read_runs, render_report, write_report
from cida.report.report_files import render_png
from cida.report.tables import render_csv, render_latex
from cida.runs.result_table import Cell, ResultTable

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def written(circle_runs, tmp_path_factory):
    page = render_report(circle_runs, certificate_scope="none")
    folder = tmp_path_factory.mktemp("out")
    write_report(page, folder / "report.html", with_files=True)
    return page, folder


def test_figures_and_tables_are_written_beside_the_report(written):
    page, folder = written
    assert (folder / "report.html").read_text() == page.html
    names = {path.name for path in (folder / "report-files").iterdir()}
    assert {"accuracy.svg", "accuracy.png", "confusion.svg", "losses.svg", "encodings.svg",
            "encodings.png", "results.csv", "results.tex"} <= names  # fmt: skip
    assert names == {
        *(f"{name}.{kind}" for name in page.figures for kind in ("svg", "png")),
        *(f"{name}.{kind}" for name in page.tables for kind in ("csv", "tex")),
    }


def test_without_files_there_is_the_report_alone(circle_runs, tmp_path):
    page = render_report(circle_runs, certificate_scope="none")
    write_report(page, tmp_path / "deep/report.html", with_files=False)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["report.html"]


def test_every_svg_is_xml_and_every_png_as_large_twice_over(written):
    page, folder = written
    for name, chart in page.figures.items():
        root = ET.parse(folder / f"report-files/{name}.svg").getroot()
        assert (float(root.get("width")), float(root.get("height"))) == (
            pytest.approx(chart.width, rel=1e-4), pytest.approx(chart.height, rel=1e-4),
        )  # fmt: skip
        data = (folder / f"report-files/{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", data[16:24])
        assert width == pytest.approx(2 * chart.width, abs=2)
        assert height == pytest.approx(2 * chart.height, abs=2)


def test_a_png_has_the_colours_of_the_light_page(written):
    from PIL import Image

    _, folder = written
    image = Image.open(folder / "report-files/accuracy.png").convert("RGB")
    colours = {colour for _, colour in image.getcolors(2**24)}
    assert (255, 255, 255) in colours
    assert (0xE3, 0xF1, 0xE8) in colours  # the source's band
    assert len(colours) > 50


def test_a_table_read_back_from_csv_is_the_table(written):
    page, folder = written
    for name, cells in page.tables.items():
        text = (folder / f"report-files/{name}.csv").read_text()
        assert list(csv.DictReader(io.StringIO(text))) == cells.texts


words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).filter(
    lambda text: "**" not in text
)


@given(st.lists(st.fixed_dictionaries({"method": words, "a, b": words}), min_size=1, max_size=4))
def test_any_words_survive_csv(found):
    """But for a sign before those that a spreadsheet would take for a formula."""
    lines = list(csv.DictReader(io.StringIO(render_csv(ResultTable.of(found)))))
    assert len(lines) == len(found)
    for line, cells in zip(lines, found, strict=True):
        for name, meant in cells.items():
            told = line[name]
            assert told == (f"'{meant}" if meant.startswith(("=", "@")) else meant) or (
                meant.startswith(("+", "-")) and told == f"'{meant}"
            )


@pytest.mark.parametrize("words", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3+cmd", "\t=1"])
def test_no_name_is_a_formula_in_a_spreadsheet(words):
    assert f"'{words}" in render_csv(ResultTable.of([{"method": words, "gain": Cell(1.5, "+.1f")}]))


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell(39.54, "+.1f"), "+39.5"),
        (Cell(-1082.5), "-1082.5"),
        (Cell(1.2, "+.1f", note=" %"), "+1.2 %"),
        (Cell(-1e-5), "-1e-05"),
        (Cell(), ""),
        (Cell(19000.0, display="2022-01-08"), "2022-01-08"),
    ],
)
def test_numbers_are_written_as_they_are(cell, text):
    assert render_csv(ResultTable.of([{"name": "a", "gain": cell}])) == f"name,gain\na,{text}\n"


def test_bold_is_not_marked_in_csv_and_bold_in_latex():
    cell = Cell(93.1, ".1f", is_best=True, note=" (92.8)")
    found = ResultTable.of([{"task": "A → B", "CIDA": cell}])
    assert render_csv(found) == "task,CIDA\nA → B,93.1 (92.8)\n"
    assert r"A $\rightarrow$ B & \textbf{93.1} (92.8) \\" in render_latex(found)


@given(words)
def test_latex_reads_no_word_as_a_command(text):
    line = render_latex(ResultTable.of([{"name": text}])).splitlines()[4].removesuffix(r" \\")
    for command in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}",
                    r"\textless{}", r"\textgreater{}", r"\ldots{}"):  # fmt: skip
        line = line.replace(command, "")
    for sign in "&%$#_{}":
        line = line.replace(f"\\{sign}", "")
    line = line.replace(r"$\rightarrow$", "").replace(r"$\leq$", "").replace(r"$\geq$", "")
    line = line.replace("$^2$", "")
    assert not set(line) & set("\\&%$#_{}~^")


def test_without_resvg_one_sentence_says_what_to_do(circle_runs, tmp_path, monkeypatch):
    monkeypatch.setattr("cida.report.report_files.find_spec", lambda name: None)
    page = render_report(circle_runs, certificate_scope="none")
    with pytest.raises(ImportError, match=r"pip install 'cida\[plot\]', or add --no-files"):
        write_report(page, tmp_path / "report.html", with_files=True)
    assert list(tmp_path.iterdir()) == []
    write_report(page, tmp_path / "report.html", with_files=False)


def test_png_bytes_draw_what_the_svg_says():
    from PIL import Image

    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="2">'
        '<rect width="4" height="2" fill="#ff0000"/></svg>'
    )
    image = Image.open(io.BytesIO(render_png(svg))).convert("RGB")
    assert image.size == (8, 4)
    assert image.getcolors() == [(32, (255, 0, 0))]


@pytest.fixture(scope="module")
def eleven_by_five(circle_folder, tmp_path_factory):
    """As many runs as the largest table has, each a copy of a real one under its own name."""
    folder = tmp_path_factory.mktemp("large")
    for number in range(11):
        for seed in range(100, 105):
            mine = folder / f"m{number}-seed{seed}"
            shutil.copytree(circle_folder / "histogram-seed100", mine)
            for name in ("run.json", "result.json"):
                words = json.loads((mine / name).read_text())
                words |= {"method": f"m{number}", "seed": seed}
                words |= {"title": f"Method {number}"} if name == "run.json" else {}
                (mine / name).write_text(json.dumps(words))
    return folder


def test_eleven_methods_with_five_seeds_stay_under_ten_megabytes(eleven_by_five, read_page):
    runs = read_runs([eleven_by_five])
    assert len(runs) == 55
    page = render_report(runs, certificate_scope="none")
    size = len(page.html.encode())
    assert size < 10 * MEGABYTE
    read_page(page.html)
    without = render_report(replace(runs, runs=runs.runs[:5]), certificate_scope="none")
    assert size < 11 * len(without.html.encode())
