"""Layers that draw: the moments they claim, and draws that repeat whatever comes with a row."""

import copy
import pickle
import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from cida.networks import (
    Convolution,
    FramedEncoder,
    GaussianCode,
    GaussianEncoder,
    ImageEncoder,
    IndexedEncoder,
    MonteCarloDropout,
    PlainEncoder,
    RotationTransformer,
    TabularEncoder,
    convert_dropout,
    fixed_draw,
    is_stochastic,
)
from cida.training import seeded

DRAWS = 4000

LAYERS = {
    "gaussian": GaussianCode,
    "dropout": lambda: MonteCarloDropout(0.3),
    "channels": lambda: MonteCarloDropout(0.3, channels=True),
}


@pytest.fixture(autouse=True)
def _seeded():
    with seeded(0):
        yield


@pytest.fixture(params=LAYERS)
def layer(request):
    return LAYERS[request.param]().eval()


def some_rows(rows=5, width=6):
    with seeded(1):
        return torch.randn(rows, width)


def fitting(layer, rows=5):
    """Rows that the layer takes: images where it drops channels."""
    channels = getattr(layer, "channels", False)
    return some_rows(rows, 6 * 4).reshape(rows, 6, 2, 2) if channels else some_rows(rows)


def draw(module, number, *inputs):
    with fixed_draw(module, number), torch.no_grad():
        return module(*inputs)


def draws(module, *inputs, count=DRAWS):
    return torch.stack([draw(module, number, *inputs) for number in range(count)])


# --- what is drawn ----------------------------------------------------------------------------


def test_draws_of_a_gaussian_code_have_the_mean_and_deviation_it_says():
    code, x = GaussianCode().eval(), some_rows(2, 4).double()
    mean, deviation = code.moments(x)
    noise = (draws(code, x) - mean) / deviation
    assert torch.allclose(noise[:, 0], noise[:, 1])  # one eps for all rows
    for column in noise[:, 0].T:
        assert stats.kstest(column.numpy(), "norm").pvalue > 1e-3
    assert abs(float(torch.corrcoef(noise[:, 0].T)[0, 1])) < 4 / DRAWS**0.5


def test_in_training_each_row_has_noise_of_its_own():
    code, x = GaussianCode(), torch.zeros(20_000, 2)
    with seeded(0):
        z = code(x)[:, 0].numpy()
    assert stats.kstest(z / 0.1, "norm").pvalue > 1e-3


@given(start=st.floats(1e-3, 10.0))
def test_the_deviation_starts_where_it_is_told_and_is_never_negative(start):
    mean, deviation = GaussianCode(start).moments(torch.tensor([[3.0, 0.0], [3.0, -50.0]]).double())
    assert mean.tolist() == [[3.0], [3.0]]
    assert float(deviation[0]) == pytest.approx(start)
    assert float(deviation[1]) >= 0


def test_the_gradient_through_draws_is_that_of_the_expectation():
    # E[z^2] = m^2 + s^2: its derivatives are 2 m and 2 s.
    code = GaussianCode(start=0.7)
    x = torch.tensor([1.5, 0.4], dtype=torch.float64, requires_grad=True)
    with seeded(0):
        code(x.expand(400_000, 2)).square().mean().backward()
    mean, deviation = code.moments(x.detach())
    slope = torch.sigmoid(x.detach()[1] + code.shift)  # ds / dr of a softplus
    assert x.grad[0].item() == pytest.approx(2 * mean.item(), rel=0.01)
    assert x.grad[1].item() == pytest.approx(2 * (deviation * slope).item(), rel=0.02)


def test_a_draw_can_be_differentiated(layer):
    x = fitting(layer).double().requires_grad_()

    def drawn(x):
        with fixed_draw(layer, 3):
            return layer(x)

    assert torch.autograd.gradcheck(drawn, x)


