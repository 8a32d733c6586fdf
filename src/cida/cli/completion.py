"""``cida completion``: what the Tab key knows, as a script for the shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro
from rich.console import Console

from cida.cli.fit import FIT_METHODS
from cida.cli.flags import Flag, flags
from cida.cli.usage import short
from cida.experiments.circle_sine.toy_tasks import DEMO_RECIPES
from cida.experiments.registry import DATASET_BY_NAME, EXPERIMENTS

__all__ = ["Completion"]

Names = Mapping[str, Iterable[str]]  # by the first word behind the verb; "" if any will do


@dataclass(frozen=True)
class Completion:
    """Prints a script that completes verbs, flags and names at the Tab key.

    Names are those of experiments, methods, presets, protocols, tasks and data sets; the methods
    are those of the experiment that was typed. Put the script where the shell looks for it: for
    bash ~/.local/share/bash-completion/completions/cida, for zsh a file _cida in a folder of
    $fpath, for fish ~/.config/fish/completions/cida.fish. Print it again after an upgrade.

    Example:  mkdir -p ~/.local/share/bash-completion/completions &&
    cida completion bash > ~/.local/share/bash-completion/completions/cida

    Example:  mkdir -p ~/.zfunc && cida completion zsh > ~/.zfunc/_cida

    Example:  mkdir -p ~/.config/fish/completions &&
    cida completion fish > ~/.config/fish/completions/cida.fish
    """

    shell: Annotated[
        tyro.conf.Positional[Literal["bash", "zsh", "fish"]], tyro.conf.arg(metavar="SHELL")
    ]
    """The shell: bash, zsh or fish."""

    def run(self, console: Console) -> int:
        """Prints the script."""
        from cida.cli import VERBS  # it imports this module

        script = _fish(VERBS) if self.shell == "fish" else _script(self.shell, VERBS)
        sys.stdout.write(script)
        sys.stdout.flush()
        return 0


def _leaves(verbs: Mapping[str, type], before: str = "") -> Iterator[tuple[str, type]]:
    """Every verb that does something, as it is typed: fit, data fetch."""
    for name, verb in verbs.items():
        if inner := getattr(verb, "verbs", None):
            yield from _leaves(inner, f"{name} ")
        else:
            yield before + name, verb


def _groups(verbs: Mapping[str, type]) -> dict[str, Mapping[str, type]]:
    """The verbs of ``cida`` itself, by "", and of each verb that holds others."""
    inner = {name: verb.verbs for name, verb in verbs.items() if hasattr(verb, "verbs")}
    return {"": verbs, **inner}


def _names(verb: str, flag: Flag) -> Names:
    """What may stand behind a flag, where that is known before the data are."""
    if flag.choices:
        return {"": flag.choices}
    by_experiment: dict[str, Names] = {
        "--methods": {name: parts.tasks[0].methods for name, parts in EXPERIMENTS.items()},
        "--preset": {name: parts.tasks[0].presets for name, parts in EXPERIMENTS.items()},
        "--protocol": {name: parts.tasks[0].protocols for name, parts in EXPERIMENTS.items()},
        "--tasks": {
            name: [part.task_name for part in parts.tasks] for name, parts in EXPERIMENTS.items()
        },
        "NAME": {"": EXPERIMENTS},
    }
    known: dict[str, dict[str, Names]] = {
        "demo": {"--methods": {"": DEMO_RECIPES}},
        "fit": {"--method": {"": FIT_METHODS}},
        "data fetch": {"NAME": {"": DATASET_BY_NAME}},
        "reproduce": by_experiment,
    }
    return known.get(verb, {}).get(flag.name, {})


def _spellings(verb: type) -> list[str]:
    """Each flag once: --no-figures rather than --figures, which is so anyway."""
    known = [flag for flag in flags(verb) if not flag.positional]
    return [*(flag.spellings[-1 if flag.default else 0] for flag in known), "--help"]


# --- bash and zsh --------------------------------------------------------------------------------


def _script(shell: str, verbs: Mapping[str, type]) -> str:
    groups = _groups(verbs)
    cases = [
        *(_case(names, f"{group}|verbs|") for group, names in groups.items()),
        *(_case(_spellings(verb), f"{name}|flags|") for name, verb in _leaves(verbs)),
        *_name_cases(verbs),
    ]
    outer = "|".join(group for group in groups if group)
    text = {"bash": BASH, "zsh": ZSH}[shell].replace("@PLACE", PLACE)
    return text.replace("@OUTER", outer).replace("@CASES", "\n        ".join(cases))


def _name_cases(verbs: Mapping[str, type]) -> Iterator[str]:
    for name, verb in _leaves(verbs):
        for flag in flags(verb):
            for word, names in _names(name, flag).items():
                place = "" if flag.positional else flag.name
                places = [f"{name}|{place}|{word}", f"{name}|{place}+|{word}"]
                yield _case(names, *places[: 1 + flag.many])


def _case(names: Iterable[str], *places: str) -> str:
    """What may stand in a place, "VERB|FLAG|FIRST WORD"; an empty last part stands for any."""
    patterns = "|".join(shlex.quote(place) + "*" * place.endswith("|") for place in places)
    return f"{patterns}) found={shlex.quote(' '.join(filter(None, names)))} ;;"


# What both shells do: where the cursor is, by the words before it. A flag that has had a value
# ends in +.
PLACE = """    local verb="" first="" flag="" place="" found=""
    while [[ $# -gt 0 && "$1" != -* ]]; do
        case "$verb" in
            "" | @OUTER) verb="${verb:+$verb }$1" ;;
            *) break ;;
        esac
        shift
    done
    [[ $# -gt 0 && "$1" != -* ]] && first="$1"
    while [[ $# -gt 0 ]]; do
        case "$1" in
            -*) flag="$1" place="$1" ;;
            *) place="${flag}+" ;;
        esac
        shift
    done
    case "$verb" in "" | @OUTER) place=verbs ;; esac
    case "$current" in -*) place=flags ;; esac
    case "$verb|$place|$first" in
        @CASES
    esac
