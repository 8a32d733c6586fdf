"""``cida check``: the conformance suite for your own discriminator or game."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import asdict, dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cida.cli.console import print_json
from cida.errors import did_you_mean


@dataclass(frozen=True)
class Check:
    """Runs the conformance suite on a Discriminator or Game of your own.

    Example:  cida check my_package.heads:MyDiscriminator

    Example:  cida check cida:Histogram
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODULE:CLASS")]
    """The class, as module:Class; modules in the current folder are found too."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints a line for each check; exit code 1 if one failed."""
        from cida.check import check  # it imports torch

        results = check(_load(self.target))
        table = Table("check", "on", "result", title=f"Conformance of {self.target}")
        for one in results:
            outcome = "[green]passed[/]" if one.passed else f"[red]{escape(one.failure)}[/]"
            table.add_row(one.check, one.subject, outcome)
        console.print(table)
        failed = sum(not one.passed for one in results)
        if self.json:
            findings = [{**asdict(one), "passed": one.passed} for one in results]
            print_json("check", target=self.target, failed=failed, findings=findings)
        console.print(f"{len(results) - failed} passed, {failed} failed")
        return 1 if failed else 0


def _load(target: str) -> type:
    module_name, colon, class_name = target.partition(":")
    if not (module_name and colon and class_name):
        raise ValueError(f"target is {target!r}; write it as module:Class.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # importing runs the user's code, which may raise anything
        raise ImportError(
            f"target names the module {module_name!r}, but {type(error).__name__}: {error}."
        ) from error
    loaded_class = getattr(module, class_name, None)
    if not isinstance(loaded_class, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        hint = did_you_mean(class_name, classes).strip()
        end = f"; {hint}" if hint else "."
        raise ValueError(f"target names {class_name!r}, which is no class in {module_name!r}{end}")
    return loaded_class