@pytest.mark.parametrize("channels", [False, True])
def test_a_mask_drops_its_share_and_keeps_the_mean(channels):
    dropout = MonteCarloDropout(0.3, channels)
    seen = draws(dropout, torch.ones(2, 3, 2, 2), count=2000)
    assert seen.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert (seen == 0).double().mean((0, 1, 3, 4)).tolist() == pytest.approx([0.3] * 3, abs=0.04)
    assert torch.equal(seen[:, 0], seen[:, 1])  # one mask for all rows
    whole = (seen == seen[..., :1, :1]).all()
    assert bool(whole) is channels


# --- a draw repeats ---------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(number=st.integers(0, 10_000), rows=st.integers(1, 6), kind=st.sampled_from(list(LAYERS)))
def test_a_draw_of_a_row_hangs_on_nothing_but_its_number(number, rows, kind):
    layer = LAYERS[kind]()
    x = fitting(layer, 6)
    with seeded(0):
        whole = draw(layer, number, x)
    with seeded(1):
        part = draw(copy.deepcopy(layer).eval(), number, x[:rows])
    assert torch.equal(part, whole[:rows])


def test_the_global_random_state_is_not_touched(layer):
    before = torch.random.get_rng_state()
    draw(layer, 0, fitting(layer))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_draws_differ_and_so_do_equal_layers_in_one_draw():
    twins = nn.ModuleList([MonteCarloDropout(0.5), MonteCarloDropout(0.5)])
    x = torch.ones(1, 64)
    with fixed_draw(twins, 0):
        first, second = (layer(x) for layer in twins)
    with fixed_draw(twins, 1):
        other = twins[0](x)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)


def test_an_outer_draw_comes_back_and_an_error_ends_one(layer):
    x = fitting(layer)
    with fixed_draw(layer, 1):
        outer = layer(x)
        assert not torch.equal(draw(layer, 2, x), outer)
        with pytest.raises(RuntimeError), fixed_draw(layer, 2):
            nn.Linear(1, 1)(torch.zeros(1, 2))
        assert torch.equal(layer(x), outer)
    rests = x.chunk(2, 1)[0] if isinstance(layer, GaussianCode) else x
    assert torch.equal(layer(x), rests)


def test_threads_have_draws_of_their_own(layer):
    x, seen = fitting(layer), []
    with fixed_draw(layer, 0):
        thread = threading.Thread(target=lambda: seen.append(draw(layer, 5, x)))
        thread.start()
        thread.join()
        mine = layer(x)
    assert torch.equal(mine, draw(layer, 0, x))
    assert torch.equal(seen[0], draw(layer, 5, x))


def test_a_pickled_layer_gives_the_same_draw(layer):
    x = fitting(layer)
    again = pickle.loads(pickle.dumps(layer))
    assert torch.equal(draw(again, 2, x), draw(layer, 2, x))
    assert repr(again) == repr(layer)


# --- torch's dropout --------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [False, True])
def test_in_training_and_evaluation_it_is_torchs_dropout_bit_for_bit(channels):
    theirs, mine = (nn.Dropout2d if channels else nn.Dropout)(0.4), MonteCarloDropout(0.4, channels)
    x = some_rows(8, 60).reshape(8, 15, 2, 2)
    with seeded(0):
        expected, after = theirs(x), torch.rand(3)
    with seeded(0):
        assert torch.equal(mine(x), expected)
        assert torch.equal(torch.rand(3), after)
    assert torch.equal(mine.eval()(x), x)


def test_dropout_layers_anywhere_below_become_drawn():
    network = nn.Sequential(nn.Linear(6, 40), nn.Sequential(nn.ReLU(), nn.Dropout(0.2)))
    images = nn.Sequential(nn.Dropout2d(0.4))
    assert not is_stochastic(network)
    assert convert_dropout(network) is network
    assert is_stochastic(network)
    assert (network[1][1].p, network[1][1].channels) == (0.2, False)
    assert (convert_dropout(images)[0].p, images[0].channels) == (0.4, True)
    assert not torch.equal(draw(network, 0, some_rows()), draw(network, 1, some_rows()))


