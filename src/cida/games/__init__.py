"""The games: who minimises what."""

from cida.games.adversarial import Adversarial
from cida.games.base import Game, Move, PredictionLoss, cross_entropy, squared_error
from cida.games.source_only import SourceOnly

__all__ = [
    "Adversarial",
    "Game",
    "Move",
    "PredictionLoss",
    "SourceOnly",
    "cross_entropy",
    "squared_error",
]
