"""Training: which player moves when, on which rows, and what is kept."""

from cida.training.checkpointing import CheckpointWarning, resumable
from cida.training.config import TrainingConfig
from cida.training.events import Callback, Event
from cida.training.sampling import Curriculum, Sampler
from cida.training.trainer import NonFiniteLossError, Trainer, seeded
from cida.training.weighting import proximity_weights

__all__ = [
    "Callback",
    "CheckpointWarning",
    "Curriculum",
    "Event",
    "NonFiniteLossError",
    "Sampler",
    "Trainer",
    "TrainingConfig",
    "proximity_weights",
    "resumable",
    "seeded",
]
