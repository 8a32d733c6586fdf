"""Commands of ours, each in a process of its own: how long, and how much memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["measure_command"]


def measure_command(arguments: Sequence[str | Path]) -> tuple[float, float]:
    """Seconds and peak memory in GB of a command of ours, from its start to its end."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "cida", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ChildProcessError(f"cida {arguments[0]} ended with exit code {process.returncode}.")
    return time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e9
