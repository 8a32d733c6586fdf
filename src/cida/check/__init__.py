"""The conformance suite: does a discriminator or a game do what the theory asks of it?

A loss that falls proves nothing: a softmax over one unit has a falling loss beside it and a
gradient of exactly zero. So each check asks for behaviour: the adversary learns u from an encoding
that carries it, the encoder feels it, and no belief that ignores z beats the ceiling.

    cida check my_package.heads:MyDiscriminator
"""

from __future__ import annotations

from cida.check.discriminators import check_discriminator
from cida.check.games import check_game
from cida.check.result import CheckResult
from cida.discriminators import Discriminator
from cida.games import Game

__all__ = ["CheckResult", "check", "check_discriminator", "check_game"]


def check(kind: type) -> list[CheckResult]:
    """Runs the suite that fits the class; it must be a `Discriminator` or a `Game`."""
    if isinstance(kind, type) and issubclass(kind, Discriminator):
        return check_discriminator(kind)
    if isinstance(kind, type) and issubclass(kind, Game):
        return check_game(kind)
    raise TypeError(
        f"{kind!r} is neither a Discriminator nor a Game; derive it from cida.Discriminator or "
        "cida.games.Game."
    )
