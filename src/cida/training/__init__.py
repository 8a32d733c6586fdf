"""Training: who moves when, on which rows, and what is kept."""

from cida.training.curriculum import Curriculum, Sampler
from cida.training.nearness import near_weights
from cida.training.trainer import (
    Callback,
    Event,
    NonFiniteLossError,
    Trainer,
    Training,
    isolated,
)

__all__ = [
    "Callback",
    "Curriculum",
    "Event",
    "NonFiniteLossError",
    "Sampler",
    "Trainer",
    "Training",
    "isolated",
    "near_weights",
]
