"""Training that continues where it was interrupted, bit for bit."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from cida import distributed
from cida.data import IndexedDataset
from cida.errors import CidaWarning
from cida.games import Game
from cida.io.files import remove_partial_files, write_atomically
from cida.io.tensors import ModelFileError, read_model_file, serialize_model

__all__ = ["Checkpoint", "CheckpointStore", "CheckpointWarning", "GracefulInterrupt", "resumable"]

MAX_KEPT_CHECKPOINTS = 2  # one may be damaged
CHECKPOINT_INTERVAL_SECONDS = 30.0
CHECKPOINT_FORMAT_VERSION = 3  # what a checkpoint holds, and under which names
CHECKPOINT_NAMES = f"step-[0-9]*-{'[0-9a-f]' * 16}.safetensors"
SYNC_INTERVAL_ROUNDS = 20  # how often ranks agree on a checkpoint or an interruption


class CheckpointWarning(CidaWarning):
    """A checkpoint cannot be used; the message says which, why, and what happens instead."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training after ``step`` rounds; ``metadata`` are JSON values."""

    step: int
    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, Any]


@dataclass
class _ResumeRequest:
    """Where trainings write their checkpoints; each is known by its position among them."""

    folder: Path
    interval_seconds: float
    n_trainings: int = 0


_RESUME_REQUEST: ContextVar[_ResumeRequest | None] = ContextVar("resume_request", default=None)


@contextmanager
def resumable(
    folder: str | os.PathLike[str], interval_seconds: float = CHECKPOINT_INTERVAL_SECONDS
) -> Iterator[None]:
    """Context in which trainings write checkpoints to a folder, and continue from those in it.

    A checkpoint is written at intervals, at Ctrl-C and at the end, completely or not at all; the
    last two of each training are kept. Running the same script again continues bit for bit: a
    training is identified by its position among those inside the context, and by its rows, settings
    and initial weights. A finished training is not repeated. Remove the folder to start again.

    Parameters
    ----------
    folder : str or path
        Where the checkpoints are.
    interval_seconds : float, default 30.0
        Time between two checkpoints.

    Examples
    --------
    >>> import cida, tempfile
    >>> from cida.datasets import make_circle
    >>> data = make_circle(n_domains=6, n_per_domain=20, n_source_domains=2)
    >>> model = cida.CIDAClassifier(steps=5)
    >>> with tempfile.TemporaryDirectory() as folder, cida.resumable(folder):
    ...     _ = model.fit(data.x, data.training_labels, domain_index=data.u)
    """
    token = _RESUME_REQUEST.set(_ResumeRequest(Path(folder).absolute(), interval_seconds))
    try:
        yield
    finally:
        _RESUME_REQUEST.reset(token)


