"""``--help`` as a person reads it: examples first, and nothing wider than the terminal."""

import re
import subprocess
import sys
from dataclasses import fields

import pytest
import tyro

from cida.cli import VERBS, main
from cida.cli.flags import flags
from cida.cli.usage import short

LEAVES = {
    " ".join(filter(None, (outer, name))): verb
    for outer, verbs in {"": VERBS, "data": VERBS["data"].verbs}.items()
    for name, verb in verbs.items()
    if not hasattr(verb, "verbs")
}


def helped(capsys, *words):
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def bare(line):
    """The command of an example, without the folder that is made before it."""
    return re.sub(r"^mkdir -p \S+ && ", "", line.strip())


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("words", LEAVES)
def test_help_has_examples_and_every_flag_and_fits(words, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = helped(capsys, *words.split())
    assert max(map(len, text.splitlines())) <= min(columns, 100)
    lines = text.splitlines()
    example = next(n for n, line in enumerate(lines) if line.startswith("Example"))
    assert bare(lines[example + 1]).startswith(f"cida {words}")
    for flag in flags(LEAVES[words]):
        assert f"  {flag.shown}" in text
        assert flag.words, f"{flag.name} of {words} has no words"
    for ugly in ("None", "default: )", "{", "STR", "│", "╭", "\x1b"):
        assert ugly not in text


@pytest.mark.parametrize("words", LEAVES)
def test_the_flags_that_help_shows_are_those_that_are_read(words):
    verb = LEAVES[words]
    assert len(flags(verb)) == len(fields(verb))
    typed = []
    for flag in flags(verb):
        values = [flag.choices[0] if flag.choices else "1"] if not flag.switch else []
        typed += [*([] if flag.positional else [flag.name]), *values]
    tyro.cli(verb, args=typed)  # exits if it knows one of them not


@pytest.mark.parametrize("words", LEAVES)
def test_every_example_can_be_read(words, capsys):
    lines = helped(capsys, *words.split()).replace("\\\n", " ").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("Example"))
    for line in lines[start + 1 : lines.index("", start) if "" in lines[start:] else None]:
        typed = bare(line).split(">")[0].split()[1:]
        tyro.cli(LEAVES[words], args=typed[len(words.split()) :])


def test_the_overview_has_a_line_for_each_verb_in_the_order_people_meet_them(capsys):
    text = helped(capsys)
    places = [text.index(f"\n  {name} ") for name in VERBS]
    assert places == sorted(places)
    assert list(VERBS)[:3] == ["demo", "fit", "predict"]
    assert "docs/command-line.md" in text
    assert text.count("\n  cida ") == 4  # how it is used, and three examples


def test_data_has_an_overview_of_its_own(capsys):
    text = helped(capsys, "data")
    for name in VERBS["data"].verbs:
        assert f"\n  {name} " in text


def test_help_may_be_asked_for_with_a_word(capsys):
    expected = helped(capsys, "fit")
    assert main(["help", "fit"]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("words", [[], ["data"]])
def test_without_a_verb_the_overview_goes_to_stderr_and_the_exit_code_is_2(words, capsys):
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Verbs" in told.err


def test_the_line_of_every_verb_is_what_its_docstring_begins_with():
    assert {name: short(VERBS[name]) for name in VERBS} == VERBS.lines


def test_help_and_mistakes_do_not_wait_for_torch():
    code = (
        "import sys; from cida.cli import main; main(['--help']); main(['fti']); "
        "main(['--version']); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "did you mean fit?" in done.stderr
