"""The Tab key: tyro's own scripts, asked in a real shell."""

import shutil
import subprocess

import pytest

from cida.cli import main

# What is typed, the last word being the one at the cursor, and what may stand there.
QUESTIONS = [
    (["re"], {"report", "reproduce"}),
    (["data", ""], {"list", "fetch", "prepare-nsrr", "simulate-sleep", "-h", "--help"}),
    (["data", "prepare-nsrr", "--study", ""], {"shhs", "mesa", "sof"}),
    (["fit", "--lab"], {"--label"}),
    (["reproduce", "--no"], {"--no-figures"}),
]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell, capsys):
    assert main(["--tyro-print-completion", shell]) == 0
    script = capsys.readouterr().out
    for name in ("simulate-sleep", "--first-seed", "shhs"):
        assert name in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_flags_and_choices(capsys, tmp_path):
    assert main(["--tyro-print-completion", "bash"]) == 0
    path = tmp_path / "cida.bash"
    path.write_text(capsys.readouterr().out)
    questions = (" ".join(f"'{word}'" for word in ["cida", *words]) for words, _ in QUESTIONS)
    lines = [
        f"source {path}",
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _tyro_cida; ',
        'echo "${COMPREPLY[*]}"; }',
        *(f"ask {question}" for question in questions),
    ]
    shell = subprocess.run(
        ["bash", "--norc"], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = [set(line.split()) for line in shell.stdout.splitlines()]
    assert answers == [names for _, names in QUESTIONS]
