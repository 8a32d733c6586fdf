"""The training loop: steps, schedule, curriculum, averaging, events. It knows no method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from cida import distributed
from cida.data import Batch, IndexedDataset
from cida.games import Game, Move
from cida.indexing import subsample
from cida.training.checkpointing import CheckpointStore, GracefulInterrupt
from cida.training.config import TrainingConfig
from cida.training.events import Callback, EventLog
from cida.training.optimizer import FusedAdamW
from cida.training.precision import encoder_precision
from cida.training.sampling import Curriculum, Sampler
from cida.training.state import TrainingState, WeightAverage

__all__ = ["NonFiniteLossError", "Trainer", "seeded"]


class NonFiniteLossError(FloatingPointError):
    """A player's loss became NaN or infinite; the message says whose, when and what to try."""


class Trainer:
    """Runs a game for a number of steps and leaves the averaged weights in its players.

    It knows no method: the game decides what is minimised. The same seed and number of threads give
    the same weights, bit for bit, on a CPU. The global random state is restored afterwards.

    Parameters
    ----------
    config : TrainingConfig
        All settings.
    callbacks : iterable of callable, default ()
        Each is called with every `Event`.
    """

    def __init__(self, config: TrainingConfig, callbacks: Iterable[Callback] = ()) -> None:
        self.config = config
        self.callbacks = list(callbacks)

    def run(self, game: Game, dataset: IndexedDataset) -> None:
        """Train the players of a game.

        Parameters
        ----------
        game : Game
            The game; its players are changed in place and left on the CPU, in evaluation mode.
        dataset : IndexedDataset
            All rows, source and target.

        Raises
        ------
        NonFiniteLossError
            If a loss or a weight is no longer finite.
        """
        checkpoints = CheckpointStore.for_training(game, dataset, self.config)
        t = self.config
        with (
            seeded(distributed.rank_seed(t.seed)),
            encoder_precision(game.encoder, t.precision, t.compile),
            GracefulInterrupt(checkpoints) as interrupt,
        ):
            self._run(game.train(), dataset, interrupt)
        game.eval()

    def _run(self, game: Game, dataset: IndexedDataset, interrupt: GracefulInterrupt) -> None:
        t, checkpoints = self.config, interrupt.checkpoints
        device = distributed.rank_device(t.device)
        state = self._make_state(game.to(device))
        sampler = Sampler(dataset, game.space, t.n_balance_bins, state.generator)
        distance = self._distance_to_source(game, dataset)
        curriculum = Curriculum(distance, t.steps, t.curriculum, t.curriculum_stages)
        stage = -1
        checkpoint = None if checkpoints is None else checkpoints.load_latest()
        if checkpoint is not None:
            state.restore(checkpoint)
        start = 0 if checkpoint is None else checkpoint.step
        for past_stage in range(curriculum.stage_at(start - 1) + 1 if 0 < start < t.steps else 0):
            stage = past_stage  # the game has already entered it
            _enter_stage(sampler, curriculum, stage)

        for step in range(start, t.steps):
            if curriculum.stage_at(step) != stage:
                stage = curriculum.stage_at(step)
                if _enter_stage(sampler, curriculum, stage):
                    with _on_cpu(state, device):
                        game.enter_stage(dataset, sampler.active_rows, sampler.row_weights)
            game.set_progress(step / t.steps)
            rate = t.learning_rate * self._schedule_factor(step)
            source_ids = sampler.draw_source(t.source_batch_size)
            pooled_ids = sampler.draw_pooled(t.batch_size, game.newest_share)
            source = _select_shard(dataset, source_ids).to(device)
            pooled = _select_shard(dataset, pooled_ids).to(device)
            with state.event_log.probe_round(game, source, pooled, step + 1):
                for move in game.moves(source, pooled):
                    self._step_player(move, state, rate, step)
            state.weight_average.update()
            state.event_log.step(step + 1, rate, len(sampler.active_rows) / len(dataset))
            if checkpoints is not None and step + 1 < t.steps:
                stop = interrupt.is_requested(step)
                if stop or checkpoints.is_due(step):
                    checkpoints.save(state.checkpoint(step + 1))
                if stop:
                    interrupt.raise_received_signal()

        if start < t.steps:
            self._finish(state, checkpoints)
        game.cpu()

    def _make_state(self, game: Game) -> TrainingState:
        t = self.config
        optimizers = {
            name: FusedAdamW(own, t.weight_decay) for name, own in game.player_parameters().items()
        }
        average = WeightAverage([game.encoder, game.predictor], t.ema_decay)
        generator = torch.Generator().manual_seed(t.seed)
        event_log = EventLog(t.steps, t.events, self.callbacks)
        return TrainingState(game, optimizers, average, generator, event_log)

    def _step_player(self, move: Move, state: TrainingState, rate: float, step: int) -> None:
        """One player's step."""
        optimizer = state.optimizers[move.player]
        optimizer.zero_grad()
        move.total_loss.backward()  # type: ignore[no-untyped-call]
        if distributed.world_size() > 1:
            move = _average_over_ranks(move, optimizer.gradients)
        self._check_losses(move, step)
        optimizer.step(rate)
        state.event_log.add(move)

    def _finish(self, state: TrainingState, checkpoints: CheckpointStore | None) -> None:
        # The last step may break weights after the last loss was checked.
        for player, parameters in state.game.player_parameters().items():
            if not all(bool(p.isfinite().all()) for p in parameters):
                raise NonFiniteLossError(
                    f"the {player}'s weights are not finite after step {self.config.steps}; try "
                    f"a lower learning_rate (now {self.config.learning_rate:g})."
                )
        state.weight_average.apply()
        # Each rank has batch statistics of its own.
        distributed.all_reduce_mean(b for b in state.game.buffers() if b.is_floating_point())
        if checkpoints is not None:
            checkpoints.save(state.final_checkpoint(self.config.steps))

    def _distance_to_source(self, game: Game, dataset: IndexedDataset) -> Tensor:
        if self.config.curriculum <= 0:
            return torch.zeros(()).expand(len(dataset))
        return game.space.distance_to_set(dataset.u, dataset.u[subsample(dataset.source_rows)])

    def _schedule_factor(self, step: int) -> float:
        if self.config.schedule == "constant":
            return 1.0
        return max(0.01, 0.5 * (1 + math.cos(math.pi * step / self.config.steps)))

    def _check_losses(self, move: Move, step: int) -> None:
        for player, loss in move.losses.items():
            value = float(loss.detach())
            if not math.isfinite(value):
                raise NonFiniteLossError(
                    f"the {player}'s loss became {value} at step {step + 1} of "
                    f"{self.config.steps}; try a lower learning_rate (now "
                    f"{self.config.learning_rate:g}) or a lower lambda_d, and look for extreme "
                    "values in X."
                )


