"""Model files: safetensors with a JSON header. No pickle is ever written or read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from cida.errors import error_summary
from cida.io.files import write_atomically
from cida.io.json_decode import parse_json

__all__ = [
    "MODEL_FILE",
    "MODEL_FORMAT_VERSION",
    "ModelFileError",
    "read_model_file",
    "serialize_model",
    "write_model_file",
]

MODEL_FORMAT_VERSION = 3
MODEL_FILE = "model.safetensors"  # the name of a model's file in a folder
_METADATA_KEY = "cida"


class ModelFileError(ValueError):
    """A model file that cannot be read; the message says why and what to do."""


def write_model_file(
    path: str | os.PathLike[str], tensors: dict[str, Tensor], header: dict[str, Any]
) -> None:
    """Tensors and a JSON header in one safetensors file."""
    write_atomically(path, serialize_model(tensors, header))


def serialize_model(tensors: dict[str, Tensor], header: dict[str, Any]) -> bytes:
    """The content of such a file."""
    header_json = json.dumps({"format": MODEL_FORMAT_VERSION, **header}, allow_nan=False)
    # Copies, since safetensors refuses layers that share their weights.
    content = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    return save(content, metadata={_METADATA_KEY: header_json})


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the header that `write_model_file` wrote; refuses anything else."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file at {path}; check the path.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        with path.open("rb") as file:
            start = file.read(8)
        # A safetensors file opens with its header's length, which may have the same first bytes,
        # but then has zeros where a pickle has its first instruction.
        if (start[:1] == b"\x80" and any(start[2:])) or start[:2] == b"PK":
            raise ModelFileError(
                f"{path} is a pickle (or a torch.save archive), which can run any code when it is "
                "opened; cida reads only files written by its own save()."
            ) from None
        raise ModelFileError(
            f"{path} is damaged or cut short ({error_summary(error)}); save the model again or "
            "copy it again."
        ) from None
    return tensors, _parse_header(path, metadata)


def _parse_header(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        header = parse_json(metadata[_METADATA_KEY])
        version = header["format"]
    except (KeyError, TypeError, ValueError):
        raise ModelFileError(
            f"{path} is a safetensors file without cida's header; give a file written by save()."
        ) from None
    if version != MODEL_FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has model format {version!r} but this cida reads format "
            f"{MODEL_FORMAT_VERSION}; it was written by cida "
            f"{header.get('cida_version', 'unknown')}: install that version."
        )
    assert isinstance(header, dict)
    return header
