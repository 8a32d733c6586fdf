"""The limits beyond which the doctor reports a problem, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from cida.training import round_probe

__all__ = ["THRESHOLDS", "DoctorThresholds"]


@dataclass(frozen=True)
class DoctorThresholds:
    """The limits of the doctor's rules.

    They were set on circle, sine, plane, ladder and irrelevant_index, with seeds 100 to 105, on
    healthy runs and on runs with planted faults, and on no other data (docs/doctor.md).

    Parameters
    ----------
    min_steps : int, default 200
        Fewest steps of a run to be examined.
    min_health_probes : int, default 10
        Fewest health probes of a run to be examined.
    max_mode_share : float, default 0.9
        Share of the rows with the most frequent index value.
    max_densest_share : float, default 0.35
        Share of the rows within a hundredth of the index range.
    max_tied_share : float, default 0.8
        Share of those rows with one value: above it u has only a few values.
    min_index_std : float, default 0.1
        Standard deviation of a column that the space should have scaled to 1.
    max_index_std : float, default 10.0
        Standard deviation of a column that the space should have scaled to 1.
    min_rows_per_side : int, default 60
        Labelled rows, and unlabelled rows.
    min_rows_per_class : int, default 10
        Labelled rows of a class.
    max_loss_above_ceiling : float, optional
        Loss of the discriminator above its ceiling.
    max_share_above_ceiling : float, default 0.3
        Share of the events with a loss above the ceiling.
    max_index_share_read : float, optional
        Share of u that the discriminator reads in z at the end.
    max_curriculum_index_share : float, default 0.35
        Share of u that is read in z at some time of a curriculum.
    min_active_probe_share : float, default 0.2
        Share of the probes with a gradient of the adversary in z.
    max_memorized_share : float, default 0.25
        Share of what D reads of u that it learned on the rows of the round.
    max_index_r2 : float, default 0.3
        Share of V[u] explained by a linear probe of z.
    max_dominant_index_r2 : float, default 0.25
        The same in the directions where z varies most.
    max_discriminator_steps : int, default 4
        Moves of D for each move of the encoder.
    max_adversarial_gradient_share : float, default 0.85
        Share of the gradient in z that is the adversary's.
    min_adversarial_gradient_share : float, optional
        Share of the gradient in z that is the adversary's.
    max_lambda_ratio : float, default 5.0
        Ratio of ``lambda_d`` and the default of the game, either way.
    max_remaining_loss_share : float, default 0.5
        Share of the loss of the best constant prediction that is left.
    min_learnable_share : float, default 0.25
        Share of that loss by which nearest neighbours are better.
    max_late_decrease_share : float, default 0.12
        Share of the decrease of the loss in the last fifth.
    min_loss_decrease_share : float, default 0.05
        Decrease of the loss, as a share of that of the best constant prediction.
    min_learning_rate : float, default 1e-4
        Step size.
    max_weight_decay : float, default 0.1
        Weight decay.
    min_relative_encoding_std : float, optional
        Standard deviation of z relative to its largest so far.
    max_majority_share_far : float, optional
        Share of the most frequent predicted class far from the source.
    max_majority_share_source : float, optional
        The same among source rows.
    """

    min_steps: int = 200
    min_health_probes: int = 10
    max_mode_share: float = 0.9
    max_densest_share: float = 0.35
    max_tied_share: float = 0.8
    min_index_std: float = 0.1
    max_index_std: float = 10.0
    min_rows_per_side: int = 60
    min_rows_per_class: int = 10
    max_loss_above_ceiling: float = round_probe.MAX_LOSS_ABOVE_CEILING
    max_share_above_ceiling: float = 0.3
    max_index_share_read: float = round_probe.MAX_INDEX_SHARE_READ
    max_curriculum_index_share: float = 0.35
    min_active_probe_share: float = 0.2
    max_memorized_share: float = 0.25
    max_index_r2: float = 0.3
    max_dominant_index_r2: float = 0.25
    max_discriminator_steps: int = 4
    max_adversarial_gradient_share: float = 0.85
    min_adversarial_gradient_share: float = round_probe.MIN_ADVERSARIAL_GRADIENT_SHARE
    max_lambda_ratio: float = 5.0
    max_remaining_loss_share: float = 0.5
    min_learnable_share: float = 0.25
    max_late_decrease_share: float = 0.12
    min_loss_decrease_share: float = 0.05
    min_learning_rate: float = 1e-4
    max_weight_decay: float = 0.1
    min_relative_encoding_std: float = round_probe.MIN_RELATIVE_ENCODING_STD
    max_majority_share_far: float = round_probe.MAX_MAJORITY_SHARE_FAR
    max_majority_share_source: float = round_probe.MAX_MAJORITY_SHARE_SOURCE


THRESHOLDS = DoctorThresholds()
