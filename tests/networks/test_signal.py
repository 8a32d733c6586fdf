"""The encoder for breathing: the paper's table, layer by layer, and what it does to a batch."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cida.networks import PAPER_BLOCKS, Block, IndexNorm, SignalEncoder
from cida.training import seeded

SAMPLES = 300

# Kernel, stride, channels in, middle and out of the blocks, as the supplement prints them.
TABLE = (
    (9, 1, 64, 64, 64),
    (9, 2, 64, 64, 128),
    (9, 1, 128, 128, 128),
    (7, 1, 128, 128, 256),
    (9, 5, 256, 256, 256),
    (5, 1, 256, 256, 512),
    (5, 1, 512, 512, 512),
    (5, 1, 512, 384, 384),
    (9, 5, 384, 384, 384),
    (3, 1, 384, 384, 384),
    (5, 1, 384, 384, 384),
)
LENGTHS = (150, 150, 75, 75, 75, 15, 15, 15, 15, 3, 3, 3)  # of the stem, then of each block


def some_encoder(seed=0, width=1 / 8, **settings):
    with seeded(seed):
        return SignalEncoder(2, width, **settings)


def some_batch(rows=6, samples=SAMPLES, channels=1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(rows, channels, samples, generator=generator),
        torch.randn(rows, 2, generator=generator),
    )


def facts(layer):
    """Kernel, stride, channels in and out of a convolution with its batch norm."""
    convolution, norm = layer.convolution, layer.norm
    assert len(norm.weight) == convolution.out_channels
    assert convolution.bias is None  # the norm has one
    kernel, stride = convolution.kernel_size[-1], convolution.stride[-1]
    assert convolution.weight[0, 0].numel() == kernel  # along time alone
    return kernel, stride, convolution.in_channels, convolution.out_channels


def warmed(encoder):
    """Without what its start has of zeros and ones; in evaluation."""
    with torch.no_grad(), seeded(3):
        nn.init.normal_(encoder.affine.linear.weight)
        for part in encoder.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                for tensor in (part.weight, part.bias, part.running_mean):
                    nn.init.normal_(tensor)
                nn.init.uniform_(part.running_var, 0.5, 2)
            if isinstance(part, IndexNorm):
                for tensor in (part.weight, part.bias, part.mean_moments):
                    nn.init.normal_(tensor)
                nn.init.uniform_(part.variance, 0.5, 2)
    return encoder.eval()


# --- the table --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper():
    return some_encoder(width=1.0)


def test_the_encoder_is_the_papers_table(paper):
    assert facts(paper.stem) == (13, 2, 1, 64)
    assert len(paper.blocks) == len(TABLE)
    for block, (kernel, stride, before, middle, after) in zip(paper.blocks, TABLE, strict=True):
        assert facts(block.first) == (kernel, stride, before, middle)
        assert facts(block.second) == (kernel, 1, middle, after)
        if stride == 1 and before == after:
            assert block.shortcut is None
        else:
            assert facts(block.shortcut) == (1, stride, before, after)


def test_its_weights_are_as_many_as_the_table_says(paper):
    count = 13 * 64 + 2 * 64  # of the stem and its norm
    for kernel, stride, before, middle, after in TABLE:
        count += kernel * (before * middle + middle * after) + 2 * (middle + after)
        count += 0 if stride == 1 and before == after else before * after + 2 * after
    count += 2 * 2 * 384  # of the affine layer, for two numbers of index
    assert sum(weight.numel() for weight in paper.parameters()) == count


def test_the_encoding_is_384_wide_and_lengths_fall_by_the_strides(paper):
    lengths = []
    hooks = [layer.register_forward_hook(lambda _, __, out: lengths.append(out.shape[-1]))
             for layer in (paper.stem, *paper.blocks)]  # fmt: skip
    with torch.no_grad():
        assert paper(*some_batch(2)).shape == (2, 384)
    for hook in hooks:
        hook.remove()
    assert tuple(lengths) == LENGTHS


# --- other sizes ------------------------------------------------------------------------------


def test_an_eighth_of_the_width_has_an_eighth_of_all_channels():
    encoder = some_encoder()
    assert facts(encoder.stem) == (13, 2, 1, 8)
    for block, (kernel, stride, before, middle, after) in zip(encoder.blocks, TABLE, strict=True):
        assert facts(block.first) == (kernel, stride, before // 8, middle // 8)
        assert facts(block.second) == (kernel, 1, middle // 8, after // 8)
    assert encoder(*some_batch()).shape == (6, 48)


def test_four_channels_are_the_fewest():
    assert Block(9, 2, 64, 128).with_width_factor(1 / 64) == Block(9, 2, 4, 4)
    assert Block(9, 2, 64, 128).with_width_factor(1.5) == Block(9, 2, 96, 192)
    assert all(block.with_width_factor(1) == block for block in PAPER_BLOCKS)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 700), st.integers(1, 3))
def test_signals_of_any_length_and_number_of_channels(samples, channels):
    encoder = some_encoder(width=1 / 16, channels=channels).eval()
    lengths = []
    encoder.blocks[-1].register_forward_hook(lambda _, __, out: lengths.append(out.shape[-1]))
    with torch.no_grad():
        assert encoder(*some_batch(2, samples, channels)).shape == (2, 24)
    length = samples
    for stride in (2, 2, 5, 5):
        length = math.ceil(length / stride)
    assert lengths == [length]


def test_other_blocks_can_be_given():
    encoder = some_encoder(width=1.0, blocks=[Block(3, 2, 5, 6), Block(3, 1, 7, 6)])
    assert [facts(block.first) for block in encoder.blocks] == [(3, 2, 64, 5), (3, 1, 6, 7)]
    assert encoder(*some_batch()).shape == (6, 6)


# --- formulas ---------------------------------------------------------------------------------


def by_hand(encoder, x, index):
    """The encoder once more, with signals as rows of numbers and plain sums over windows."""

    def apply(layer, x):
        convolution, norm = layer.convolution, layer.norm
        weight = convolution.weight.flatten(2)
        kernel, stride = weight.shape[-1], convolution.stride[-1]
        windows = nn.functional.pad(x, (kernel // 2, kernel // 2)).unfold(-1, kernel, stride)
        found = torch.einsum("nclk,ock->nol", windows, weight)
        mean, variance = norm.running_mean, norm.running_var
        if encoder.training:
            mean, variance = found.mean((0, 2)), found.var((0, 2), correction=0)
        scale = norm.weight / (variance + norm.eps).sqrt()
        return (found - mean[:, None]) * scale[:, None] + norm.bias[:, None]

    h = apply(encoder.stem, x).clamp(min=0)
    for block in encoder.blocks:
        change = apply(block.second, apply(block.first, h).clamp(min=0))
        h = ((apply(block.shortcut, h) if block.shortcut else h) + change).clamp(min=0)
    h = h.mean(-1)
    scale, shift = (index @ encoder.affine.linear.weight.T).chunk(2, dim=1)
    return (1 + scale) * h + shift


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("samples", "channels"), [(300, 1), (31, 2)])
def test_the_encoder_is_its_formula(training, samples, channels):
    blocks = [Block(5, 1, 64, 64), Block(7, 5, 80, 96), Block(3, 1, 64, 64), Block(3, 2, 64, 64)]
    encoder = warmed(some_encoder(width=1 / 8, blocks=blocks, channels=channels)).train(training)
    encoder = encoder.double()
    x, index = (part.double() for part in some_batch(6, samples, channels))
    with torch.no_grad():
        expected = by_hand(encoder, x, index)
        assert torch.allclose(encoder(x, index), expected)
    assert expected.std() > 0.1


def test_the_encoding_starts_blind_to_the_index_and_can_learn_to_see_it():
    encoder = some_encoder().eval()
    x, index = some_batch()
    with torch.no_grad():
        assert torch.equal(encoder(x, index), encoder(x, -3 * index))
        nn.init.normal_(encoder.affine.linear.weight)
        plain = encoder(x, torch.zeros(6, 2))
        assert torch.equal(encoder(x, index), encoder.affine(plain, index))
        assert not torch.allclose(encoder(x, index), encoder(x, -3 * index))


def test_to_follow_the_index_changes_every_norm_and_nothing_else():
    plain, following = some_encoder(), some_encoder(follow=True)
    kinds = [[type(part) for part in encoder.modules()] for encoder in (plain, following)]
    assert (
        kinds[0].count(nn.BatchNorm2d) == kinds[1].count(IndexNorm) == 29
    )  # 1 + 2 x 11 + 6 shortcuts
    assert nn.BatchNorm2d not in kinds[1]
    weights = dict(plain.named_parameters())
    assert {name: torch.equal(weight, weights[name]) for name, weight in
            following.named_parameters()} == dict.fromkeys(weights, True)  # fmt: skip


def test_following_takes_a_steady_drift_of_the_signals_out_of_the_encoding():
    x, index = some_batch(64)
    index[:, 1] = 0
    drifting = x * (1.5 + index.clamp(-1, 1)[:, :1, None])
    found = []
    for follow in (False, True):
        encoder = some_encoder(follow=follow)
        with torch.no_grad():
            z = encoder(drifting, index)
        found.append(torch.corrcoef(torch.cat([z.T, index[:, :1].T]))[-1, :-1].abs().mean())
    assert found[1] < found[0] / 2


# --- training ---------------------------------------------------------------------------------


@pytest.mark.parametrize("follow", [False, True])
def test_a_gradient_reaches_every_parameter(follow):
    encoder = some_encoder(follow=follow)
    with seeded(5):
        target = torch.randn(6, 48)
    (encoder(*some_batch()) - target).square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad.any(), name
        assert parameter.grad.isfinite().all(), name


def mixed_batches(encoder):
    """The first two of eight rows: among the others, among strange others, and one at a time."""
    x, index = some_batch(8)
    strange = torch.cat([x[:2], 50 + x[2:]])
    with torch.no_grad():
        alone = [encoder(x[row : row + 1], index[row : row + 1]) for row in range(2)]
        return encoder(x, index)[:2], encoder(strange, index)[:2], torch.cat(alone)


@pytest.mark.parametrize("follow", [False, True])
def test_a_row_is_encoded_the_same_in_any_batch(follow):
    usual, strange, alone = mixed_batches(warmed(some_encoder(follow=follow)))
    assert torch.allclose(usual, strange, atol=1e-4)
    assert torch.allclose(usual, alone, atol=1e-4)
    assert usual.std() > 0.1


@pytest.mark.parametrize("follow", [False, True])
def test_in_training_norms_look_at_the_others(follow):
    usual, strange, _ = mixed_batches(warmed(some_encoder(follow=follow)).train())
    assert not torch.allclose(usual, strange, atol=1e-2)


def test_the_order_of_rows_is_kept():
    encoder = warmed(some_encoder())
    x, index = some_batch(8)
    order = torch.tensor([3, 1, 7, 0, 2, 6, 5, 4])
    with torch.no_grad():
        together = encoder(x, index)
        assert torch.allclose(together[order], encoder(x[order], index[order]), atol=1e-4)


def test_it_follows_the_seed():
    first, again, other = (some_encoder(seed) for seed in (0, 0, 1))
    weights, others = first.state_dict(), other.state_dict()
    for name, weight in again.state_dict().items():
        assert torch.equal(weight, weights[name])
        if name.endswith("convolution.weight"):
            assert not torch.equal(weight, others[name])
    x, index = some_batch()
    with torch.no_grad():
        found = first(x, index)
        assert torch.equal(found, again(x, index))
        assert not torch.allclose(found, other(x, index))
