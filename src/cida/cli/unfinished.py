"""Runs that are made once and whole, however often they are cut off on the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cida.benchmarks.runner import CHECKPOINT
from cida.files import claimed
from cida.training import resumable

__all__ = ["check_seconds", "unfinished"]


def check_seconds(seconds: float) -> None:
    """Refuses a time between checkpoints that is none."""
    if not seconds >= 0:
        raise ValueError(f"checkpoint_seconds is {seconds}; it must not be negative.")


@contextmanager
def unfinished(out: Path, resume: bool, seconds: float) -> Iterator[Path]:
    """A folder beside ``out`` to make the run in; it takes that name when the run is whole.

    Trainings inside leave checkpoints in it. If the work is cut off they stay, and with ``resume``
    it goes on from them.
    """
    room = out.parent / f".{out.name}.unfinished"
    with claimed(out, out.parent / f".{out.name}.lock"):
        begun = _has_checkpoint(room)
        if begun and not resume:
            raise ValueError(
                f"out is {out}, of which an unfinished run is kept; go on with --resume, or remove "
                f"{room}."
            )
        _make(room)
        try:
            with resumable(room / CHECKPOINT, seconds):
                yield room
        except KeyboardInterrupt:
            if not _has_checkpoint(room):
                shutil.rmtree(room)
                raise KeyboardInterrupt("interrupted; nothing was written.") from None
            raise KeyboardInterrupt(
                "interrupted; the training so far is kept: the same command with --resume goes on."
            ) from None
        except (OSError, MemoryError, SystemExit):
            if not _has_checkpoint(room):
                shutil.rmtree(room, ignore_errors=True)
            raise
        except BaseException:  # it would end the same way again
            shutil.rmtree(room, ignore_errors=True)
            raise
        if out.is_dir():
            out.rmdir()
        os.replace(room, out)
        shutil.rmtree(out / CHECKPOINT, ignore_errors=True)


def _has_checkpoint(room: Path) -> bool:
    return any((room / CHECKPOINT).glob("*/*.safetensors"))


def _make(room: Path) -> None:
    """The folder with nothing in it but checkpoints."""
    room.mkdir(exist_ok=True)
    for left in room.iterdir():
        if left.name != CHECKPOINT:
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
