"""The classifier."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

from cida.data import IndexedDataset
from cida.errors import CidaWarning, warn_user
from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_estimator import FittedClassifier
from cida.estimators.fitted_state import FittedState
from cida.estimators.fitting import fit_state, make_candidate
from cida.estimators.validation import FitArguments, TrainingData, dataset_training_data
from cida.policy import FitRequest, restore_head
from cida.selection import (
    ExpectedScore,
    ValidationSet,
    calibrate,
    expected_scores_by_cell,
    nearest_source_third,
)

__all__ = ["CIDAClassifier"]


@dataclass(eq=False, repr=False)
class CIDAClassifier(FittedClassifier, CIDAEstimator):
    """A classifier that adapts across a continuous domain index.

    What is left open is decided from the data, by rules that need no target label
    (docs/defaults.md).

    Parameters
    ----------
    discriminator : str, Discriminator or None, default "auto"
        The head: "histogram", "gaussian" (PCIDA), "l2" (CIDA), "l1", "mixture", "skew",
        "von-mises", "von-mises-mixture", "full-gaussian", "flow" or an instance; None for no
        adversary (Source-Only). "auto" is a histogram with as many bins as u has values, 30 at
        most.
    game : str or type, default "adversarial"
        Who minimises what: "adversarial", "conditional" (the discriminator also sees the
        prediction), "given-prediction" (z hides only what the prediction does not reveal, for
        labels that depend on u), "distance-correlation" or "hsic" (a measure of dependence in place
        of the discriminator), "dann" (source against target, without the index), "adda", "mdd",
        "cua", or a subclass of `cida.games.Game`.
    space : Space, optional
        What the index is: ``Line()``, ``Periodic(24)``, a ``Product`` of these. By default a circle
        where u goes once round 24, 360, 365.25 or 2 pi and x is continuous there, else lines.
    encoder : torch.nn.Module, optional
        Your own encoder, with its weights; ``fit`` trains a copy.
    predictor : torch.nn.Module, optional
        Your own predictor, with its weights; ``fit`` trains a copy.
    coordinates : str, default "auto"
        How x is expressed given u before the encoder: "raw" (as it is; `predict` then needs no
        index), "windows" (columns standardized among the rows whose index is nearest),
        "moving-frame" (relative to the path of the mean and its turns), "principal-axes" (the same
        with the turns of the principal axes) or "learned" (a branch of the encoder for u). The
        moving frames need a `Line` and at most 128 columns. "auto" chooses by a trial on source
        labels.
    capacity : {"auto", "linear", "mlp"}, default "auto"
        Whether the default predictor is linear and strongly regularised, or a network. "auto"
        compares both next to the target.
    stochastic : {"gaussian", "dropout"}, optional
        A probabilistic encoder: z drawn from a Gaussian whose mean and variance the encoder gives,
        or dropout that is also sampled in prediction.
    n_draws : int, default 32
        Draws of a probabilistic encoder that a prediction averages over; may be changed after the
        fit.
    encoder_hidden : sequence of int, optional
        Widths of the encoder's hidden layers.
    encoding_width : int, default 32
        Number of columns of z.
    predictor_hidden : sequence of int, optional
        Widths of the predictor's hidden layers; ``()`` is a linear predictor.
    batch_norm : bool, default False
        Batch normalisation in the predictor and the discriminator, as in the paper.
    lambda_d : float, optional
        Weight of the adversarial loss (eq. 1); by default that of the game.
    discriminator_steps : int, optional
        Moves of the discriminator for each move of the encoder.
    ceiling : bool, default True
        Whether the adversarial gradient stops where no encoder can gain more.
    curriculum : float, optional
        Share of the steps over which the index range widens from near to far. By default 0.9 for
        heads that see a moment or two of p(u|z), and 0 for those that see all of it.
    curriculum_stages : int, default 20
        In how many stages it widens.
    n_balance_bins : int, default 30
        Cells along u that are drawn equally often; 1 draws rows uniformly.
    steps : int, optional
        Number of training rounds; by default it follows from the rows and the plan.
    batch_size : int, optional
        Rows of the pooled batch; 128 by default, or all rows if there are fewer.
    source_batch_size : int, optional
        Labelled rows of a round; by default half of ``batch_size``.
    learning_rate : float, optional
        Initial step size of AdamW.
    schedule : {"cosine", "constant"}, default "cosine"
        How the step size changes.
    weight_decay : float, optional
        Decoupled weight decay.
    ema_decay : float, optional
        Decay of the moving average of the weights; 0 keeps the last weights.
    proximity : float, optional
        Effective share of the source rows that count: below 1 those nearest to the target have the
        largest weights in the prediction loss.
    standardize : bool, default True
        Whether X is centred and scaled.
    device : str, default "cpu"
        Where to train, such as "cuda"; the fitted model is on the CPU.
    precision : {"float32", "bf16"}, default "float32"
        What the encoder computes in during training.
    compile : bool, default False
        Whether torch compiles the encoder.
    n_members : int, default 1
        Models with different seeds whose predictions are averaged.
    n_restarts : int, default 1
        Trainings from different initial weights, of which the validator keeps one.
    validator : str or Validator, default "consensus"
        What chooses among the restarts, without target labels: a name in
        `cida.selection.VALIDATORS` or an instance.
    random_state : int, RandomState or None, optional
        An integer makes the fit repeat bit for bit.
    verbose : bool, default False
        Whether to show a progress bar with each loss and its ceiling.
    callbacks : sequence of callable, optional
        Called with every `cida.training.Event`.
    class_weight : "balanced", dict or None, optional
        Weights of the classes in the prediction loss.

    Attributes
    ----------
    classes_ : ndarray
        The classes, in the order of `predict_proba`'s columns.
    plan_ : Plan
        Every decision of the fit with its reason; ``plan_.summary()`` tells them.
    space_ : Space
        The fitted space of the index.
    state_ : FittedState
        Everything that was fitted.
    summary_ : FitSummary
        Figures of the fit that the doctor reads.
    diagnoses_ : list of Diagnosis
        What the doctor found.
    history_ : list of Event
        Losses and ceilings during training.

    Notes
    -----
    In scikit-learn's searches mark unlabelled rows with -1 (its splitters refuse NaN in y) and keep
    the default scoring, which leaves them out. Turn metadata routing on, so that scoring gets the
    index, or use ``coordinates="raw"``, which needs none. ``partial_fit`` and ``warm_start`` are
    not supported; `cida.resumable` continues an interrupted fit.

    Examples
    --------
    >>> from cida import CIDAClassifier
    >>> from cida.datasets import make_circle
    >>> data = make_circle()
    >>> model = CIDAClassifier(steps=20, random_state=0)
    >>> model = model.fit(data.x, data.training_labels, domain_index=data.u)
    >>> model.predict(data.x, domain_index=data.u).shape
    (3000,)
    """

    class_weight: Any = None

    def expected_score(
        self, X: Any, y: Any, domain_index: Any, source: Any = None, n_bins: int = 20
    ) -> list[ExpectedScore]:
        """Return the expected accuracy on the target in cells along u, each with an interval.

        No target label is read. The estimate is checked by a second training without the labels of
        the nearest source third; a warning says where u lies farther away than that check
        (docs/selection.md).

        Parameters
        ----------
        X : array-like or table
            The rows of the fit.
        y : array-like or str
            The labels of the fit.
        domain_index : array-like or names
            The index of the fit.
        source : array-like of bool, optional
            As in `fit`.
        n_bins : int, default 20
            About how many cells to make.

        Returns
        -------
        list of ExpectedScore
            One for each cell with enough target rows.
        """
        self._indexed(domain_index, "look along")
        data = self.read_training_data(FitArguments(X, y, domain_index, source))
        cells = self.expected_scores_of(data, n_bins)
        unchecked = [each for each in cells if not each.is_within_calibration]
        if unchecked:
            warn_user(
                f"{len(unchecked)} of {len(cells)} cells along domain_index lie farther from the "
                "source than any range that could be left out to check the estimate "
                "(is_within_calibration is False there); take what is expected there for a guess."
            )
        return cells

    def expected_dataset_score(self, dataset: IndexedDataset, n_bins: int) -> list[ExpectedScore]:
        """Return `expected_score` after `fit_dataset`, for the same data set.

        Parameters
        ----------
        dataset : IndexedDataset
            The data set of the fit.
        n_bins : int
            About how many cells to make.

        Returns
        -------
        list of ExpectedScore
            One for each cell with enough target rows.
        """
        return self.expected_scores_of(dataset_training_data(self, dataset), n_bins)

    def expected_scores_of(self, data: TrainingData, n_bins: int) -> list[ExpectedScore]:
        """Return `expected_score` for data that were read and checked before.

        Parameters
        ----------
        data : TrainingData
            What `fit` reads.
        n_bins : int
            About how many cells to make.

        Returns
        -------
        list of ExpectedScore
            One for each cell with enough target rows.
        """
        self._indexed("given", "look along")
        plan = restore_head(self.state_.plan, self, data.dataset)
        state = replace(self.state_, plan=plan)
        return _estimate_accuracy(state, self, data, self._draw_seed(), n_bins)


def _estimate_accuracy(
    state: FittedState, options: FitRequest, data: TrainingData, seed: int, n_bins: int
) -> list[ExpectedScore]:
    """The expected accuracy in cells along u, checked by a second training.

    The second training follows the same plan without the labels of the nearest source third, where
    its estimate is then compared with the truth. ``data`` are those of the fit.
    """
    space, dataset = state.plan.space, data.dataset
    hidden = nearest_source_third(space, dataset.u, dataset.labelled)
    hidden_dataset = dataset.with_hidden_labels(hidden)
    options = replace(options, n_restarts=1, n_members=1, verbose=False, callbacks=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)  # told when the model itself was fitted
        refitted = fit_state(state.plan, replace(data, dataset=hidden_dataset), options, seed)
    hidden_set = ValidationSet.from_dataset(space, hidden_dataset)
    is_hidden = hidden[hidden_set.row_indices]
    network = refitted.network(refitted.game, options.n_draws)
    calibration = calibrate(
        hidden_set,
        make_candidate(hidden_set, refitted.game, network, ()),
        is_hidden.nonzero()[:, 0].numpy(),
        dataset.y[hidden_set.row_indices[is_hidden]].numpy(),
    )
    validation_set = ValidationSet.from_dataset(space, dataset)
    network = state.network(state.game, options.n_draws)
    candidate = make_candidate(validation_set, state.game, network, ())
    return expected_scores_by_cell(validation_set, candidate, calibration, n_bins)
