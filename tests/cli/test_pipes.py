"""Where nobody looks: whole lines, tabs for columns, no colour, nothing that moves."""

import os
import subprocess
import sys

import pytest
from rich.table import Table

from cida.cli import main
from cida.cli.console import Output, print_lines, progress_bar, training_progress


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def table():
    made = Table(title="Two [bold]methods[/]")
    for name in ("method", "target"):
        made.add_column(name)
    made.add_row("Source-Only", "[red]58.5[/]")
    made.add_row("a name that is longer than any terminal " + "x" * 200, "98.0")
    return made


def test_a_table_is_lines_with_tabs(capsys):
    Output().print(table())
    title, head, first, second = capsys.readouterr().out.splitlines()
    assert (title, head, first) == ("Two methods", "method\ttarget", "Source-Only\t58.5")
    assert second.split("\t")[1] == "98.0"


def test_sentences_and_paths_are_not_wrapped(capsys):
    console = Output()
    sentence = " ".join(["many words"] * 60)
    console.print(sentence, highlight=False)
    print_lines(console, "/a/[b]/" + "c" * 300, style="yellow")
    assert capsys.readouterr().out.splitlines() == [sentence, "/a/[b]/" + "c" * 300]


def test_force_color_colours_a_pipe_and_no_more(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = Output()
    print_lines(console, "a warning", style="yellow")
    console.print(table())
    out = capsys.readouterr().out
    assert "\x1b[33ma warning" in out
    assert "Source-Only\t58.5" in out
    assert not console.is_interactive
    monkeypatch.setenv("NO_COLOR", "1")
    print_lines(Output(), "a warning", style="yellow")
    assert capsys.readouterr().out == "a warning\n"


@pytest.mark.parametrize("options", [{}, {"transient": False}, {"counts_bytes": True}])
def test_there_is_no_bar(options, capsys):
    with progress_bar(Output(), **options) as progress:
        progress.add_task("work", total=3, completed=2)
    with training_progress("training", Output()) as callbacks:
        assert callbacks == ()
    assert capsys.readouterr().out == ""


def test_a_verb_in_a_pipe_ends_with_its_path_and_draws_nothing(tmp_path, capsys):
    few = ["--methods", "histogram", "--steps", "5", "--first-seed", "100"]
    assert main(["demo", "--out", str(tmp_path / ("long" * 30)), *few]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == str((tmp_path / ("long" * 30) / "report.html").resolve())
    for sign in "│┃━╸\x1b\r":
        assert sign not in out
    row = next(line for line in out.splitlines() if line.startswith("Histogram head"))
    assert len(row.split("\t")) > 3


@pytest.mark.parametrize("args", [["--help"], ["data", "list"]])
def test_help_and_lists_stop_quietly_when_nobody_reads_on(args):
    command = [sys.executable, "-m", "cida", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()  # as head does when it has its lines
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_an_object_that_nobody_reads_stops_quietly_too(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["data", "list", "--json"]) == 1
        stdout.write("more")  # goes nowhere, and does not fail
