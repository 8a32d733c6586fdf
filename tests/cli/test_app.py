"""Commands are found, read by tyro and told in help; what cannot be read is one sentence."""

import re
import subprocess
import sys

import pytest

from cida.cli import main
from cida.cli.app import find_commands

COMMANDS = {
    "fit": ["--label", "--index", "--periodic", "--out", "--json"],
    "predict": ["--out", "--index"],
    "report": ["--out", "--title", "--no-files"],
    "export": ["--onnx", "--folder", "--no-check"],
    "doctor": ["--json"],
    "check": ["--json"],
    "demo": ["--seeds", "--first-seed", "--methods", "--resume"],
    "reproduce": ["--preset", "--jobs", "--no-figures"],
    "data list": ["--json"],
    "data fetch": ["--json"],
    "data prepare-nsrr": ["--study", "--root", "--no-resume"],
    "data simulate-sleep": ["--subjects", "--seed"],
}


def read_help(capsys, *args):
    assert main([*args, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_usage_an_example_and_the_flags(name, capsys):
    text = read_help(capsys, *name.split())
    assert text.startswith(f"usage: cida {name} ")
    assert f"Example:  cida {name}" in text
    for flag in COMMANDS[name]:
        assert re.search(rf"^\W*{flag}\b", text, re.M), flag
    assert "None" not in text.replace("(default: None)", "")


@pytest.mark.parametrize("name", [name for name in COMMANDS if " " not in name])
def test_every_example_in_help_can_be_read(name, capsys, monkeypatch):
    monkeypatch.setattr(find_commands()[name].load(), "run", lambda *_: 7)
    text = read_help(capsys, name)
    examples = re.findall(r"^Example:  cida (.*(?:\n--.*)*)", text, re.M)
    assert examples
    for example in examples:
        assert main(example.split()) == 7


def test_the_overview_has_a_line_for_each_command(capsys):
    text = read_help(capsys)
    for name in find_commands():
        assert f"• {name} " in text
    assert "docs/command-line.md" in text
    assert list(find_commands())[:2] == ["fit", "predict"]


def test_a_group_has_an_overview_of_its_own(capsys):
    text = read_help(capsys, "data")
    for name in ("list", "fetch", "prepare-nsrr", "simulate-sleep"):
        assert f"• {name} " in text


def test_help_may_be_asked_for_with_a_word(capsys):
    expected = read_help(capsys, "report")
    assert main(["help", "report"]) == 0
    assert capsys.readouterr().out == expected


def test_without_a_command_the_overview_goes_to_stderr_and_the_exit_code_is_2(capsys):
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "usage: cida " in printed.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("reprot", "reprot is no command of cida; did you mean report? known: fit, predict"),
        ("quux", "quux is no command of cida; known: fit, predict"),
        ("--versio", "Unrecognized options: --versio"),
        ("data", "Expected one of {list, fetch"),
        ("data lst", "Unrecognized options: lst; Available subcommands: list, fetch"),
        ("demo --first_sed 3", "Perhaps you meant: --first-seed INT"),
        ("fit a.csv --lable x --out r", "Perhaps you meant: --label COLUMN"),
        ("demo --steps abc", "Error parsing --steps"),
        ("demo --steps", "Missing value for argument '--steps'"),
        ("check a:A b:B", "Unrecognized options: b:B"),
        ("check", "Missing from cida check: MODULE:CLASS"),
        ("data simulate-sleep --out x", "--subjects INT"),
        ("data prepare-nsrr --study messa --root a --out b", "Expected one of ('shhs', 'mesa'"),
    ],
)
def test_a_command_that_cannot_be_read_is_one_sentence(line, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (error,) = printed.err.splitlines()
    assert error.startswith("cida: ")
    assert said in error
    assert list(tmp_path.iterdir()) == []


def test_commands_import_torch_only_when_they_run():
    code = (
        "import sys; from cida.cli import main; "
        "main(['--help']); main(['fti']); main(['fit', '--help']); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "did you mean fit?" in done.stderr
