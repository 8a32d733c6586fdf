"""Images folded before they are read: squares of pixels become channels."""

import pytest
import torch
from torch import nn

from cida.networks import Convolution, ImageEncoder, RotationTransformer
from cida.training import seeded

LAYERS = (Convolution(6), Convolution(8, pool=2))


def some_encoder(size=12, fold=2, layers=LAYERS):
    with seeded(0):
        transformer = RotationTransformer(2, hidden=(8,))
        nn.init.normal_(transformer.head.weight)  # turns every image
        return ImageEncoder(size, layers, 5, transformer, fold=fold)


def some_batch(size=12, count=6):
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, 1, size, size, generator=generator)
    return images, torch.randn(count, 2, generator=generator)


def folded_by_hand(images, fold):
    """Channel ``i * fold + j`` has the pixels at row i and column j of each square."""
    parts = [images[:, :, i::fold, j::fold] for i in range(fold) for j in range(fold)]
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("fold", [2, 3])
def test_it_reads_what_an_explicit_fold_gives(fold):
    encoder = some_encoder(fold=fold).eval()
    images, index = some_batch()
    upright = encoder.transformer(images, index)
    folded = folded_by_hand(upright, fold)
    assert torch.equal(folded, nn.PixelUnshuffle(fold)(upright))
    torch.testing.assert_close(encoder.transformer(images, index, fold), folded)
    read = encoder.convolutions(folded)
    torch.testing.assert_close(encoder(images, index), encoder.last(read.flatten(1)))


@pytest.mark.parametrize(("size", "fold", "side"), [(28, 2, 7), (28, 4, 3), (12, 2, 3), (12, 3, 2)])
def test_the_last_layer_is_as_wide_as_what_comes_out(size, fold, side):
    encoder = some_encoder(size, fold)
    assert encoder(*some_batch(size)).shape == (6, 5)
    assert encoder.last.in_features == 8 * side * side


def test_the_first_convolution_has_a_channel_for_each_pixel_of_a_square():
    for fold in (1, 2, 4):
        convolutions = [m for m in some_encoder(fold=fold).modules() if isinstance(m, nn.Conv2d)]
        assert convolutions[0].in_channels == fold * fold
        assert convolutions[1].in_channels == 6


def test_folded_images_need_no_copy_for_the_convolutions():
    encoder = some_encoder()
    folded = encoder.transformer(*some_batch(), fold=2)
    assert folded.is_contiguous(memory_format=torch.channels_last)


def test_gradients_reach_the_image_and_the_transformer():
    encoder = some_encoder()
    images, index = some_batch()
    encoder(images.requires_grad_(), index).square().sum().backward()
    assert images.grad.abs().max() > 0
    assert encoder.transformer.head.weight.grad.abs().max() > 0
