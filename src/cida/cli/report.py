"""``cida report``: what can be said of a run of your own table without target labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

__all__ = ["Report"]

REPORT = "report.html"


@dataclass(frozen=True)
class Report:
    """Prints whether the encoding of a run still tells the index, and what the doctor says.

    Ends with the path of the run's report, to open in a browser.

    Example:  cida report runs/patients
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder of a run, as cida fit writes it."""

    def run(self, console: Console) -> int:
        """Prints the certificate's words and, last, the report's path."""
        trust = self._words().get("trust")
        if trust is None:
            raise ValueError(
                f"RUN is {self.run_folder}, which has no certificate; give a run of cida fit, or "
                "ask in Python: model.alignment_report(X, domain_index=u)."
            )
        for line in (*trust["certificate"], *trust["faults"]):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        page = self.run_folder / REPORT
        if page.is_file():
            console.print(str(page.resolve()), soft_wrap=True, highlight=False)
        return 0

    def _words(self) -> dict[str, Any]:
        path = self.run_folder / "run.json"
        try:
            return dict(json.loads(path.read_text()))
        except FileNotFoundError:
            raise ValueError(
                f"RUN is {self.run_folder}, which has no run.json; give the folder of a run."
            ) from None
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(f"{path} cannot be read ({error}).") from None
