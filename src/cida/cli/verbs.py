"""The verbs of the command line: which there are, and where each is at home."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module

__all__ = ["VERBS", "Verbs"]


class Verbs(Mapping[str, type]):
    """Verbs by name. A verb's module, and torch with it, is imported when the verb is asked for.

    ``lines`` has what each does, in a line, so that ``cida --help`` need not wait for all of them.
    """

    def __init__(self, known: Mapping[str, tuple[str, str]]) -> None:
        self.homes = {name: home for name, (home, _) in known.items()}
        self.lines = {name: line for name, (_, line) in known.items()}

    def __getitem__(self, name: str) -> type:
        home, _, kind = self.homes[name].partition(":")
        if home not in sys.modules:
            _import_at_once(home)
        verb: type = getattr(sys.modules[home], kind)
        return verb

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


def _import_at_once(module: str) -> None:
    """Imports without looking for garbage, which takes its time and finds none."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        import_module(module)
    finally:
        gc.freeze()  # what is imported stays, and need not be looked through ever again
        if collecting:
            gc.enable()


# In the order in which people meet them. One with ``verbs`` of its own only holds those.
VERBS = Verbs(
    {
        "demo": (
            "cida.experiments.demo:Demo",
            "Adapts across the Circle world with five methods and writes a report to open",
        ),
        "fit": ("cida.cli.fit:Fit", "Fits a model to your own table"),
        "predict": (
            "cida.cli.predict:Predict",
            "Predicts the rows of a new table, or the sleep stages of a new recording",
        ),
        "report": ("cida.cli.report:Report", "Makes one HTML file of runs"),
        "export": (
            "cida.cli.export:Export",
            "Writes the model of a run as an ONNX file, as a folder with a model card, or both",
        ),
        "doctor": ("cida.cli.doctor:Doctor", "Names what went wrong in a run, and what to change"),
        "reproduce": (
            "cida.experiments.reproduce:Reproduce",
            "Runs an experiment of the paper with every method over seeds, and writes table and "
            "figures",
        ),
        "data": (
            "cida.experiments.data_command:Data",
            "Fetches and lists what is downloaded, prepares or simulates what cannot be",
        ),
        "check": (
            "cida.cli.check:Check",
            "Runs the conformance suite on a Discriminator or Game of your own",
        ),
        "completion": (
            "cida.cli.completion:Completion",
            "Prints a script that completes verbs, flags and names at the Tab key",
        ),
    }
)
