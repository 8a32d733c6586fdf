"""Image encoders: sizes, memory layouts, and convolutions in bfloat16."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from cida.networks import Convolution, ImageEncoder, RotationTransformer
from cida.training import seeded

STACKS = {
    "three": (Convolution(4, 5, 2), Convolution(6, pool=2), Convolution(8)),
    "strides": tuple(Convolution(channels, 3, 2) for channels in (4, 6, 8)),
    "wide kernel": (Convolution(5, 7), Convolution(3, 1, pool=3)),
    "one": (Convolution(2, pool=2),),
}


def some_encoder(size=12, layers=STACKS["three"], outputs=5, **settings):
    with seeded(0):
        transformer = RotationTransformer(2, hidden=(8,))
        nn.init.normal_(transformer.head.weight)  # turns every image
        return ImageEncoder(size, layers, outputs, transformer, **settings)


def some_batch(size=12, count=6):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, 1, size, size, generator=generator)
    return images, torch.randn(count, 2, generator=generator)


def warmed(encoder, size=12):
    """With statistics in its batch normalisation that are not those of its start."""
    for _ in range(3):
        encoder(*some_batch(size, 16))
    return encoder.eval()


# --- sizes ------------------------------------------------------------------------------------


@given(
    size=st.integers(1, 40),
    kernel=st.sampled_from([1, 3, 5, 7]),
    stride=st.integers(1, 4),
    pool=st.integers(1, 4),
)
@settings(deadline=None, max_examples=150)
def test_the_size_that_a_layer_tells_is_the_one_it_gives(size, kernel, stride, pool):
    layer = Convolution(2, kernel, stride, pool)
    assume(layer.output_size(size) > 0)
    found = nn.Sequential(*layer.make_modules(1, 0.0))(torch.zeros(2, 1, size, size))
    assert found.shape == (2, 2, layer.output_size(size), layer.output_size(size))


@pytest.mark.parametrize("kernel", [2, 4])
def test_the_size_of_an_even_kernel_is_right_or_the_kernel_is_refused(kernel):
    try:
        layer = Convolution(2, kernel)
    except ValueError:
        return
    found = nn.Sequential(*layer.make_modules(1, 0.0))(torch.zeros(2, 1, 12, 12))
    assert found.shape[-1] == layer.output_size(12)


@pytest.mark.parametrize("size", [28, 12, 8])
@pytest.mark.parametrize("layers", STACKS.values(), ids=STACKS)
def test_every_stack_gives_a_vector_a_row(size, layers):
    encoder = some_encoder(size, layers)
    assert encoder(*some_batch(size)).shape == (6, 5)
    read = encoder.convolutions(some_batch(size)[0])
    assert encoder.last.in_features == read[0].numel()


def test_a_layer_is_convolution_pooling_normalisation_and_relu_by_hand():
    with seeded(0):
        modules = nn.Sequential(*Convolution(3, 3, 2, pool=2).make_modules(1, 0.0))
        x = torch.randn(5, 1, 9, 9)
    weight = modules[0].weight
    # The filter over a frame of zeros, every second place, the best of two by two.
    patches = nn.functional.unfold(x, 3, padding=1, stride=2)
    filtered = (weight.flatten(1) @ patches).view(5, 3, 5, 5)
    pooled = filtered[:, :, :4, :4].reshape(5, 3, 2, 2, 2, 2).amax((3, 5))
    mean, variance = pooled.mean((0, 2, 3)), pooled.var((0, 2, 3), correction=0)
    scaled = (pooled - mean.view(1, 3, 1, 1)) / (variance.view(1, 3, 1, 1) + 1e-5).sqrt()
    assert torch.allclose(modules(x), scaled.clamp(min=0), atol=1e-5)


# --- what does not change the numbers ---------------------------------------------------------


def test_channels_last_changes_no_number():
    encoder = warmed(some_encoder())
    weight = encoder.convolutions[3].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    images, index = some_batch()
    with torch.no_grad():
        found = encoder(images, index)
        upright = encoder.transformer(images, index).contiguous()
        plain = nn.Sequential(*encoder.convolutions).to(memory_format=torch.contiguous_format)
        assert plain[3].weight.is_contiguous()
        expected = encoder.last(plain(upright).flatten(1))
    assert torch.allclose(found, expected, atol=1e-5)


def test_images_may_come_in_any_layout():
    encoder = warmed(some_encoder())
    images, index = some_batch()
    crooked = images.transpose(2, 3).contiguous().transpose(2, 3)
    assert not crooked.is_contiguous()
    assert torch.allclose(encoder(crooked, index), encoder(images, index), atol=1e-6)


def test_in_evaluation_a_row_does_not_depend_on_the_batch():
    encoder = warmed(some_encoder(dropout=0.3))
    images, index = some_batch()
    whole = encoder(images, index)
    for row in range(6):
        alone = encoder(images[row : row + 1], index[row : row + 1])
        assert torch.allclose(alone, whole[row : row + 1], atol=1e-5)


def test_the_index_matters_through_the_turn_alone():
    encoder = warmed(some_encoder())
    images, index = some_batch()
    upright = encoder.transformer(images, index)
    assert not torch.allclose(encoder(images, index), encoder(images, -index), atol=1e-3)
    nn.init.zeros_(encoder.transformer.head.weight)
    assert torch.allclose(encoder(upright, index), encoder(upright, -index), atol=1e-6)


def test_dropout_is_random_in_training_drops_whole_channels_and_rests_in_evaluation():
    encoder = some_encoder(layers=(Convolution(32),), dropout=0.5)
    images, index = some_batch()
    with seeded(0):
        assert not torch.equal(encoder(images, index), encoder(images, index))
        read = encoder.convolutions(images)
    gone = (read == 0).all(dim=3).all(dim=2)
    assert 0.3 < gone.float().mean() < 0.7
    encoder.eval()
    assert torch.equal(encoder(images, index), encoder(images, index))


# --- bfloat16 ---------------------------------------------------------------------------------


def two_precisions(layers=STACKS["three"]):
    """The same weights, read in float32 and in bfloat16."""
    plain, quick = some_encoder(layers=layers), some_encoder(layers=layers, in_bfloat16=True)
    quick.load_state_dict(warmed(plain).state_dict())
    return plain, quick.eval()


def test_convolutions_in_bfloat16_give_about_the_same_in_float32():
    plain, quick = two_precisions()
    with torch.no_grad():
        exact, rough = plain(*some_batch()), quick(*some_batch())
    assert rough.dtype == exact.dtype == torch.float32
    assert not torch.equal(rough, exact)
    # Eight bits of mantissa in three layers.
    assert (rough - exact).abs().max() < 0.05 * exact.abs().max()


def test_convolutions_and_they_alone_see_bfloat16():
    """A matrix product in bfloat16 is an illegal instruction on some machines."""
    _, quick = two_precisions()
    seen = {}
    for name, module in quick.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(
                lambda module, given, found, name=name: seen.update({name: found.dtype})
            )
    quick(*some_batch())
    for name, dtype in seen.items():
        expected = torch.bfloat16 if name.startswith("convolutions") else torch.float32
        assert dtype == expected, name
    assert {"last", "transformer.head", "convolutions.0"} <= set(seen)


def test_weights_and_their_gradients_stay_in_float32():
    # No strides: on some machines the way back through one is an illegal instruction too.
    plain, quick = two_precisions((Convolution(4), Convolution(6, pool=2), Convolution(8, pool=2)))
    gradients = []
    for encoder in (plain, quick):
        encoder(*some_batch()).square().sum().backward()
        assert all(p.dtype == p.grad.dtype == torch.float32 for p in encoder.parameters())
        gradients.append(torch.cat([p.grad.flatten() for p in encoder.parameters()]))
    assert torch.nn.functional.cosine_similarity(*gradients, dim=0) > 0.99
