"""The spatial transformer: starts as the identity, is alive, and can undo a turn."""

import math

import pytest
import torch
from torch import nn

from cida.images import rotate_degrees
from cida.networks import RotationTransformer
from cida.spaces import Line, Periodic
from cida.training import seeded

SIZE = 12
KINDS = {
    "direction": {},
    "angle": {"one_angle": True},
    "direction, sees the image": {"pixels": SIZE**2},
    "angle, sees the image": {"pixels": SIZE**2, "one_angle": True},
}


def some_transformer(index_width=2, seed=0, **settings):
    with seeded(seed):
        return RotationTransformer(index_width, hidden=(8, 8), **settings)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def some_images(count=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, 1, SIZE, SIZE, generator=generator)


def some_index(count=6):
    u = torch.linspace(0, 350, count, dtype=torch.float64)[:, None]
    return Periodic(360).embed(u).float()


def crooked(transformer):
    """The same with a head that says something."""
    with seeded(1), torch.no_grad():
        nn.init.normal_(transformer.head.weight)
    return transformer


def answer_of(transformer, index):
    """The head's, which sees the body's and the index itself."""
    return transformer.head(torch.cat([transformer.body(index), index], dim=1))


def linear_layers(transformer):
    return [module for module in transformer.body if isinstance(module, nn.Linear)]


# --- how it starts ----------------------------------------------------------------------------


@pytest.mark.parametrize("training", [False, True])
def test_it_starts_as_the_identity_for_every_index(kind, training):
    transformer, images = some_transformer(**kind).train(training), some_images()
    for index in (some_index(), torch.randn(6, 2), 1000 * torch.randn(6, 2)):
        assert torch.equal(
            transformer.cos_sin(images, index), torch.tensor([[1.0, 0.0]]).expand(6, 2)
        )
        assert torch.allclose(transformer(images, index), images, atol=1e-5)


