"""The command line: ``cida VERB``. One module a verb."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

import tyro
from rich.console import Console
from rich.markup import escape

from cida.cli.check import Check
from cida.cli.data import Data
from cida.cli.demo import Demo
from cida.cli.doctor import Doctor
from cida.cli.fit import Fit
from cida.cli.predict import Predict
from cida.cli.report import Report
from cida.cli.reproduce import Reproduce
from cida.cli.speed import Speed
from cida.datasets.download import DownloadError
from cida.datasets.sleep import PreparationError
from cida.version import __version__

__all__ = ["main"]

DESCRIPTION = """cida: continuously indexed domain adaptation.

Labels exist for some values of a continuous index u; be right at the others.

Start with:  cida demo"""


class Verb(Protocol):
    """A dataclass whose fields are the flags."""

    def run(self, console: Console) -> int: ...


VERBS: dict[str, Callable[..., Verb]] = {
    "demo": Demo,
    "reproduce": Reproduce,
    "fit": Fit,
    "predict": Predict,
    "report": Report,
    "doctor": Doctor,
    "speed": Speed,
    "check": Check,
    "data": Data,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb. Exit code 0: done; 1: the job failed; 2: the input was wrong."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments == ["--version"]:
        Console().print(f"cida {__version__}")
        return 0
    verb: Verb = tyro.extras.subcommand_cli_from_dict(
        VERBS, prog="cida", description=DESCRIPTION, args=arguments, sort_subcommands=False
    )
    try:
        return verb.run(Console())
    except KeyboardInterrupt as stopped:
        _say(str(stopped) or "interrupted; what was finished before is kept.")
        return 1
    except (ChildProcessError, DownloadError, PreparationError) as error:
        _say(str(error))
        return 1
    except (ValueError, TypeError, OSError, ImportError) as error:
        logging.getLogger("cida").debug("the error in full", exc_info=True)
        _say(str(error).replace("\n", " "))
        return 2
    except FloatingPointError as error:
        _say(str(error))
        return 1


def _say(sentence: str) -> None:
    Console(stderr=True).print(f"[bold red]cida:[/] {escape(sentence)}", soft_wrap=True)
