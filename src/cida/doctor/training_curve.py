"""How a training went, by its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from cida.array_types import Array
from cida.training import Event
from cida.training.round_probe import index_share_read, loss_above_ceiling

__all__ = ["TrainingCurve"]

N_CURVE_PARTS = 5  # of the run, by the sum of learning rates


@dataclass(frozen=True)
class TrainingCurve:
    """What the events of one run say as a whole; shares of the run are counted in events."""

    events: Sequence[Event]

    @property
    def n_probes(self) -> int:
        """How many events have figures of the game's health."""
        return sum(bool(event.health) for event in self.events)

    def events_between(self, start: float, stop: float) -> Sequence[Event]:
        """The events between these shares of the run; one at least."""
        count = len(self.events)
        first = min(int(start * count), count - 1)
        return self.events[first : max(int(stop * count), first + 1)]

    def gradient_shares(self, start: float) -> list[float]:
        """The adversary's share of the gradient in z, wherever it was probed."""
        name = "adversarial_gradient_share"
        return [e.health[name] for e in self.events_between(start, 1.0) if name in e.health]

    def index_share_read(self, start: float = 0.0) -> float | None:
        """The median share of u that the discriminator reads in z."""
        events = self.events_between(start, 1.0)
        return _median(index_share_read(e.losses, e.ceilings) for e in events)

    def max_index_share_read(self) -> float | None:
        """The most that was read of u in z, as the median of three events in a row."""
        shares = [index_share_read(e.losses, e.ceilings) for e in self.events]
        known = [share for share in shares if share is not None]
        return max((median(known[i : i + 3]) for i in range(len(known) - 2)), default=None)

    def share_above_ceiling(self, limit: float) -> float:
        """The share of events after the first fifth with a loss above its ceiling by ``limit``."""
        margins = [loss_above_ceiling(e.losses, e.ceilings) for e in self.events_between(0.2, 1.0)]
        is_above = [value > limit for value in margins if value is not None]
        return sum(is_above) / len(is_above) if is_above else 0.0

    def active_probe_share(self) -> float | None:
        """The share of probes after the first quarter with a gradient of the adversary in z."""
        shares = self.gradient_shares(0.25)
        return sum(share > 0 for share in shares) / len(shares) if shares else None

    def adversarial_gradient_share(self) -> float | None:
        """The median share of the gradient in z that is the adversary's, where it has any."""
        shares = self.gradient_shares(0.5)
        return _median(share for share in shares if share > 0)

    def prediction_loss(self, part: int = -1) -> float | None:
        """The mean prediction loss in one fifth of the run, measured by the sum of learning rates.

        The learning rate falls, so the last fifth has more than a fifth of the steps.
        """
        values = self._losses_by_fifth()
        return None if values is None else float(values[part])

    def late_decrease_share(self) -> float | None:
        """``(L_4 - L_5) / (L_0 - L_5)``: the last fifth's share of the whole decrease of the loss.

        L_k is the prediction loss in fifth k of the run, L_0 the largest in the first tenth of the
        events. An exponential decrease of rate r gives about ``0.2 r exp(-0.7 r) / (1 - exp(-r))``:
        a fifth where it has just begun, a hundredth where it has converged.
        """
        values, decrease = self._losses_by_fifth(), self.loss_decrease()
        if values is None or decrease is None:
            return None
        return float(values[-2] - values[-1]) / decrease if decrease > 0 else 0.0

    def loss_decrease(self) -> float | None:
        """By how much the prediction loss has decreased."""
        if (last := self.prediction_loss()) is None:
            return None
        return max(e.losses["prediction"] for e in self.events_between(0, 0.1)) - last

    def _losses_by_fifth(self) -> Array | None:
        n_parts, events = N_CURVE_PARTS, self.events
        if len(events) < 2 * n_parts or any("prediction" not in e.losses for e in events):
            return None
        steps = np.diff([0, *(event.step for event in events)])
        path_length = np.cumsum(steps * np.array([event.learning_rate for event in events]))
        position = n_parts * (path_length - path_length[0] / 2) / path_length[-1]
        part = np.minimum(n_parts - 1, position.astype(int))
        counts = np.bincount(part, minlength=n_parts)
        if (counts == 0).any():
            return None
        losses = np.array([event.losses["prediction"] for event in events])
        return np.bincount(part, losses, n_parts) / counts


def _median(values: Iterable[float | None]) -> float | None:
    known_values = [value for value in values if value is not None]
    return float(median(known_values)) if known_values else None
