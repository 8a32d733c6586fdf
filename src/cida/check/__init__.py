"""The conformance suite: does a discriminator or a game do what the theory requires?

A loss that falls proves nothing: a softmax over one unit has a gradient of exactly zero while other
losses fall beside it. So each check tests behaviour: the adversary learns u from an encoding that
carries it, the encoder gets its gradient, and no constant parameters beat the ceiling.

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
    """Run the suite that fits a class.

    Parameters
    ----------
    kind : type
        A subclass of `Discriminator` whose arguments have defaults, or a subclass of `Game`.

    Returns
    -------
    list of CheckResult
        One for each check.

    Raises
    ------
    TypeError
        If the class is neither a discriminator nor a game.
    """
    if isinstance(kind, type) and issubclass(kind, Discriminator):
        return check_discriminator(kind)
    if isinstance(kind, type) and issubclass(kind, Game):
        return check_game(kind)
    raise TypeError(
        f"{kind!r} is neither a Discriminator nor a Game; derive it from cida.Discriminator or "
        "cida.games.Game."
    )