"""

BASH = """# Completion of cida for bash; cida completion --help says where to put it.
_cida() {
    local current="${COMP_WORDS[COMP_CWORD]}"
    set -- "${COMP_WORDS[@]:1:COMP_CWORD-1}"
@PLACE    COMPREPLY=($(compgen -W "$found" -- "$current"))
}
complete -o default -o bashdefault -F _cida cida
"""

ZSH = """#compdef cida
# Completion of cida for zsh; cida completion --help says where to put it.
_cida() {
    local current="${words[CURRENT]}"
    set -- "${(@)words[2,CURRENT-1]}"
@PLACE    if [[ -n "$found" ]]; then compadd -- ${=found}; else _files; fi
}
if [[ "$funcstack[1]" == _cida ]]; then _cida "$@"; else compdef _cida cida; fi
"""


# --- fish ----------------------------------------------------------------------------------------


def _fish(verbs: Mapping[str, type]) -> str:
    lines = ["# Completion of cida for fish; cida completion --help says where to put it."]
    for group, inner in _groups(verbs).items():
        seen = f"{_seen(group)}; and not {_seen(' '.join(inner))}"
        when = seen if group else "__fish_use_subcommand"
        lines += [_complete(when, f"-xa {name}", short(verb)) for name, verb in inner.items()]
    for name, verb in _leaves(verbs):
        lines += [line for flag in flags(verb) for line in _fish_flag(name, flag)]
    return "\n".join(lines) + "\n"


def _fish_flag(verb: str, flag: Flag) -> Iterator[str]:
    words = verb.split()
    when = "; and ".join(map(_seen, words))
    if flag.positional:
        when += f"; and test (count (commandline -opc)) -eq {len(words) + 1}"
    typed = "" if flag.positional else f"-l {flag.spellings[-1 if flag.default else 0][2:]}"
    if not flag.positional and "" not in _names(verb, flag):
        yield _complete(when, typed + " -r" * (not flag.switch), flag.words)
    for word, names in _names(verb, flag).items():
        told = shlex.quote(" ".join(filter(None, names)))
        also = f"; and {_seen(word)}" if word else ""
        yield _complete(when + also, f"{typed} -xa {told}".strip(), flag.words)


def _seen(words: str) -> str:
    return f"__fish_seen_subcommand_from {words}"


def _complete(when: str, what: str, words: str) -> str:
    told = words.split(";")[0].split(".")[0].split(":")[0]
    return f"complete -c cida -n {shlex.quote(when)} {what} -d {_fish_quote(told)}"


def _fish_quote(words: str) -> str:
    """In fish a backslash escapes a quote inside quotes."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
