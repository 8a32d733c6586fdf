"""``cida report``, through the command line."""

import json
import re
import shutil

import pytest

from cida.cli import main

RUNS = ("source-only-seed100", "histogram-seed100")


@pytest.fixture(scope="module")
def sine(tmp_path_factory):
    """Two methods on Sine, as ``cida reproduce`` leaves them."""
    folder = tmp_path_factory.mktemp("sine") / "out"
    command = ["reproduce", "sine", "--steps", "15", "--seeds", "1", "--first-seed", "100"]
    methods = ["--methods", "source-only", "histogram"]
    assert main([*command, *methods, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def copied(sine, tmp_path):
    shutil.copytree(sine, tmp_path / "runs")
    return tmp_path / "runs"


def lines_of(capsys):
    return capsys.readouterr().out.rstrip().splitlines()


def test_it_prints_the_verdicts_and_last_the_path(copied, capsys):
    assert main(["report", str(copied)]) == 0
    lines = lines_of(capsys)
    assert lines[-1] == str((copied / "report.html").resolve())
    for title in ("Source-Only", "Histogram head"):
        assert any(line.startswith(f"{title}: ") and " z " in f" {line}" for line in lines)
    page = (copied / "report.html").read_text()
    assert page.count("The whole certificate") == 2
    names = {path.name for path in (copied / "report-files").iterdir()}
    assert {"accuracy.svg", "accuracy.png", "results.csv", "results.tex"} <= names


def test_it_tells_the_experiments_story_again(copied, sine):
    assert main(["report", str(copied), "--no-files"]) == 0
    page, first = ((folder / "report.html").read_text() for folder in (copied, sine))
    image = r'src="data:image/svg\+xml;base64,([^"]*)"'
    assert re.findall(image, page) == re.findall(image, first)
    assert len(re.findall(image, page)) == 2
    assert "cida reproduce sine --preset best --seeds 1 --first-seed 100 --steps 15" in page
    assert not (copied / "report-files").exists()


def test_one_run_alone_has_a_report_in_its_own_folder(copied, capsys):
    assert main(["report", str(copied / RUNS[1]), "--no-files"]) == 0
    assert lines_of(capsys)[-1] == str((copied / RUNS[1] / "report.html").resolve())
    page = (copied / RUNS[1] / "report.html").read_text()
    assert "Histogram head" in page
    assert "Source-Only</th>" not in page
    assert "--methods histogram --seeds 1 --first-seed 100" in page


def test_several_folders_go_into_the_file_that_is_named(copied, tmp_path, capsys):
    out = tmp_path / "new/page.html"
    words = ["report", *(str(copied / run) for run in RUNS), "--out", str(out)]
    assert main([*words, "--title", "Side by <side>"]) == 0
    assert "<h1>Side by &lt;side&gt;</h1>" in out.read_text()
    assert (out.parent / "report-files/results.csv").is_file()
    assert lines_of(capsys)[-1] == str(out.resolve())


def test_several_folders_have_their_report_here_and_keep_their_own(copied, monkeypatch, capsys):
    first = copied / RUNS[0]
    (first / "report.html").write_text("of its own")
    (copied.parent / "here").mkdir()
    monkeypatch.chdir(copied.parent / "here")
    words = ["report", *(str(copied / run) for run in RUNS), "--no-files"]
    for _ in range(2):  # its own it may replace
        assert main(words) == 0
        assert lines_of(capsys)[-1] == str(copied.parent / "here/report.html")
    assert (first / "report.html").read_text() == "of its own"
    assert "Histogram head" in (copied.parent / "here/report.html").read_text()


def test_one_folder_named_twice_is_one(copied, monkeypatch, capsys):
    monkeypatch.chdir(copied)
    assert main(["report", RUNS[0], f"{RUNS[0]}/", "--no-files"]) == 0
    assert lines_of(capsys)[-1] == str(copied / RUNS[0] / "report.html")


@pytest.mark.parametrize("page", ["<p>My own words.</p>", "<p>Made by cida.</p>"])
def test_a_file_that_is_not_ours_is_not_replaced(page, copied, monkeypatch, capsys):
    monkeypatch.chdir(copied.parent)
    (copied.parent / "report.html").write_text(page)
    words = ["report", *(f"runs/{run}" for run in RUNS), "--no-files"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "was not made by cida" in error
    assert "--out" in error
    assert len(error.strip().splitlines()) == 1
    assert (copied.parent / "report.html").read_text() == page
    assert main([*words, "--out", "report.html"]) == 0  # said so, it is


@pytest.mark.parametrize(
    ("where", "named"),
    [(RUNS[0], [".", f"../{RUNS[1]}"]), (".", list(RUNS)), (".", [".", RUNS[0]])],
)
def test_from_within_a_folder_of_runs_its_report_is_not_replaced(
    where, named, copied, monkeypatch, capsys
):
    before = (copied / "report.html").read_bytes()
    monkeypatch.chdir(copied / where)
    assert main(["report", *named, "--no-files"]) == 2
    assert "with --out" in capsys.readouterr().err
    assert (copied / "report.html").read_bytes() == before
    assert not (copied / RUNS[0] / "report.html").exists()


def test_a_second_report_is_the_same_file(copied):
    assert main(["report", str(copied), "--no-files"]) == 0
    first = (copied / "report.html").read_bytes()
    assert main(["report", str(copied), "--no-files"]) == 0
    assert (copied / "report.html").read_bytes() == first


def test_faults_are_printed_once(copied, capsys):
    run = copied / RUNS[1]
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert events
    assert main(["report", str(copied), "--no-files"]) == 0
    lines = lines_of(capsys)
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "RUN"),
        (["nowhere"], "RUN is nowhere, which is not there"),
        (["empty"], "RUN is empty, which has no run.json"),
        (["runs", "--out", "empty"], "out is empty, which is a folder"),
        (["broken"], "result.json is damaged"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    words, told, copied, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    shutil.copytree(copied / RUNS[0], tmp_path / "broken")
    (tmp_path / "broken/result.json").write_text("{}")
    try:
        assert main(["report", *words]) == 2
    except SystemExit as stop:
        assert stop.code == 2  # noqa: PT017
    error = capsys.readouterr().err
    assert told in error
    assert not (tmp_path / "report.html").exists()


def test_without_resvg_it_says_what_to_do_before_the_work(copied, monkeypatch, capsys):
    monkeypatch.setattr("cida.report.report_files.find_spec", lambda name: None)
    before = (copied / "report.html").read_bytes()
    assert main(["report", str(copied)]) == 2
    error = capsys.readouterr().err
    assert "pip install 'cida[plot]', or add --no-files" in error
    assert len(error.strip().splitlines()) == 1
    assert (copied / "report.html").read_bytes() == before
    assert main(["report", str(copied), "--no-files"]) == 0