def _select_shard(dataset: IndexedDataset, row_ids: Tensor) -> Batch:
    """This rank's rows of a batch."""
    batch = dataset[distributed.shard(row_ids)]
    return batch if distributed.world_size() == 1 else replace(batch, global_rows=len(row_ids))


def _average_over_ranks(move: Move, gradients: list[Tensor]) -> Move:
    """Average a move's gradients, in place, and its scalars over all ranks in one exchange."""
    device = gradients[0].device
    losses, metrics, ceilings = (
        {name: value.detach().to(device, torch.float32, copy=True) for name, value in group.items()}
        for group in (move.losses, move.metrics, move.ceilings)
    )
    scalars = (*losses.values(), *metrics.values(), *ceilings.values())
    distributed.all_reduce_mean([*gradients, *scalars])
    return Move(move.player, losses, metrics, ceilings)


def _enter_stage(sampler: Sampler, curriculum: Curriculum, stage: int) -> bool:
    """Activate the rows of a curriculum stage; return whether any are new."""
    active = curriculum.active_rows(stage)
    if stage and len(active) <= len(sampler.active_rows):
        return False
    sampler.set_active_rows(active)
    return True


@contextmanager
def _on_cpu(state: TrainingState, device: torch.device) -> Iterator[None]:
    """Inside, the game is on the CPU, where the rows are, to fit what depends on all of them."""
    if device.type == "cpu":
        yield
        return
    state.game.cpu()
    yield
    state.game.to(device)
    state.weight_average.refresh_weights()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Context with torch's random state seeded and float32 as default; both are restored.

    Parameters
    ----------
    seed : int
        The seed.
    """
    dtype = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's only: no other is restored
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
