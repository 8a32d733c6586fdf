"""One thread for work on small matrices: waiting threads cost more than they give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

__all__ = ["single_threaded"]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Inside, torch, BLAS and OpenMP compute with one thread; the numbers before are put back."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(n_threads)
