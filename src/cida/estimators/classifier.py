"""The classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from cida.estimators import expected, inputs
from cida.estimators.base import CIDAEstimator
from cida.estimators.header import read_classes
from cida.estimators.inputs import Array, Labels
from cida.games import PredictionLoss, cross_entropy
from cida.metrics import Metric, accuracy
from cida.selection.expected_score import ExpectedScore

__all__ = ["CIDAClassifier"]


@dataclass(eq=False, repr=False)
class CIDAClassifier(ClassifierMixin, CIDAEstimator):  # type: ignore[misc]
    """A classifier that adapts across a continuous domain index.

    >>> from cida import CIDAClassifier
    >>> from cida.datasets import circle
    >>> world = circle()
    >>> model = CIDAClassifier(steps=20, random_state=0)
    >>> model = model.fit(world.x, world.training_labels, domain_index=world.u)
    >>> model.predict(world.x, domain_index=world.u).shape
    (3000,)

    Parameters
    ----------
    discriminator : "histogram", "gaussian" (PCIDA), "l2" (CIDA), "l1", "mixture", "skew",
        "von-mises", "von-mises-mixture", "full-gaussian", "flow", an instance, or None for no
        adversary (Source-Only). "auto", the default: a histogram of as many bins as u has values,
        30 at most.
    game : "adversarial", "conditional" (the discriminator also sees the prediction),
        "given-prediction" (z hides only what the prediction does not say, for labels that depend
        on u), "distance-correlation" or "hsic" (a measure of dependence in the discriminator's
        place), "dann" (source against target, no index), "adda", "mdd", "cua", or a class of your
        own derived from `cida.games.Game`.
    space : what u is: ``Line()``, ``Periodic(24)``, a ``Product`` of these. None: a circle where u
        goes once round 24, 360, 365.25 or 2 pi and x meets itself there, else lines.
    encoder, predictor : your own modules in place of the MLPs, with the weights they come with;
        ``fit`` trains a copy, in training mode throughout.
    coordinates : how the encoder sees u. "frame": x in the moving frame of the index
        (`cida.coordinates.MovingFrame`), where what only moves and turns along u stands still.
        the same by the turns of the principal axes, for what turns on the spot; both for at most
        128 columns and a `Line`. "windows": each column standardised among the rows whose index is
        nearest (`cida.networks.TabularEncoder`), for any space. True: a branch of its own,
        ``E(x, u)``. False: not at all, ``E(x)``; then `predict` needs no index. "auto", the
        default: the simplest of False, "windows", "frame" and "axes" in which a label that was
        learned in one part of the source holds in another.
    stochastic : None, or a probabilistic encoder. "gaussian": z is drawn from a Gaussian whose mean
        and variance the encoder gives (the footnote of section 3.1). "dropout": a tenth of the
        numbers of each of its hidden layers is dropped, in prediction too (the supplement).
    draws : how many draws of a probabilistic encoder a prediction averages over; it may be set
        after the fit. An encoder or predictor of your own is probabilistic where it has a
        `cida.networks.GaussianCode` or `MonteCarloDropout` in it.
    hidden, encoding_width, predictor_hidden : the widths of the encoder's layers, of z, and of the
        predictor's layers; ``predictor_hidden=()`` is a linear predictor. ``hidden=None`` is
        (128, 128, 128).
    batch_norm : batch normalisation in the predictor and the discriminator, as in the paper.
    lambda_d : the weight of the adversarial loss (eq. 1). None: the game's usual one, 1, or 10 for
        a measure of dependence.
    discriminator_steps : discriminator updates for each encoder update.
    ceiling : whether the encoder stops where no encoder can win more.
    curriculum, stages : the share of the steps over which the index range widens from near to far,
        and in how many stages. None: 0.9 for a head that sees a moment or two of p(u|z), none for
        one that sees all of it.
    balance_bins : cells along u that are drawn equally often; 1 draws rows as they come.
    steps, batch_size : None picks 6,000 steps and 128 rows; 2,000 steps where "auto" chose anything
        but False and there are 20,000 rows at most. Without an index 100 passes over the rows,
        between 300 and 6,000 steps.
    source_batch_size : the labelled rows of a round, beside the ``batch_size`` of all rows; None
        picks half of that, or all of it where there is no index.
    learning_rate, schedule : of Adam; "cosine" or "constant".
    weight_decay : decoupled, of AdamW; 0 is plain Adam.
    averaging : the decay of the weight average; 0 keeps the last weights.
    nearness : how many of the source rows count in effect, as a share: below 1 those nearest to the
        target weigh most in the prediction loss, by their distance d to it, as
        ``0.05 + 0.95 exp(-d^2 / 2 h^2)``.
    standardise : whether X is centred and scaled inside.
    device, precision, compile : where and how the encoder is trained: "cpu" or "cuda"; "float32" or
        "bf16"; whether torch compiles it. The fitted model is on the CPU, in float32.
    class_weight : None, "balanced" or a dict, for the prediction loss alone.
    restarts, validator : plays so many games, each from a start of its own, and keeps the one that
        the validator likes best, which sees no label of the target (docs/selection.md):
        "consensus", another name of `cida.selection.VALIDATORS`, or one of your own.
        What it said is in ``selection_``.
    random_state : an integer makes the fit repeat bit for bit.
    verbose : shows a progress bar with each loss against its ceiling.
    callbacks : functions that receive the same events (`cida.training.Event`).

    What was chosen is in ``plan_`` and ``space_`` (docs/defaults.md has the rules).

    In searches mark unlabelled rows with -1 (scikit-learn's splitters refuse NaN in y) and keep
    the default scoring, which leaves them out. Turn scikit-learn's metadata routing on, so that
    scoring gets the index, or use ``coordinates="raw"``, which needs none; then predict with
    ``search.best_estimator_``.

    ``partial_fit`` and ``warm_start`` are out of scope: every ``fit`` starts afresh, or goes on
    where it was cut off (`cida.resumable`).
    """

    class_weight: Any = None

    __metadata_request__predict_proba: ClassVar = {"domain_index": True}

    def _scorable_labels(self, y: Any, n_rows: int) -> Labels:
        labels = inputs.read_labels(y, n_rows, has_index=True, source=None)
        if self.index_width_ is None or -1 in self.classes_.tolist():
            return labels
        return inputs.hide_minus_one(labels)

    def _read_labels(self, y: Any, n_rows: int, has_index: bool, source: Any) -> Labels:
        labels = super()._read_labels(y, n_rows, has_index, source)
        if has_index and source is None:
            return inputs.hide_minus_one(labels)
        if source is None:
            inputs.warn_minus_one(labels.values)
        return labels

    def _fit_labels(self, labels: Labels, weight: Array) -> Array:
        source_labels = labels.source_labels
        inputs.check_finite_labels(source_labels)
        with np.errstate(invalid="ignore"):  # it casts numbers beyond the whole ones
            check_classification_targets(source_labels)
        self.classes_, codes = np.unique(source_labels, return_inverse=True)
        if len(self.classes_) < 2:
            unlabelled_values = labels.values[~labels.labelled]
            hint = ""
            if unlabelled_values.dtype.kind == "i" and (unlabelled_values == -1).any():
                hint = " (-1 was read as unlabelled: if it is a class, give source)"
            raise ValueError(
                f"y has one class ({self.classes_[0]}) among its labelled rows; a classifier "
                f"needs at least two: label rows of another class too{hint}."
            )
        targets = np.zeros(len(labels.values), dtype=np.int64)
        targets[labels.labelled] = codes
        return targets

    def _fit_dataset_labels(self, y: Tensor) -> None:
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight is {self.class_weight!r}, which fit_rows does not read; give rows "
                "their weight."
            )
        if y.is_floating_point() or int(y.min()) < 0 or int(y.max()) < 1:
            raise ValueError(
                f"rows have labels from {y.min().item():g} to {y.max().item():g} of type "
                f"{y.dtype}; a classifier needs whole numbers 0 .. K - 1 of at least two classes."
            )
        self.classes_ = np.arange(int(y.max()) + 1)

    def _prediction_weight(self, labels: Labels, weight: Array) -> Array:
        if self.class_weight is None:
            return weight
        class_weights = compute_class_weight(
            self.class_weight,
            classes=self.classes_,
            y=labels.source_labels,
            sample_weight=weight[labels.labelled],
        )
        weight = weight.copy()
        weight[labels.labelled] *= class_weights[
            np.searchsorted(self.classes_, labels.source_labels)
        ]
        return weight

    def _output_width(self) -> int:
        return len(self.classes_)

    def _label_state(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _restore_labels(self, state: dict[str, Any]) -> None:
        self.classes_ = read_classes(state["classes"], state["dtype"])

    def _prediction_loss(self) -> PredictionLoss:
        return cross_entropy

    def _bin_metric(self) -> Metric:
        return accuracy

    def _merge_draws(self, outputs: Tensor) -> Tensor:
        # The log of the mean probability: the softmax of it is that mean.
        return outputs.double().log_softmax(2).logsumexp(0) - math.log(len(outputs))

    def predict_proba(self, X: Any, domain_index: Any = None) -> Array:
        """The probability of each class in ``classes_``.

        Where the encoder is probabilistic, the mean of the probabilities over its draws.
        """
        logits = torch.from_numpy(self._compute_outputs(X, domain_index))
        return logits.double().softmax(1).numpy()

    def predict(self, X: Any, domain_index: Any = None) -> Array:
        """The most probable class of each row, by `predict_proba`."""
        codes = self._compute_outputs(X, domain_index).argmax(axis=1)
        predicted: Array = self.classes_[codes]
        return predicted

    def score(self, X: Any, y: Any, domain_index: Any = None, sample_weight: Any = None) -> float:
        """Accuracy over the labelled rows."""
        return self._score(accuracy_score, X, y, domain_index, sample_weight)

    def expected_score(
        self, X: Any, y: Any, domain_index: Any, source: Any = None, n_bins: int = 20
    ) -> list[ExpectedScore]:
        """The accuracy to expect on the target in cells along u, each with an interval.

        X, y and ``domain_index`` are those of the fit: no label of the target is read. The estimate
        is checked by a second training that is not shown the outermost source range; a warning
        says where u lies farther than that check reached (docs/selection.md).
        """
        return expected.estimate_expected_score(self, X, y, domain_index, source, n_bins)
