"""Training that goes on where it was cut off, bit for bit."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from torch import Tensor

from cida import ranks
from cida.batch import Rows
from cida.files import sweep, write_atomically
from cida.games import Game
from cida.training.checkpoint import ModelFileError, packed, read_model_file
from cida.words import CidaWarning

__all__ = ["CheckpointWarning", "Checkpoints", "State", "Stopping", "resumable"]

KEPT = 2  # the last two: one may be damaged
SECONDS = 30.0  # between two checkpoints
FORMAT = 2  # of what a state holds, and under which names
TOGETHER = 20  # rounds between which ranks ask each other whether one is due
NAME = re.compile(r"step-(\d+)-([0-9a-f]{16})\.safetensors")


class CheckpointWarning(CidaWarning):
    """A checkpoint that cannot be used; the message says which, why, and what is done instead."""


@dataclass(frozen=True)
class State:
    """Where a training stands after ``step`` rounds; ``words`` are JSON values."""

    step: int
    tensors: Mapping[str, Tensor]
    words: Mapping[str, Any]


@dataclass
class _Asked:
    """Where trainings leave their checkpoints; they are told apart by their order."""

    folder: Path
    seconds: float
    trainings: int = 0


_ASKED: ContextVar[_Asked | None] = ContextVar("asked", default=None)


@contextmanager
def resumable(folder: str | os.PathLike[str], seconds: float = SECONDS) -> Iterator[None]:
    """Inside, trainings leave checkpoints in the folder, and go on from those that are there.

    A checkpoint is written every so many seconds, at Ctrl-C and at the end, whole or not at all;
    the last two of a training are kept. The same script run again goes on bit for bit: a training
    is known by its place in the order of those inside, and by its rows, settings and first weights.
    One that is finished is not done again. Remove the folder to begin anew.
    """
    token = _ASKED.set(_Asked(Path(folder).absolute(), seconds))
    try:
        yield
    finally:
        _ASKED.reset(token)


class Checkpoints:
    """The states of one training in a folder of its own: atomic, checksummed, the last two kept.

    The checksum of a file is part of its name, so that one rename makes both true at once.
    """

    def __init__(self, folder: Path, identity: str, seconds: float) -> None:
        self.folder = folder
        self.identity = identity
        self.seconds = seconds
        self.written = time.monotonic()

    @classmethod
    def asked_for(cls, game: Game, rows: Rows, settings: Any) -> Self | None:
        """Those of the training that begins now; None where nobody asked for any."""
        asked = _ASKED.get()
        if asked is None:
            return None
        number, asked.trainings = asked.trainings, asked.trainings + 1
        return cls(
            asked.folder / f"training-{number}", _identity(game, rows, settings), asked.seconds
        )

    def latest(self) -> State | None:
        """The newest state that is whole and of this training; others are named in a warning."""
        found: dict[int, State] = {}
        for path in reversed(self._files()):
            try:
                state = self._read(path)
            except ModelFileError as error:
                _warn(f"{error}; going on from the checkpoint before it, or from the start.")
                continue
            found[state.step] = state
        common = ranks.shared(found)
        return found[max(common)] if common else None

    def _read(self, path: Path) -> State:
        if _digest(path.read_bytes()) != _parts(path)[1]:
            raise ModelFileError(f"checkpoint {path} is damaged: its checksum does not match")
        tensors, header = read_model_file(path)
        if header.get("identity") != self.identity:
            raise ModelFileError(
                f"checkpoint {path} is of another training (other rows, settings, versions or "
                "threads)"
            )
        return State(int(header["step"]), tensors, json.loads(header["words"]))

    def due(self, step: int) -> bool:
        """Whether it is time for one; ranks agree, and are asked now and then alone."""
        if ranks.count() > 1 and step % TOGETHER:
            return False
        return ranks.anywhere(time.monotonic() - self.written >= self.seconds)

    def keep(self, state: State) -> None:
        """Writes a state beside the last one; older ones go.

        Where it cannot be written training goes on: its end is worth more than a checkpoint.
        """
        header = {
            "identity": self.identity,
            "step": state.step,
            "words": json.dumps(state.words),
        }
        content = packed(dict(state.tensors), header)
        path = self.folder / f"step-{state.step:09d}-{_digest(content)}.safetensors"
        self.written = time.monotonic()
        try:
            write_atomically(path, content)
        except OSError as error:
            _warn(f"no checkpoint in {self.folder} ({error.strerror}); training goes on without.")
            return
        for old in self._files()[:-KEPT]:
            old.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """From the first step to the last."""
        if not self.folder.is_dir():
            return []
        sweep(self.folder)
        return sorted(path for path in self.folder.iterdir() if NAME.fullmatch(path.name))


class Stopping:
    """Inside, the first Ctrl-C (or SIGTERM) waits for the end of the round; the second does not."""

    def __init__(self, checkpoints: Checkpoints | None) -> None:
        self.listens = checkpoints is not None
        self.before: dict[int, Any] = {}
        self.heard: int | None = None

    def __enter__(self) -> Self:
        if self.listens and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self.before[number] = signal.signal(number, self._hear)
        return self

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard = number
        self._leave()

    def _leave(self) -> None:
        while self.before:
            signal.signal(*self.before.popitem())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
        if kind is None and self.heard is not None:  # it came in the last round
            self.obey()

    def wanted(self, step: int) -> bool:
        """Whether training is to stop here, on all ranks alike."""
        if not self.listens or (ranks.count() > 1 and step % TOGETHER):
            return False
        return ranks.anywhere(self.heard is not None)

    def obey(self) -> None:
        """Does now what the signal would have done at once."""
        signal.raise_signal(self.heard or signal.SIGINT)


def _identity(game: Game, rows: Rows, settings: Any) -> str:
    """A hash of all that decides a training: settings, rows, first weights, versions, threads."""
    words = [
        FORMAT, asdict(settings), type(game).__name__, torch.__version__, torch.get_num_threads(),
        ranks.count(), len(rows),
    ]  # fmt: skip
    hashed = hashlib.sha256(json.dumps(words, default=str).encode())
    for name, tensor in sorted(game.state().items()):
        hashed.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        hashed.update(_bytes(tensor))
    for tensor in (rows.u, rows.y, rows.labelled, rows.weight):
        hashed.update(_bytes(tensor))
    return hashed.hexdigest()


def _bytes(tensor: Tensor) -> Any:
    if tensor.dim() and len(tensor) and tensor.stride(0) == 0:
        tensor = torch.tensor(tensor[:1].tolist())  # one number for all rows: not written out
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _parts(path: Path) -> tuple[int, str]:
    found = NAME.fullmatch(path.name)
    assert found is not None
    return int(found[1]), found[2]


def _warn(sentence: str) -> None:
    warnings.warn(sentence, CheckpointWarning, stacklevel=2)
