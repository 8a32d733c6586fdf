"""The game for labels that depend on u: z hides only what the prediction does not say."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from cida.batch import Batch, Rows
from cida.discriminators import Discriminator
from cida.games.base import Move, Parts, frozen, joined, resting
from cida.games.contested import Contested
from cida.ranks import mean
from cida.scratch import few

__all__ = ["GivenPrediction", "TwoBeliefs"]


class TwoBeliefs(nn.Module):
    """``B(yhat)`` and ``D(z, yhat) = B(yhat) + R(z, yhat)``: beliefs before z is seen, and after.

    R has nothing to learn where z adds nothing to the prediction. A second belief made from
    scratch would read the same news from z and from yhat alike, and the encoder would be asked to
    hide its half. B is R's twin, shown zeros for z, so that a body of the user's own fits both.
    """

    def __init__(self, head: Discriminator) -> None:
        super().__init__()
        self.reference = copy.deepcopy(head)
        self.beyond = head

    def values(self, z: Tensor, said: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """``V_D`` and ``V_B``: how badly each of the two beliefs fits the target."""
        before = self.reference(torch.cat([torch.zeros_like(z), said], dim=1))
        after = before.detach() + self.beyond(torch.cat([z, said], dim=1))
        score = self.reference.score
        return mean(score(after, target)), mean(score(before, target))


class GivenPrediction(Contested[TwoBeliefs]):
    """``min_{E,F} max_D V_p(E, F) - lambda_d min(V_D, V_B)``: z independent of u given yhat.

    The loss V_B of the best belief that sees the prediction alone takes the place of the ceiling:
    with a log loss ``V_B - V_D = I(z; u | yhat)`` where both beliefs are at their best. Where the
    label depends on u (section 4.2.2) the prediction may say what it says about u, and the encoder
    hides the rest. yhat is the predicted class, or the predicted numbers in a regression; no
    gradient passes through it. It is the class alone, not its probability: given that, all of a
    z that is the log odds would count as said.
    """

    conditional = True
    uses_head = True

    @classmethod
    def make_adversary(cls, parts: Parts) -> TwoBeliefs:
        seen = parts.encoding_width + parts.output_width
        return TwoBeliefs(parts.discriminator.build(seen, parts.space, parts.u))

    def enter_stage(self, rows: Rows, active: Tensor, weights: Tensor) -> None:
        for head in (self.discriminator.reference, self.discriminator.beyond):
            head.fit_blind(rows.u[few(active)], few(weights))

    def said(self, z: Tensor, batch: Batch) -> Tensor:
        """``yhat``: the predicted class, one-hot, or the predicted numbers, with no gradient."""
        with torch.no_grad(), resting(self.predictor):  # as it will predict; no statistics move
            output: Tensor = self.predictor(z)
            if not batch.has_classes:
                return output
            return nn.functional.one_hot(output.argmax(1), output.shape[1]).to(output.dtype)

    def moves(self, source: Batch, everyone: Batch) -> Iterator[Move]:
        z_both = self.encode(*joined(source, everyone))
        z_source, z = torch.split(z_both, [len(source), len(everyone)])
        said = self.said(z, everyone)
        target = self.discriminator.reference.target(everyone.u).to(z.dtype)

        for _ in range(self.discriminator_steps):
            value, reference = self.discriminator.values(z.detach(), said, target)
            yield Move("discriminator", {"discriminator": value, "reference": reference})

        with frozen(self.discriminator):
            value, reference = self.discriminator.values(z, said, target)
        prediction = self.prediction_value(z_source, source)
        yield Move(
            "encoder",
            {"predictor": prediction, "encoder": self.encoders_share(value, reference)},
            figures={"prediction": prediction, "discriminator": value},
            ceilings={"discriminator": reference},
        )
