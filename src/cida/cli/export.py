"""``cida export``: a run's model as a file or a folder to deploy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from cida.cli.console import print_json, print_lines
from cida.io.files import check_empty_folder


@dataclass(frozen=True)
class Export:
    """Writes the model of a run as an ONNX file, as a folder with a model card, or both.

    Example:  cida export runs/patients --onnx patients.onnx --folder patients-model
    """

    run_folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder of a run of cida fit, or of one run of cida reproduce or cida demo; or a file that
    model.save wrote."""

    onnx: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The ONNX file to write: raw columns and the index in, probabilities and label out."""

    folder: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder to write, for cida.load: weights, JSON, model card, how to cite. It must not exist
    yet or be empty."""

    check: bool = True
    """By default the ONNX file is compared with torch on made-up rows; one that differs is not
    kept."""

    json: bool = False
    """Print one JSON object for programs; whatever else is said goes to stderr."""

    def run(self, console: Console) -> int:
        """Prints how near the file comes to torch and, last, what was written."""
        from cida.export.export_folder import export_folder, read_exported_model
        from cida.export.onnx_export import check_onnx_installed, export_onnx  # these import torch

        if self.onnx is None and self.folder is None:
            raise ValueError(
                "onnx and folder are both missing; name what to write: --onnx FILE, --folder DIR "
                "or both."
            )
        if self.onnx is not None and self.onnx.is_dir():
            raise ValueError(f"onnx is {self.onnx}, which is a folder; give the name of a file.")
        if self.folder is not None:
            check_empty_folder(self.folder, "folder")
        if self.onnx is not None:
            check_onnx_installed("onnx", "onnxscript", *(["onnxruntime"] if self.check else []))
        exported_model, difference = read_exported_model(self.run_folder), None
        outs = {"onnx": self.onnx, "folder": self.folder}
        written = {name: path.resolve() for name, path in outs.items() if path is not None}
        try:
            if self.onnx is not None:
                difference = export_onnx(exported_model.model, self.onnx, self.check)
            if self.folder is not None:
                export_folder(exported_model, self.folder)
        except OSError as error:
            raise ValueError(
                f"{error.filename} cannot be written ({error.strerror}); choose another place."
            ) from error
        if difference is not None:
            print_lines(console, f"largest difference between ONNX and torch: {difference:.1e}")
        print_lines(console, *map(str, written.values()))
        if self.json:
            print_json("export", difference=difference, **written)
        return 0