def backward(transformer):
    """The gradients of a loss that any turn changes."""
    transformer.zero_grad()
    transformer(some_images(), some_index())[:, :, : SIZE // 2].square().sum().backward()


def test_its_head_is_moved_at_once_and_its_hidden_layers_after_one_step(kind):
    """It is alive: in the public code nothing ever reaches the layers that turn an image."""
    transformer = some_transformer(**kind)
    backward(transformer)
    assert transformer.head.weight.grad.abs().sum() > 0
    assert transformer.head.bias.grad.abs().sum() > 0
    torch.optim.SGD(transformer.parameters(), 0.01).step()
    assert transformer.head.weight.abs().sum() > 0
    backward(transformer)
    for layer in linear_layers(transformer):
        assert layer.weight.grad.abs().sum() > 0


def test_hidden_layers_are_drawn_at_random_so_that_units_differ(kind):
    for layer in linear_layers(some_transformer(**kind)):
        assert torch.linalg.matrix_rank(layer.weight) == min(layer.weight.shape)


# --- what its heads say -----------------------------------------------------------------------


def test_the_head_gives_a_direction_of_length_one(kind):
    found = crooked(some_transformer(**kind)).cos_sin(some_images(), some_index())
    assert found.shape == (6, 2)
    assert torch.allclose(found.norm(dim=1), torch.ones(6), atol=1e-6)
    assert found.std(0).min() > 0


def test_one_angle_is_what_the_head_says():
    transformer = crooked(some_transformer(one_angle=True))
    angle = answer_of(transformer, some_index())
    assert angle.shape == (6, 1)
    found = transformer.cos_sin(some_images(), some_index())
    assert torch.allclose(found, torch.cat([angle.cos(), angle.sin()], dim=1), atol=1e-5)
    turned = rotate_degrees(some_images(), torch.rad2deg(angle))
    assert torch.allclose(transformer(some_images(), some_index()), turned, atol=1e-4)


def test_a_direction_is_the_heads_answer_whatever_its_length():
    transformer = crooked(some_transformer())
    answer = answer_of(transformer, some_index())
    angle = torch.atan2(answer[:, 1], answer[:, 0])
    turned = rotate_degrees(some_images(), torch.rad2deg(angle))
    assert torch.allclose(transformer(some_images(), some_index()), turned, atol=1e-5)
    with torch.no_grad():
        for parameter in transformer.head.parameters():
            parameter.mul_(7.0)
    assert torch.allclose(transformer(some_images(), some_index()), turned, atol=1e-5)


def smooth(count):
    """Blobs that no turn about the middle moves out of sight."""
    place = torch.arange(28) - 13.5
    blob = torch.exp(-((place[None, :] - 4) ** 2 + (place[:, None] + 3) ** 2) / 18)
    return blob.expand(count, 1, 28, 28)


def asleep(transformer):
    """The same with a body of which no ReLU is awake."""
    with torch.no_grad():
        for layer in linear_layers(transformer):
            layer.weight.zero_()
            layer.bias.fill_(-1.0)
    return transformer


def test_a_head_that_says_minus_the_angle_undoes_the_turn_even_if_the_body_is_asleep():
    u = torch.arange(0, 360, 15, dtype=torch.float64)[:, None]
    turned = rotate_degrees(smooth(len(u)), u)
    transformer = asleep(RotationTransformer(2, hidden=(4,)))
    with torch.no_grad():  # (cos, sin) -> (cos, -sin)
        transformer.head.weight[:, 4:].copy_(torch.tensor([[1.0, 0], [0, -1]]))
        transformer.head.bias.zero_()
    upright = transformer(turned, Periodic(360).embed(u).float())
    # Two bilinear interpolations of a blob with curvature at most 1 / 9 in each direction.
    assert (upright - smooth(len(u))).abs().max() < 2 / 36
    assert (turned - smooth(len(u))).abs().max() > 0.5


def test_one_angle_that_falls_along_a_line_undoes_the_turn_as_well():
    u = torch.arange(0, 360, 15, dtype=torch.float64)[:, None]
    space = Line().fit(u)
    transformer = asleep(RotationTransformer(1, hidden=(2,), one_angle=True))
    low, high = space.embed(torch.tensor([[0.0], [345.0]]).double()).flatten().tolist()
    slope = -math.radians(345) / (high - low)
    with torch.no_grad():
        transformer.head.weight[:, 2:].fill_(slope)
        transformer.head.bias.fill_(-slope * low)
    upright = transformer(rotate_degrees(smooth(len(u)), u), space.embed(u).float())
    assert (upright - smooth(len(u))).abs().max() < 2 / 36


# --- what it sees -----------------------------------------------------------------------------


@pytest.mark.parametrize("pixels", [0, SIZE**2])
@pytest.mark.parametrize("one_angle", [False, True])
def test_only_one_that_sees_the_image_lets_it_decide_the_angle(pixels, one_angle):
    transformer = crooked(some_transformer(pixels=pixels, one_angle=one_angle)).eval()
    angles = [transformer.cos_sin(some_images(seed=seed), some_index()) for seed in (0, 1)]
    assert torch.equal(*angles) != bool(pixels)
    assert transformer.uses_image == bool(pixels)


@pytest.mark.parametrize("space", [Periodic(360), Line()], ids=repr)
def test_the_index_is_as_loud_as_all_pixels_together(space):
    u = torch.tensor([[0.0], [360.0]], dtype=torch.float64)
    index = space.fit(u).embed(u).float()[1:]
    width = space.embedding_width
    with seeded(0):
        transformer = RotationTransformer(width, 784, (4096,))
    weight = linear_layers(transformer)[0].weight
    of_index = weight[:, :width] @ (transformer.index_scale * index[0])
    of_image = weight[:, width:] @ torch.ones(784)
    expected = index[0].square().mean().sqrt()
    assert (of_index.std() / of_image.std() / expected).item() == pytest.approx(1, abs=0.1)


def test_the_angle_depends_on_the_index(kind):
    transformer = crooked(some_transformer(**kind)).eval()
    image = some_images(1).expand(6, 1, SIZE, SIZE)
    found = transformer.cos_sin(image, some_index())
    assert torch.cdist(found, found).fill_diagonal_(1.0).min() > 1e-6


def test_in_evaluation_a_row_does_not_depend_on_the_batch(kind):
    transformer = crooked(some_transformer(**kind))
    transformer(some_images(), some_index())  # statistics move, where there are some
    transformer.eval()
    whole = transformer(some_images(), some_index())
    for row in range(6):
        alone = transformer(some_images()[row : row + 1], some_index()[row : row + 1])
        assert torch.allclose(alone, whole[row : row + 1], atol=1e-5)


# --- dropout ----------------------------------------------------------------------------------


def test_dropout_makes_it_random_in_training_and_fixed_in_evaluation(kind):
    transformer = crooked(some_transformer(dropout=0.5, **kind))
    images, index = some_images(), some_index()
    with seeded(0):
        drawn = [transformer.cos_sin(images, index) for _ in range(2)]
        assert not torch.equal(*drawn)
    transformer.eval()
    assert torch.equal(transformer.cos_sin(images, index), transformer.cos_sin(images, index))


def test_without_dropout_it_is_not_random(kind):
    transformer = crooked(some_transformer(**kind))
    images, index = some_images(), some_index()
    assert torch.equal(transformer.cos_sin(images, index), transformer.cos_sin(images, index))


def test_dropout_drops_the_share_it_is_told():
    body = RotationTransformer(2, hidden=(64,), dropout=0.25).body
    with seeded(0), torch.no_grad():
        body[0].weight.zero_()
        body[0].bias.fill_(1.0)
        seen = body(torch.zeros(2000, 2))
    assert (seen == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert seen.mean().item() == pytest.approx(1.0, abs=0.02)
