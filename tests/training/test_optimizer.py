"""The players' step is torch's AdamW, bit for bit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cida.training import optimizer
from cida.training.optimizer import FusedAdamW


def network(seed):
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Conv2d(2, 5, 3), nn.Flatten(), nn.Linear(20, 7), nn.Linear(7, 3))
    return layers.to(memory_format=torch.channels_last)


def play(layers, steps, clear, step, lazy=()):
    """Steps down on noise; at the lazy ones the last layer has no part in the loss."""
    draw = torch.Generator().manual_seed(9)
    for n in range(steps):
        clear()
        used = layers[:-1] if n in lazy else layers
        used(torch.randn(6, 2, 4, 4, generator=draw)).square().mean().backward()
        step(1e-2 / (1 + n))


def torchs(layers, decay):
    optimiser = torch.optim.AdamW(layers.parameters(), weight_decay=decay, fused=True)

    def step(rate):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()

    return optimiser.zero_grad, step


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), decay=st.sampled_from([0.0, 0.1]), lazy=st.sets(st.integers(0, 11)))
def test_it_is_torchs_adamw(seed, decay, lazy):
    ours, theirs = network(seed), network(seed)
    descent = FusedAdamW(ours.parameters(), decay)
    play(ours, 12, descent.zero_grad, descent.step, lazy)
    play(theirs, 12, *torchs(theirs, decay), lazy)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(own, other)


def test_what_it_remembers_is_given_back():
    whole, parts = network(0), network(0)
    one = FusedAdamW(whole.parameters())
    play(whole, 5, one.zero_grad, one.step)
    play(whole, 5, one.zero_grad, one.step)
    first = FusedAdamW(parts.parameters())
    play(parts, 5, first.zero_grad, first.step)
    second = FusedAdamW(parts.parameters())
    second.restore({name: tensor.clone() for name, tensor in first.state().items()})
    play(parts, 5, second.zero_grad, second.step)
    for own, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(own, other)


def test_without_gradients_nothing_moves():
    layers = network(0)
    before = [p.detach().clone() for p in layers.parameters()]
    FusedAdamW(layers.parameters(), 0.1).step(1.0)
    assert all(torch.equal(a, b) for a, b in zip(before, layers.parameters(), strict=True))


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99), decay=st.sampled_from([0.0, 0.1]), lazy=st.sets(st.integers(0, 11)))
def test_without_the_private_kernel_the_public_function_gives_the_same_bits(seed, decay, lazy):
    results = []
    for has_kernel in (True, False):
        layers = network(seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(optimizer, "HAS_FUSED_KERNEL", has_kernel)
            descent = FusedAdamW(layers.parameters(), decay)
            play(layers, 12, descent.zero_grad, descent.step, lazy)
        results.append(layers)
    for own, other in zip(*(layers.parameters() for layers in results), strict=True):
        assert torch.equal(own, other)
