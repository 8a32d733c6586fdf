"""The games, one a file: who minimises what, in which order."""

from cida.errors import did_you_mean
from cida.games.adda import ADDA
from cida.games.adversarial import Adversarial
from cida.games.base import Game, GameParts, Move, PredictionLoss, cross_entropy, squared_error
from cida.games.conditional import Conditional
from cida.games.cua import CUA
from cida.games.dann import DANN
from cida.games.dependence_penalty import HSIC, DistanceCorrelation
from cida.games.given_prediction import GivenPrediction
from cida.games.mdd import MDD
from cida.games.source_only import SourceOnly

__all__ = [
    "ADDA",
    "CUA",
    "DANN",
    "GAMES",
    "HSIC",
    "MDD",
    "Adversarial",
    "Conditional",
    "DistanceCorrelation",
    "Game",
    "GameParts",
    "GivenPrediction",
    "Move",
    "PredictionLoss",
    "SourceOnly",
    "cross_entropy",
    "get_game_class",
    "squared_error",
]

GAMES: dict[str, type[Game]] = {
    "adversarial": Adversarial,
    "conditional": Conditional,
    "given-prediction": GivenPrediction,
    "distance-correlation": DistanceCorrelation,
    "hsic": HSIC,
    "dann": DANN,
    "adda": ADDA,
    "mdd": MDD,
    "cua": CUA,
}


def get_game_class(game: object) -> type[Game]:
    """Return a game's class from its short name, or the class itself.

    Parameters
    ----------
    game : str or type
        A name in ``GAMES``, such as "adversarial", or a subclass of `Game`.

    Returns
    -------
    type
        A subclass of `Game`.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(game, type) and issubclass(game, Game):
        return game
    if isinstance(game, str) and game in GAMES:
        return GAMES[game]
    raise ValueError(
        f"game is {game!r}; {did_you_mean(game, GAMES)}give one of {', '.join(GAMES)}, or a class "
        "derived from cida.games.Game."
    )
