"""Bfloat16 and compiled encoders in training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

__all__ = ["Precision", "encoder_precision"]

Precision = Literal["float32", "bf16"]


@contextmanager
def encoder_precision(encoder: nn.Module, precision: Precision, compiled: bool) -> Iterator[None]:
    """Inside, the encoder computes in this precision, and compiled if asked; weights are float32.

    Only the encoder: it takes most of a step, and the discriminator needs the digits of u.
    """
    with ExitStack() as stack:
        if precision == "bf16":
            _use_bfloat16(encoder, stack)
        if compiled:
            encoder.compile()
            # `compile` keeps this on the module; it cannot be pickled or copied.
            stack.callback(vars(encoder).pop, "_compiled_call_impl", None)
        yield


def _use_bfloat16(encoder: nn.Module, stack: ExitStack) -> None:
    """Use the encoder's own ``in_bfloat16`` switch if it has one, and autocast otherwise."""
    if hasattr(encoder, "in_bfloat16"):
        stack.callback(vars(encoder).update, in_bfloat16=encoder.in_bfloat16)
        vars(encoder)["in_bfloat16"] = True
        return
    autocast = _BFloat16Autocast()
    stack.callback(encoder.register_forward_pre_hook(autocast.begin).remove)
    stack.callback(encoder.register_forward_hook(autocast.end, always_call=True).remove)


class _BFloat16Autocast:
    """Hooks that run a forward pass under autocast and return a float32 encoding."""

    def begin(self, encoder: nn.Module, inputs: tuple[Any, ...]) -> None:
        self.cast = torch.autocast(inputs[0].device.type, torch.bfloat16)
        self.cast.__enter__()  # type: ignore[no-untyped-call]

    def end(self, encoder: nn.Module, inputs: tuple[Any, ...], z: Any) -> Any:
        self.cast.__exit__(None, None, None)
        return z.float() if isinstance(z, Tensor) else z
