"""Every setting of the trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cida.training.precision import Precision

__all__ = ["TrainingConfig"]


@dataclass(frozen=True)
class TrainingConfig:
    """Every setting of the trainer.

    Parameters
    ----------
    steps : int, default 6000
        Number of rounds.
    batch_size : int, default 128
        Rows of the pooled batch.
    source_batch_size : int, default 64
        Rows of the source batch.
    learning_rate : float, default 5e-4
        Initial step size of AdamW, for all players.
    schedule : {"cosine", "constant"}, default "cosine"
        How the step size changes; the cosine ends at a hundredth.
    weight_decay : float, default 0.0
        Weight decay of AdamW.
    ema_decay : float, default 0.999
        Decay of the moving average of the weights that the model keeps; 0 for the last weights.
    curriculum : float, default 0.0
        Share of the steps over which the index range widens from the source; 0 for none.
    curriculum_stages : int, default 20
        In how many stages it widens.
    n_balance_bins : int, default 30
        Cells along the index that are drawn equally often; 1 draws rows uniformly.
    seed : int, default 0
        Seed of all random numbers of training.
    events : int, default 100
        How many events the callbacks get.
    device : str, default "cpu"
        Where to train, such as "cuda".
    precision : {"float32", "bf16"}, default "float32"
        What the encoder computes in.
    compile : bool, default False
        Whether the encoder is compiled by ``torch.compile``.
    """

    steps: int = 6000
    batch_size: int = 128
    source_batch_size: int = 64
    learning_rate: float = 5e-4
    schedule: Literal["cosine", "constant"] = "cosine"
    weight_decay: float = 0.0
    ema_decay: float = 0.999
    curriculum: float = 0.0
    curriculum_stages: int = 20
    n_balance_bins: int = 30
    seed: int = 0
    events: int = 100
    device: str = "cpu"
    precision: Precision = "float32"
    compile: bool = False
