"""Networks as plain values: what is made again from them is the same network."""

import copy
import json
import pickle

import pytest
import torch
from torch import nn

from cida.committee.members import (
    Committee,
    CommitteeMember,
    Features,
    LinearModel,
    NetworkModel,
    TreeEnsemble,
)
from cida.networks import (
    MLP,
    PAPER_BLOCKS,
    Convolution,
    FramedEncoder,
    GaussianEncoder,
    ImageEncoder,
    IndexedEncoder,
    PlainEncoder,
    RotationTransformer,
    SignalEncoder,
    TabularEncoder,
    convert_dropout,
    network_config,
    network_from_config,
)
from cida.networks.serialization import NETWORKS

MADE = [
    MLP(3, [4, 5], 2, batch_norm=True),
    PlainEncoder(3, range(4, 6), 2),
    IndexedEncoder(3, 1, (4,), outputs=2, branch_width=7),
    FramedEncoder(3, [4], 2, follow="axes"),
    GaussianEncoder(IndexedEncoder(3, 1, (4,), 6), start=0.5),
    RotationTransformer(2, dropout=0.1),
    ImageEncoder(8, (Convolution(4, pool=2), Convolution(4)), 5, RotationTransformer(1), fold=2),
    SignalEncoder(2, 0.1, follow=True, blocks=PAPER_BLOCKS[:2], channels=3),
    TabularEncoder(3, [1], [4], 2, window=False),
    Features(3, [1], [4], 2, "windows", for_trees=True),
    LinearModel(3, 2),
    TreeEnsemble(4, 7, 3, 2),
    NetworkModel(PlainEncoder(3, [4], 2), MLP(2, [], 2), takes_index=False),
    CommitteeMember(Features(3, [], [], 1, "index"), LinearModel(4, 2)),
    Committee([CommitteeMember(Features(3, [], [], 1, "raw"), LinearModel(3, 2))], [1.0]),
]


def test_every_kind_is_tried():
    assert {type(network).__name__ for network in MADE} == set(NETWORKS)


@pytest.mark.parametrize("network", MADE, ids=lambda network: type(network).__name__)
def test_a_network_is_made_again_from_json_and_takes_the_weights(network):
    before = torch.get_rng_state()
    again = network_from_config(json.loads(json.dumps(network_config(network))))
    assert torch.equal(before, torch.get_rng_state())
    assert type(again) is type(network)
    assert str(again) == str(network)
    again.load_state_dict(network.state_dict())
    assert network_config(again) == network_config(network)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_can_still_be_described(copied):
    network = MADE[-1]
    assert network_config(copied(network)) == network_config(network)


class Below(PlainEncoder):
    """A class of a user's own, whose name no file of ours knows."""


def changed():
    network = PlainEncoder(3, [4], 2)
    network.body = nn.Identity()
    return network


@pytest.mark.parametrize(
    "network",
    [
        nn.Linear(2, 3),
        Below(3, [4], 2),
        changed(),
        convert_dropout(TabularEncoder(3)),
        GaussianEncoder(nn.Linear(2, 4)),
    ],
    ids=["torch's own", "a class below ours", "changed", "drawn", "one of the user's inside"],
)
def test_what_would_not_come_back_the_same_is_not_described(network):
    assert network_config(network) is None
