"""Estimators that decide whether, how and how far to adapt, by trials on source labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from cida.committee.expected import expected_committee_scores
from cida.estimators.adaptive_base import AdaptiveEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.fitted_estimator import FittedClassifier, FittedRegressor
from cida.estimators.labels import ClassLabels
from cida.estimators.regressor import CIDARegressor
from cida.estimators.scaling import Scaler
from cida.estimators.validation import FitArguments, TrainingData
from cida.selection import ExpectedScore

__all__ = ["AdaptiveClassifier", "AdaptiveRegressor"]


class AdaptiveClassifier(FittedClassifier, AdaptiveEstimator):
    """A classifier that decides whether, how and how far to adapt along a domain index.

    Linear and boosted models and networks, each in several coordinates along the index, are tried
    on source rows whose labels are hidden: the third of the source nearest to the target, and the
    farthest. The prediction is their mean, weighted by the trials; clear losers do not count. Only
    source labels and unlabelled rows are read.

    Parameters
    ----------
    candidates : sequence of (str, estimator), optional
        scikit-learn classifiers of your own, tried beside the built-in ones. They get the encoded
        columns, and the index as the space scales it if they request ``domain_index``, but no
        sample weights. A file cannot hold them.
    space : Space, optional
        What the index is, as for `CIDAClassifier`.
    max_candidates : int, optional
        How many candidates to try at most, your own first.
    time_budget : float, optional
        Seconds after which no further candidate is begun. The result then depends on the speed of
        the machine.
    n_jobs : int, optional
        Candidates that are tried side by side; the result is the same.
    random_state : int, RandomState or None, optional
        An integer makes the fit repeat bit for bit.

    Attributes
    ----------
    decision_ : Decision
        All candidates with their losses and weights; ``decision_.summary()`` tells the verdict.
    classes_ : ndarray
        The classes, in the order of `predict_proba`'s columns.
    space_ : Space
        The fitted space of the index.
    state_ : FittedState
        Everything that was fitted.

    Examples
    --------
    >>> from cida import AdaptiveClassifier
    >>> from cida.datasets import make_circle
    >>> data = make_circle(n_per_domain=20)
    >>> model = AdaptiveClassifier(max_candidates=4, random_state=0)
    >>> model = model.fit(data.x, data.training_labels, domain_index=data.u)
    >>> len(model.decision_.candidates)
    4
    """

    _network_class = CIDAClassifier

    def expected_score(
        self, X: Any, y: Any, domain_index: Any, source: Any = None, n_bins: int = 20
    ) -> list[ExpectedScore]:
        """Return the expected accuracy on the target in cells along u, each with an interval.

        It rests on the trials of the fit: no target label is read, and nothing is trained again.
        Where u lies farther away than the trials reached, the interval widens, and
        ``is_within_calibration`` is False.

        Parameters
        ----------
        X : array-like or table
            The rows of the fit.
        y : array-like or str
            The labels of the fit; those without one are the target.
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
        data = self.read_training_data(FitArguments(X, y, domain_index, source))
        return self.expected_scores_of(data, n_bins)

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
        decision, codec = self.state_.decision, self.state_.labels
        if decision is None or decision.calibration is None:
            raise ValueError(
                "the source has no range along the index that could be left out, so nothing can be "
                "said of what to expect on the target; label more rows."
            )
        assert isinstance(codec, ClassLabels)
        rows = data.dataset[torch.arange(len(data))]
        state = replace(self.state_, scaler=Scaler.identity())
        probability = codec.probabilities(state.outputs(rows.x.numpy(), rows.u, 1))
        is_target = ~rows.labelled.numpy()
        space, calibration = state.plan.space, decision.calibration
        return expected_committee_scores(probability, rows.u, is_target, space, calibration, n_bins)


class AdaptiveRegressor(FittedRegressor, AdaptiveEstimator):
    """A regressor that decides whether, how and how far to adapt along a domain index.

    The counterpart of `AdaptiveClassifier`, with squared errors in the trials.

    Parameters
    ----------
    candidates : sequence of (str, estimator), optional
        scikit-learn regressors of your own, tried beside the built-in ones.
    space : Space, optional
        What the index is, as for `CIDARegressor`.
    max_candidates : int, optional
        How many candidates to try at most, your own first.
    time_budget : float, optional
        Seconds after which no further candidate is begun.
    n_jobs : int, optional
        Candidates that are tried side by side; the result is the same.
    random_state : int, RandomState or None, optional
        An integer makes the fit repeat bit for bit.

    Attributes
    ----------
    decision_ : Decision
        All candidates with their losses and weights; ``decision_.summary()`` tells the verdict.
    space_ : Space
        The fitted space of the index.
    state_ : FittedState
        Everything that was fitted.

    Examples
    --------
    >>> from cida import AdaptiveRegressor
    >>> from cida.datasets import make_drifting_regression
    >>> data = make_drifting_regression(n_samples=200)
    >>> model = AdaptiveRegressor(max_candidates=4, random_state=0)
    >>> model = model.fit(data.x, data.training_labels, domain_index=data.u)
    >>> model.predict(data.x, domain_index=data.u).shape
    (200,)
    """

    _network_class = CIDARegressor
