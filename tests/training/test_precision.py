"""Half precision, compilation and devices: asked for, they are used, and nothing of them stays."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from cida import CIDAClassifier
from cida.datasets import make_circle
from cida.training.precision import encoder_precision

pytestmark = pytest.mark.filterwarnings("ignore::cida.CidaWarning")
SMALL = {"steps": 40, "encoder_hidden": (16,), "encoding_width": 4, "random_state": 3}


class Watched(nn.Module):
    """An encoder that remembers in which precision its layer computed."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 4)
        self.seen = []

    def forward(self, x):
        h = self.layer(x)
        self.seen.append(h.dtype)
        return h


def test_the_encoder_computes_in_bfloat16_and_gives_float32():
    encoder = Watched()
    x = torch.randn(3, 2)
    with encoder_precision(encoder, "bf16", False):
        z = encoder(x)
        assert not torch.is_autocast_enabled("cpu")
    assert encoder.seen == [torch.bfloat16]
    assert z.dtype == torch.float32
    assert encoder(x).dtype == encoder.seen[-1] == torch.float32
    assert encoder.layer.weight.dtype == torch.float32


def test_a_forward_pass_that_fails_leaves_no_precision_behind():
    encoder = Watched()
    with encoder_precision(encoder, "bf16", False):
        with pytest.raises(RuntimeError):
            encoder(torch.randn(3, 5))
        assert not torch.is_autocast_enabled("cpu")


def test_a_model_trained_in_bfloat16_is_nearly_the_same_and_predicts_in_float32():
    world = make_circle(n_per_domain=20, seed=100)
    models = [
        CIDAClassifier(**{**SMALL, "steps": 200}, precision=precision).fit(
            world.x, world.training_labels, domain_index=world.u
        )
        for precision in ("float32", "bf16")
    ]
    first, second = (m.predict_proba(world.x, domain_index=world.u) for m in models)
    assert not np.array_equal(first, second)
    source = world.source
    assert (first.argmax(1) == second.argmax(1))[source].mean() > 0.95
    assert models[1].transform(world.x, domain_index=world.u).dtype == np.float32


def test_compiled_it_is_the_same_encoder_and_can_be_copied_and_pickled_after():
    encoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
    x = torch.randn(5, 2)
    plain = encoder(x)
    with encoder_precision(encoder, "float32", True):
        compiled = encoder(x)
        assert encoder._compiled_call_impl is not None
    torch.testing.assert_close(compiled, plain)
    assert encoder._compiled_call_impl is None
    assert torch.equal(copy.deepcopy(encoder)(x), plain)
    assert torch.equal(pickle.loads(pickle.dumps(encoder))(x), plain)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"device": "gpu"}, "device must be 'cpu' or 'cuda', got 'gpu'."),
        ({"precision": "fp16"}, "precision must be 'float32' or 'bf16', got 'fp16'."),
    ],
)
def test_what_is_not_known_is_refused(settings, said):
    world = make_circle(n_per_domain=8, seed=100)
    with pytest.raises(ValueError, match=said):
        CIDAClassifier(**SMALL, **settings).fit(world.x, world.y, domain_index=world.u)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card")
def test_a_card_that_is_not_there_is_refused_before_training():
    world = make_circle(n_per_domain=8, seed=100)
    with pytest.raises(ValueError, match="torch finds no graphics card here; use 'cpu'"):
        CIDAClassifier(**SMALL, device="cuda").fit(world.x, world.y, domain_index=world.u)


def test_an_encoder_that_knows_its_layers_is_asked_to_compute_in_bfloat16_itself():
    encoder = Watched()
    encoder.in_bfloat16 = False
    with encoder_precision(encoder, "bf16", False):
        assert encoder.in_bfloat16
        encoder(torch.randn(3, 2))
    assert not encoder.in_bfloat16
    assert encoder.seen == [torch.float32]  # nothing else was changed
