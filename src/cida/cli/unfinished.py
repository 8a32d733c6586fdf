"""Runs that are made once and whole, however often they are cut off on the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cida.io.files import exclusive_lock
from cida.runs.records import CHECKPOINT_FOLDER_NAME
from cida.training import resumable

__all__ = ["check_checkpoint_seconds", "staged_run_folder"]


def check_checkpoint_seconds(seconds: float) -> None:
    """Refuses a time between checkpoints that is none."""
    if not seconds >= 0:
        raise ValueError(f"checkpoint_seconds is {seconds}; it must not be negative.")


@contextmanager
def staged_run_folder(out: Path, resume: bool, checkpoint_seconds: float) -> Iterator[Path]:
    """A folder beside ``out`` to make the run in; it takes that name when the run is whole.

    Trainings inside leave checkpoints in it. If the work is cut off they stay, and with ``resume``
    it goes on from them.
    """
    staging_folder = out.parent / f".{out.name}.unfinished"
    with exclusive_lock(out, out.parent / f".{out.name}.lock"):
        has_progress = _has_checkpoint(staging_folder)
        if has_progress and not resume:
            raise ValueError(
                f"out is {out}, of which an unfinished run is kept; go on with --resume, or remove "
                f"{staging_folder}."
            )
        _prepare_staging_folder(staging_folder)
        try:
            with resumable(staging_folder / CHECKPOINT_FOLDER_NAME, checkpoint_seconds):
                yield staging_folder
        except KeyboardInterrupt:
            if not _has_checkpoint(staging_folder):
                shutil.rmtree(staging_folder)
                raise KeyboardInterrupt("interrupted; nothing was written.") from None
            raise KeyboardInterrupt(
                "interrupted; the training so far is kept: the same command with --resume goes on."
            ) from None
        except (OSError, MemoryError, SystemExit):
            if not _has_checkpoint(staging_folder):
                shutil.rmtree(staging_folder, ignore_errors=True)
            raise
        except BaseException:  # it would end the same way again
            shutil.rmtree(staging_folder, ignore_errors=True)
            raise
        if out.is_dir():
            out.rmdir()
        os.replace(staging_folder, out)
        shutil.rmtree(out / CHECKPOINT_FOLDER_NAME, ignore_errors=True)


def _has_checkpoint(staging_folder: Path) -> bool:
    return any((staging_folder / CHECKPOINT_FOLDER_NAME).glob("*/*.safetensors"))


def _prepare_staging_folder(staging_folder: Path) -> None:
    """The folder with nothing in it but checkpoints."""
    staging_folder.mkdir(exist_ok=True)
    for leftover in staging_folder.iterdir():
        if leftover.name != CHECKPOINT_FOLDER_NAME:
            shutil.rmtree(
                leftover
            ) if leftover.is_dir() and not leftover.is_symlink() else leftover.unlink()
