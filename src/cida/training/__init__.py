"""Training: who moves when, on which rows, and what is kept."""

from cida.training.course import Callback, Event
from cida.training.curriculum import Curriculum, Sampler
from cida.training.nearness import near_weights
from cida.training.resuming import CheckpointWarning, resumable
from cida.training.trainer import (
    NonFiniteLossError,
    Trainer,
    Training,
    isolated,
)

__all__ = [
    "Callback",
    "CheckpointWarning",
    "Curriculum",
    "Event",
    "NonFiniteLossError",
    "Sampler",
    "Trainer",
    "Training",
    "isolated",
    "near_weights",
    "resumable",
]