# --- encoders ---------------------------------------------------------------------------------

INDEX = torch.linspace(-1, 1, 50)[:, None]
ENCODERS = {
    "plain": lambda width, dropout: PlainEncoder(2, [16, 16], width, dropout),
    "indexed": lambda width, dropout: IndexedEncoder(2, 1, [16, 16], width, dropout=dropout),
    "framed": lambda width, dropout: FramedEncoder(2, [16, 16], width, dropout),
    "tabular": lambda width, dropout: TabularEncoder(2, (), (), 1, [16], width, dropout=dropout),
}


@pytest.fixture(params=ENCODERS)
def make(request):
    return ENCODERS[request.param]


def inputs(encoder):
    body = getattr(encoder, "body", encoder)
    plain = isinstance(encoder, PlainEncoder) or isinstance(body, PlainEncoder)
    x = some_rows(50, 2)
    return (x,) if plain and not isinstance(encoder, FramedEncoder) else (x, INDEX)


def test_a_gaussian_encoder_rests_at_the_mean_and_draws_around_it(make):
    encoder = GaussianEncoder(make(8, 0.0)).eval()
    given = inputs(encoder)
    encoder.fit_index(some_rows(50, 2), INDEX)
    mean, deviation = encoder.code.moments(encoder.body(*given))
    assert mean.shape == (50, 4)
    assert torch.equal(encoder(*given), mean)
    found = draws(encoder, *given, count=300)
    assert (found.mean(0) - mean).abs().max() < 5 * deviation.max() / 300**0.5
    assert torch.allclose(found.std(0), deviation, rtol=0.2)


def test_a_gaussian_encoder_fits_what_follows_the_index():
    encoder, bare = GaussianEncoder(FramedEncoder(2, [8], 8)), FramedEncoder(2, [8], 8)
    x = some_rows(50, 2) + 3 * INDEX
    encoder.fit_index(x, INDEX)
    bare.fit_index(x, INDEX)
    assert torch.equal(encoder.body.frame.centre, bare.frame.centre)
    assert bare.frame.centre.abs().max() > 1


def test_a_dropout_encoder_rests_as_if_it_had_none_and_can_be_drawn(make):
    encoder, bare = convert_dropout(make(4, 0.3)).eval(), make(4, 0.0).eval()
    assert is_stochastic(encoder)
    assert not is_stochastic(bare)
    # The same names: dropout has no weights, though it has a place among the layers of an MLP.
    bare_values = list(bare.state_dict().values())
    encoder.load_state_dict(dict(zip(encoder.state_dict(), bare_values, strict=True)))
    given = inputs(encoder)
    assert torch.equal(encoder(*given), bare(*given))
    assert not torch.equal(draw(encoder, 0, *given), draw(encoder, 1, *given))


def test_an_image_encoder_with_dropout_is_probabilistic_throughout():
    transformer = RotationTransformer(1, dropout=0.2)
    encoder = ImageEncoder(8, [Convolution(4), Convolution(4)], 3, transformer, dropout=0.2).eval()
    layers = [layer for layer in encoder.modules() if isinstance(layer, MonteCarloDropout)]
    assert [layer.channels for layer in layers] == [False, False, True, True]
    images, index = some_rows(4, 64).reshape(4, 1, 8, 8), some_rows(4, 1)
    assert not torch.equal(draw(encoder, 0, images, index), draw(encoder, 1, images, index))
    plain = ImageEncoder(8, [Convolution(4)], 3, RotationTransformer(1))
    assert not is_stochastic(plain)


# --- what is refused --------------------------------------------------------------------------


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match=r"p must be at least 0 and below 1, got 1\."):
        MonteCarloDropout(1)
    with pytest.raises(ValueError, match=r"start must be a number above 0, got 0\."):
        GaussianCode(0)
    with pytest.raises(ValueError, match=r"GaussianCode got 5 numbers a row; give it a mean"):
        GaussianCode()(torch.zeros(2, 5))
