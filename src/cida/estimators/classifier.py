"""The classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from cida.data import IndexedDataset
from cida.estimators import array_checks
from cida.estimators.array_checks import Array, Labels
from cida.estimators.base import CIDAEstimator
from cida.estimators.expected_accuracy import estimate_accuracy, warn_beyond_calibration
from cida.estimators.labels import ClassLabels
from cida.estimators.validation import FitArguments, TrainingData, dataset_training_data
from cida.selection import ExpectedScore

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

    @property
    def classes_(self) -> Array:
        """The classes, in the order of `predict_proba`'s columns."""
        state = self.__dict__.get("state_")
        if state is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'classes_'")
        classes: Array = state.labels.classes
        return classes

    @property
    def _is_classifier(self) -> bool:
        return True

    def _known_labels(self, y: Any, n_rows: int) -> Labels:
        labels = super()._known_labels(y, n_rows)
        if self.index_width_ is None or -1 in self.classes_.tolist():
            return labels
        return array_checks.hide_minus_one(labels)

    def predict_proba(self, X: Any, domain_index: Any = None) -> Array:
        """The probability of each class in ``classes_``.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.

        Returns
        -------
        ndarray of shape (rows, classes)
            Where the encoder is probabilistic, the mean of the probabilities over its draws.
        """
        outputs = self._outputs(X, domain_index)
        codec = self.state_.labels
        assert isinstance(codec, ClassLabels)
        return codec.probabilities(outputs)

    def predict(self, X: Any, domain_index: Any = None) -> Array:
        """The most probable class of each row, by `predict_proba`."""
        outputs = self._outputs(X, domain_index)
        return self.state_.labels.decode(outputs)

    def score(self, X: Any, y: Any, domain_index: Any = None, sample_weight: Any = None) -> float:
        """Accuracy over the labelled rows."""
        return self._score(accuracy_score, X, y, domain_index, sample_weight)

    def expected_score(
        self, X: Any, y: Any, domain_index: Any, source: Any = None, n_bins: int = 20
    ) -> list[ExpectedScore]:
        """The accuracy to expect on the target in cells along u, each with an interval.

        X, y and ``domain_index`` are those of the fit: no label of the target is read. The estimate
        is checked by a second training that is not shown the nearest source third; a warning
        says where u lies farther than that check reached (docs/selection.md).
        """
        self._indexed(domain_index, "look along")
        data = self.read_training_data(FitArguments(X, y, domain_index, source))
        cells = self.expected_scores_of(data, n_bins)
        warn_beyond_calibration(cells)
        return cells

    def expected_dataset_score(self, dataset: IndexedDataset, n_bins: int) -> list[ExpectedScore]:
        """`expected_score` after `fit_dataset`, of the same data set."""
        data = dataset_training_data(dataset, True, self.encoder is not None)
        return self.expected_scores_of(data, n_bins)

    def expected_scores_of(self, data: TrainingData, n_bins: int) -> list[ExpectedScore]:
        """`expected_score` of data that was read and checked already."""
        self._indexed("given", "look along")
        state, options = self.state_, self._options()
        return estimate_accuracy(state, options, data, self._draw_seed(), n_bins)
