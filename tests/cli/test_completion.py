"""The Tab key, asked in real shells."""

import shutil
import subprocess

import pytest

from cida.cli import VERBS, main
from cida.cli.fit import FIT_METHODS
from cida.experiments.registry import DATASET_BY_NAME, EXPERIMENTS

CIRCLE = EXPERIMENTS["circle"][0]

# What is typed, the last word being the one at the cursor, and what may stand there.
ASKED = [
    ([""], list(VERBS)),
    (["re"], ["report", "reproduce"]),
    (["data", ""], list(VERBS["data"].verbs)),
    (["data", "fetch", ""], list(DATASET_BY_NAME)),
    (["data", "prepare-nsrr", "--study", ""], ["shhs", "mesa", "sof"]),
    (["fit", "--lab"], ["--label"]),
    (["reproduce", "--no"], ["--no-figures"]),
    (["fit", "x.csv", "--method", ""], list(FIT_METHODS)),
    (["reproduce", "rot"], ["rotating-mnist", "rotating-digits"]),
    (["reproduce", "circle", "--preset", ""], list(CIRCLE.presets)),
    (["reproduce", "circle", "--methods", "hist"], ["histogram"]),
    (["reproduce", "sleep-intra", "--tasks", "sof"], ["sof-extrapolation", "sof-interpolation"]),
    (["completion", ""], ["bash", "zsh", "fish"]),
]
MANY = [(["reproduce", "circle", "--methods", "dann", "cida"], ["cida", "cida-l1"])]
FILES = [(["fit", ""], []), (["reproduce", "circle", "--preset", "best", ""], [])]


@pytest.fixture
def script(capsys, tmp_path):
    """The script for a shell, in a file."""

    def printed(shell):
        assert main(["completion", shell]) == 0
        path = tmp_path / f"cida.{shell}"
        path.write_text(capsys.readouterr().out)
        return path

    return printed


def answers(shell, text):
    """A line for each question."""
    found = subprocess.run(shell, input=text, capture_output=True, text=True, check=True)
    assert found.stderr == ""
    return [line.split() for line in found.stdout.splitlines()]


def quoted(words):
    return " ".join(f"'{word}'" for word in ["cida", *words])


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_verbs_flags_and_names(script):
    lines = [
        f"source {script('bash')}",
        "complete -p cida",
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cida; ',
        'echo "${COMPREPLY[*]}"; }',
        *(f"ask {quoted(words)}" for words, _ in [*ASKED, *MANY, *FILES]),
    ]
    registered, *found = answers(["bash", "--norc"], "\n".join(lines))
    assert registered == ["complete", "-o", "bashdefault", "-o", "default", "-F", "_cida", "cida"]
    assert found == [names for _, names in [*ASKED, *MANY, *FILES]]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_zsh_completes_verbs_flags_and_names(script):
    # Its own functions only work at a prompt; in their place are some that tell what is asked.
    lines = [
        "compadd() { shift; print -r -- ${(M)@:#${words[CURRENT]}*}; }",
        "compdef() { : }",
        "_files() { print }",
        f"source {script('zsh')}",
        'ask() { words=("$@"); CURRENT=$#; _cida; }',
        *(f"ask {quoted(words)}" for words, _ in [*ASKED, *MANY, *FILES]),
    ]
    found = answers(["zsh", "-f"], "\n".join(lines))
    assert found == [names for _, names in [*ASKED, *MANY, *FILES]]


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_completes_verbs_flags_and_names(script):
    lines = [
        f"source {script('fish')}",
        *(
            f"echo (complete -C 'cida {' '.join(words)}' | string replace -r '\\t.*' '')"
            for words, _ in ASKED
        ),
    ]
    found = answers(["fish", "--no-config"], "\n".join(lines))
    assert [set(line) for line in found] == [set(names) for _, names in ASKED]


def test_no_script_has_a_hole_left(script):
    for shell in ("bash", "zsh", "fish"):
        text = script(shell).read_text()
        for hole in ("@CASES", "@OUTER", "@PLACE"):
            assert hole not in text
