"""CUA: one target bin after another, from near to far, with replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial

import torch
from torch import Tensor

from cida.data import Batch, IndexedDataset
from cida.distributed import any_rank, mean_over_ranks
from cida.games.base import Move, eval_mode
from cida.games.binary_domain import BINARY_CEILING, BinaryDomainGame
from cida.games.pseudo_labels import PseudoLabelMemory

__all__ = ["CUA"]


class CUA(BinaryDomainGame):
    """``min_{E,F} max_D V_p(E, F) + V_r(E, F) - lambda_d min(V_d(D, E), log 2)``, bin after bin.

    Continuous unsupervised adaptation (Bobu et al., 2018). Each stage of the curriculum adds a bin:
    D tells its rows from all known ones, and E hides the difference. When the next stage begins,
    the bin's labels are predicted once and remembered; from then on its rows are replayed with them
    (V_r, the prediction loss on remembered labels) and count as known.

    Parameters
    ----------
    encoder : torch.nn.Module
        E, from x (and the embedded index) to z.
    predictor : torch.nn.Module
        F, from z to the output.
    discriminator : BinaryDomainClassifier
        D, source against target.
    space : Space
        The fitted space of the index.
    prediction_loss : callable, default cross_entropy
        ``L_p(output, y)``, one number a row.
    index_in_encoder : bool, default True
        Whether the encoder is called with the embedded index.
    lambda_d : float, default 1.0
        Weight of the adversarial term.
    discriminator_steps : int, default 2
        Moves of the discriminator in each round.
    ceiling : bool, default True
        Whether the adversarial gradient stops above log 2.
    """

    newest_share = 0.5
    min_curriculum = 0.9

    @cached_property
    def memory(self) -> PseudoLabelMemory:
        """The labels that were predicted for rows of earlier bins."""
        return PseudoLabelMemory()

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), **self.memory.state()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        super().restore(self.memory.restore(state))

    def enter_stage(self, dataset: IndexedDataset, active: Tensor, weights: Tensor) -> None:
        with eval_mode(self):
            self.memory.enter_stage(dataset, active, self.predict)

    def moves(self, source: Batch, pooled: Batch) -> Iterator[Move]:
        z_source, z = self.encode_both(source, pooled)
        has_label = self.memory.has_label(pooled)
        losses = self._prediction_losses(z_source, source, z, pooled)
        if not any_rank(not bool(has_label.all())):
            yield Move("encoder", losses, metrics={"prediction": losses["predictor"]})
            return
        loss_fn = partial(self.discriminator.loss, second=~has_label)
        yield from self.minimax_moves(losses, z, loss_fn, BINARY_CEILING)

    def _prediction_losses(
        self, z_source: Tensor, source: Batch, z: Tensor, pooled: Batch
    ) -> dict[str, Tensor]:
        """``V_p``, and ``V_r``: the mean loss of target rows on their remembered labels."""
        is_remembered, labels = self.memory.replay_labels(pooled)
        output = self.predictor(torch.cat([z_source, z[is_remembered]]))
        row_losses = self.prediction_loss(output, torch.cat([source.y, labels]))
        source_losses = source.weight * row_losses[: len(source)]
        losses = {"predictor": mean_over_ranks(source_losses, total=source.global_rows)}
        if any_rank(bool(is_remembered.any())):
            losses["replay"] = mean_over_ranks(row_losses[len(source) :])
        return losses
