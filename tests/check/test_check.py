"""The conformance suite passes on every built-in, and catches what it is there to catch."""

import importlib
import inspect
import pkgutil
from dataclasses import replace

import pytest
import torch
from torch import nn

import cida.discriminators
import cida.games
from cida.check import check, check_discriminator, check_game
from cida.discriminators import L2, Discriminator, Gaussian, Histogram
from cida.games import Adversarial, DistanceCorrelation, Game, SourceOnly


def built_ins(package, base):
    """Every concrete class of the package that derives from base, found by inspection."""
    found = set()
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(kind, base) and not inspect.isabstract(kind):
                found.add(kind)
    return sorted(found, key=lambda kind: kind.__name__)


def faults(findings):
    return {finding.check: finding.failure for finding in findings if not finding.passed}


@pytest.mark.parametrize("kind", built_ins(cida.discriminators, Discriminator))
def test_every_built_in_discriminator_conforms(kind):
    assert faults(check(kind)) == {}


@pytest.mark.parametrize("kind", built_ins(cida.games, Game))
def test_every_built_in_game_conforms(kind):
    assert faults(check(kind)) == {}


def test_inspection_finds_the_built_ins_of_the_public_names():
    assert set(cida.discriminators.DISCRIMINATORS.values()) == set(
        built_ins(cida.discriminators, Discriminator)
    )
    assert {SourceOnly, *cida.games.GAMES.values()} == set(built_ins(cida.games, Game))


class OneUnitSoftmax(Histogram):
    """A popular peer's discriminator: a softmax over one unit is always 1, its gradient 0."""

    def score(self, params, target):
        return super().score(torch.zeros_like(params) + params.sum() * 0, target)


class Detached(L2):
    def forward(self, z):
        return super().forward(z.detach())


class GenerousCeiling(Gaussian):
    def marginal_params(self, u, weights):
        return super().marginal_params(u, weights) + 2.0


class Summed(L2):
    def score(self, params, target):
        return super().score(params, target).sum()


class Unweighted(L2):
    def marginal_params(self, u, weights):
        return self.target(u).mean(0).to(weights.dtype)


class Forgetful(Histogram):
    def score(self, params, target):
        return super().score(params * self.__dict__.setdefault("secret", torch.rand(())), target)


class TwoTongues(L2):
    """Its loss is right, but games play with its score, which says nothing."""

    def loss(self, params, u):
        return super().score(params, self.target(u).to(params.dtype))

    def score(self, params, target):
        return 0 * params.sum(1)


class Broken(L2):
    def score(self, params, target):
        raise RuntimeError("no such thing")


@pytest.mark.parametrize(
    ("kind", "check_name"),
    [
        (OneUnitSoftmax, "learns the index from an informative encoding"),
        (OneUnitSoftmax, "sends a gradient against its own interest"),
        (Detached, "sends a gradient against its own interest"),
        (GenerousCeiling, "no constant params beat the marginal fit"),
        (Summed, "gives one finite number a row"),
        (Unweighted, "fits the marginal under weights"),
        (Forgetful, "comes back from its state"),
        (Broken, "gives one finite number a row"),
        (TwoTongues, "stays at the ceiling on a constant encoding"),
    ],
)
def test_a_planted_fault_is_named(kind, check_name):
    assert check_name in faults(check_discriminator(kind, ["line"]))


class Deaf(Adversarial):
    """The encoder's adversarial loss is cut off from the encoder."""

    def moves(self, source, pooled):
        for move in super().moves(source, pooled):
            if move.player == "encoder":
                cut = {**move.losses, "encoder": move.losses["encoder"].detach()}
                move = type(move)(move.player, cut, move.metrics, move.ceilings)
            yield move


class Helping(Adversarial):
    """The encoder lowers the discriminator's loss, where it should raise it."""

    @classmethod
    def assemble(cls, parts):
        return super().assemble(replace(parts, lambda_d=-1.0, ceiling=False))


class Rewarding(DistanceCorrelation):
    """The encoder is paid for what z says about u, where it should pay."""

    @classmethod
    def assemble(cls, parts):
        return super().assemble(replace(parts, lambda_d=-1.0))


class Numb(DistanceCorrelation):
    """The measure is shown, and the encoder does not feel it."""

    def measure_dependence(self, z, index):
        return super().measure_dependence(z.detach(), index) + 0 * z.sum()


class Peeking(SourceOnly):
    def moves(self, source, pooled):
        yield from super().moves(pooled, source)


class Unlisted(Adversarial):
    def player_parameters(self):
        return {"encoder": super().player_parameters()["encoder"]}


@pytest.mark.parametrize(
    ("kind", "check_name"),
    [
        (Deaf, "the adversary learns and the encoder feels it"),
        (Helping, "the adversary learns and the encoder feels it"),
        (Rewarding, "a penalty lowers what it is for"),
        (Numb, "a penalty lowers what it is for"),
        (Peeking, "target labels are never read"),
        (Unlisted, "deals finite moves to its players"),
    ],
)
def test_a_planted_fault_in_a_game_is_named(kind, check_name):
    found = faults(check_game(kind))
    assert check_name in found
    assert "TypeError" not in found[check_name]  # it could be made


def test_anything_else_is_refused_in_a_sentence():
    with pytest.raises(TypeError, match="neither a Discriminator nor a Game"):
        check(nn.Linear)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    check(SourceOnly)
    assert torch.equal(before, torch.get_rng_state())