class CheckpointStore:
    """The checkpoints of one training in a folder: atomic, checksummed, the last two kept.

    The checksum of a file is part of its name, so that one rename makes both true at once.
    """

    def __init__(self, folder: Path, identity: str, interval_seconds: float) -> None:
        self.folder = folder
        self.identity = identity
        self.interval_seconds = interval_seconds
        self.last_save_time = time.monotonic()

    @classmethod
    def for_training(cls, game: Game, dataset: IndexedDataset, settings: Any) -> Self | None:
        """The store of the training that begins now; None outside of `resumable`."""
        request = _RESUME_REQUEST.get()
        if request is None:
            return None
        folder = request.folder / f"training-{request.n_trainings}"
        request.n_trainings += 1
        identity = _training_identity(game, dataset, settings)
        return cls(folder, identity, request.interval_seconds)

    def load_latest(self) -> Checkpoint | None:
        """The newest valid checkpoint of this training; a warning names each invalid one."""
        checkpoints: dict[int, Checkpoint] = {}
        for path in reversed(self._list_files()):
            try:
                checkpoint = self._read(path)
                checkpoints[checkpoint.step] = checkpoint
            except ModelFileError as error:
                _warn(f"{error}; training continues from the one before it, or starts again.")
        common = distributed.common_to_ranks(checkpoints)
        return checkpoints[max(common)] if common else None

    def _read(self, path: Path) -> Checkpoint:
        if not path.stem.endswith(f"-{_digest(path.read_bytes())}"):
            raise ModelFileError(f"checkpoint {path} is damaged: its checksum does not match")
        tensors, header = read_model_file(path)
        if header.get("identity") != self.identity:
            raise ModelFileError(
                f"checkpoint {path} is of another training (other rows, settings, versions or "
                "threads)"
            )
        return Checkpoint(int(header["step"]), tensors, json.loads(header["metadata"]))

    def is_due(self, step: int) -> bool:
        """Whether a checkpoint is due; all ranks get the same answer."""
        if distributed.world_size() > 1 and step % SYNC_INTERVAL_ROUNDS:
            return False
        return distributed.any_rank(time.monotonic() - self.last_save_time >= self.interval_seconds)

    def save(self, state: Checkpoint) -> None:
        """Write a checkpoint and remove all but the last two.

        If it cannot be written, a warning says so and training continues.
        """
        header = {"identity": self.identity, "step": state.step}
        header["metadata"] = json.dumps(state.metadata)
        content = serialize_model(dict(state.tensors), header)
        path = self.folder / f"step-{state.step:09d}-{_digest(content)}.safetensors"
        self.last_save_time = time.monotonic()
        try:
            write_atomically(path, content)
        except OSError as error:
            _warn(f"no checkpoint in {self.folder} ({error.strerror}); training continues without.")
            return
        for old in self._list_files()[:-MAX_KEPT_CHECKPOINTS]:
            old.unlink(missing_ok=True)

    def _list_files(self) -> list[Path]:
        """All checkpoint files, in the order of their steps."""
        remove_partial_files(self.folder)
        return sorted(self.folder.glob(CHECKPOINT_NAMES))


class GracefulInterrupt:
    """Inside, the first Ctrl-C or SIGTERM takes effect after the round, a second one at once."""

    def __init__(self, checkpoints: CheckpointStore | None) -> None:
        self.checkpoints = checkpoints
        self.previous_handlers: dict[int, Any] = {}
        self.received_signal: int | None = None

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if self.checkpoints is not None and is_main:
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self.previous_handlers[number] = signal.signal(number, self._handle_signal)
        return self

    def _handle_signal(self, signal_number: int, frame: object) -> None:
        self.received_signal = signal_number
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        while self.previous_handlers:
            signal.signal(*self.previous_handlers.popitem())

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._restore_handlers()
        if kind is None and self.received_signal is not None:  # received in the last round
            self.raise_received_signal()

    def is_requested(self, step: int) -> bool:
        """Whether training has to stop here; all ranks get the same answer."""
        if distributed.world_size() > 1 and step % SYNC_INTERVAL_ROUNDS:
            return False
        return distributed.any_rank(self.received_signal is not None)

    def raise_received_signal(self) -> None:
        """Do now what the signal would have done when it came."""
        signal.raise_signal(self.received_signal or signal.SIGINT)


def _training_identity(game: Game, dataset: IndexedDataset, settings: Any) -> str:
    """A hash of what decides a training: settings, rows, initial weights, versions, threads."""
    identity_values = [
        CHECKPOINT_FORMAT_VERSION,
        asdict(settings),
        type(game).__name__,
        {k: v for k, v in sorted(vars(game).items()) if isinstance(v, bool | int | float | str)},
        torch.__version__,
        torch.get_num_threads(),
        distributed.world_size(),
        len(dataset),
    ]
    hasher = hashlib.sha256(json.dumps(identity_values, default=str).encode())
    for name, tensor in sorted(game.state().items()):
        hasher.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        hasher.update(_tensor_bytes(tensor))
    for tensor in (dataset.u, dataset.y, dataset.labelled, dataset.weight):
        hasher.update(_tensor_bytes(tensor))
    return hasher.hexdigest()


def _tensor_bytes(tensor: Tensor) -> Any:
    if tensor.dim() and len(tensor) and tensor.stride(0) == 0:
        tensor = torch.tensor(tensor[:1].tolist())  # an expanded tensor: one value for all rows
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _warn(sentence: str) -> None:
    warnings.warn(sentence, CheckpointWarning, stacklevel=2)
