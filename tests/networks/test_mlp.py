"""Multi-layer perceptrons are their formulas."""

import torch
from torch import nn

from cida.networks import MLP, IndexedEncoder, PlainEncoder


def test_an_mlp_is_its_formula():
    torch.manual_seed(0)
    network = MLP(3, [4], 2)
    x = torch.randn(5, 3)
    first, _, last = network
    by_hand = torch.relu(x @ first.weight.T + first.bias) @ last.weight.T + last.bias
    assert torch.allclose(network(x), by_hand, atol=1e-6)
    assert network.output_width == 2
    assert MLP(3, [4, 7]).output_width == 7


def test_batch_normalisation_stands_between_each_hidden_layer_and_its_relu():
    network = MLP(3, [4, 5], 2, batch_norm=True)
    hidden = [nn.Linear, nn.BatchNorm1d, nn.ReLU]
    assert [type(layer) for layer in network] == [*hidden, *hidden, nn.Linear]
    assert [layer.num_features for layer in network if type(layer) is nn.BatchNorm1d] == [4, 5]
    assert network.output_width == 2


def test_without_batch_normalisation_there_is_none():
    assert [type(layer) for layer in MLP(3, [4], 2)] == [nn.Linear, nn.ReLU, nn.Linear]


def test_the_indexed_encoder_starts_blind_to_u_and_can_learn_to_see_it():
    torch.manual_seed(0)
    encoder = IndexedEncoder(3, 1, [16, 16], 4)
    x, u = torch.randn(8, 3), torch.randn(8, 1)
    assert torch.equal(encoder(x, u), encoder(x, -u))
    optimiser = torch.optim.SGD(encoder.parameters(), 0.1)
    encoder(x, u).square().sum().backward()
    optimiser.step()
    assert not torch.allclose(encoder(x, u), encoder(x, -u))


def test_encoders_flatten_what_they_get():
    x = torch.randn(2, 1, 4, 4)
    assert PlainEncoder(16, [8], 3)(x).shape == (2, 3)
    assert IndexedEncoder(16, 2, [8, 8], 3)(x, torch.randn(2, 2)).shape == (2, 3)
