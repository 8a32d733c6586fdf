"""A fit that tries candidates on source labels and weighs them: what both estimators share."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.parallel import Parallel, delayed
from torch import Tensor, nn

from cida.committee.candidates import (
    Candidate,
    CandidateTask,
    ModelKind,
    TriedCandidate,
    default_candidates,
    try_candidate,
)
from cida.committee.decision import CandidateReport, Decision
from cida.committee.expected import calibrate_committee
from cida.committee.members import Committee, NetworkModel
from cida.committee.trials import Trials, candidate_weights
from cida.data import IndexedDataset
from cida.errors import CidaWarning
from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_estimator import FittedEstimator
from cida.estimators.fitted_state import FittedState
from cida.estimators.fitting import fit_state, sample_index_values
from cida.estimators.labels import ClassLabels
from cida.estimators.summarize import summarize_fit
from cida.estimators.validation import FitArguments, InputFormat, TrainingData
from cida.games import SourceOnly
from cida.policy import Plan, resolve
from cida.spaces import Space
from cida.training import seeded

__all__ = ["AdaptiveEstimator"]

NETWORK_STEPS = 300  # of a candidate: enough for its vote, and quick
ROW_ORDER_SEED = 0
MIN_CANDIDATES_IN_TIME = 2


class AdaptiveEstimator(FittedEstimator):
    """What the classifier and the regressor share; use those."""

    __metadata_request__fit: ClassVar = {"domain_index": True, "source": True}
    _network_class: ClassVar[type[CIDAEstimator]]

    def __init__(
        self,
        candidates: Sequence[tuple[str, Any]] | None = None,
        space: Space | None = None,
        max_candidates: int | None = None,
        time_budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.candidates = candidates
        self.space = space
        self.max_candidates = max_candidates
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        domain_index: Any = None,
        source: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Try all candidates on source labels, and fit them with the weights that they earned.

        Parameters
        ----------
        X : array-like, frame, mapping of columns, or path
            Rows of numbers, or a table with numbers, texts, dates and missing values.
        y : array-like or str
            Labels, or the name of the table's label column; what is missing is the target.
        domain_index : array-like, str or sequence of str, optional
            The index u of each row, or the names of its columns in the table.
        source : array-like of bool, optional
            Where given, labels outside it are never read.
        sample_weight : array-like, optional
            Weights of the rows in the fit of built-in candidates; trials count every row the same.

        Returns
        -------
        self
            The fitted estimator; a fit that fails leaves it as it was.
        """
        given = FitArguments(X, y, domain_index, source, sample_weight)
        return self.fit_data(self.read_training_data(given))

    def read_training_data(self, given: FitArguments) -> TrainingData:
        """Read and check the arguments of a fit, without fitting."""
        return self._network().read_training_data(given)

    def fit_data(self, data: TrainingData) -> Self:
        """Fit on data that was read and checked already.

        Parameters
        ----------
        data : TrainingData
            From `read_training_data`.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters(data)
        seed = self._draw_seed()
        data = replace(data, dataset=_in_fixed_order(data.dataset))
        plan = self._plan(data)
        trials = Trials.of(plan.space, data.dataset, plan.has_index)
        task = CandidateTask(
            data.dataset,
            data.layout,
            plan.space,
            data.labels.output_width,
            trials.ranges,
            partial(_fit_network, self._network_class, data, plan.space, seed),
        )
        tried = self._try_candidates(task)
        decision, used = _decide(tried, trials, data, plan.space)
        self.state_ = _make_state(plan, data, self._network(), used, decision)
        return self

    def _network(self, **settings: Any) -> CIDAEstimator:
        return self._network_class(space=self.space, **settings)

    def _check_parameters(self, data: TrainingData) -> None:
        if data.layout.kind != "columns":
            raise ValueError(
                f"X has rows of shape {data.layout.shape}, and {type(self).__name__} takes rows of "
                f"columns; use {self._network_class.__name__} for images and signals."
            )
        for name, minimum in (("max_candidates", 1), ("time_budget", 0)):
            value = getattr(self, name)
            if value is not None and not value >= minimum:
                raise ValueError(f"{name} must be at least {minimum} or None, got {value!r}.")

    def _plan(self, data: TrainingData) -> Plan:
        """The space, and what the summary of the fit tells; the committee takes the index."""
        request = self._network(discriminator=None, coordinates="raw", capacity="linear")
        plan = resolve(request, data.dataset, data.layout)
        return replace(plan, coordinates="learned" if plan.has_index else "raw")

    def _try_candidates(self, task: CandidateTask) -> list[TriedCandidate]:
        dataset = task.dataset
        has_target = len(dataset.source_rows) < len(dataset)
        candidates = default_candidates(task.layout, task.space, has_target)
        own = [Candidate(name, "custom", estimator=each) for name, each in self.candidates or ()]
        candidates = (own + candidates)[: self.max_candidates]
        run = Parallel(n_jobs=self.n_jobs)
        in_time = _within_budget(candidates, self.time_budget)
        return list(run(delayed(try_candidate)(each, task) for each in in_time))


def _within_budget(candidates: Sequence[Candidate], seconds: float | None) -> Iterator[Candidate]:
    """The candidates that can be begun in time; the first two always."""
    start = time.monotonic()
    for number, candidate in enumerate(candidates):
        is_late = seconds is not None and time.monotonic() - start > seconds
        if is_late and number >= MIN_CANDIDATES_IN_TIME:
            return
        yield candidate


def _in_fixed_order(dataset: IndexedDataset) -> IndexedDataset:
    """All rows in an order that depends on their content alone, and is random otherwise.

    So no choice depends on the order of rows, and equal index values are shared out by chance.
    """
    batch = dataset[torch.arange(len(dataset))]
    labels = batch.y.reshape(len(batch), -1)[:, :1].double()
    marks = torch.stack([batch.labelled.double(), batch.weight.double()], dim=1)
    columns = [batch.u, batch.x.flatten(1).double(), labels, marks]
    order = np.lexsort(torch.cat(columns, dim=1).numpy().T[::-1])
    order = order[np.random.default_rng(ROW_ORDER_SEED).permutation(len(order))]
    rows = torch.from_numpy(order)
    parts = (batch.x[rows], batch.y[rows], batch.u[rows], batch.labelled[rows])
    return IndexedDataset(*parts, batch.weight[rows])


def _fit_network(
    network_class: type[CIDAEstimator],
    data: TrainingData,
    space: Space,
    seed: int,
    kind: ModelKind,
    rows: Tensor,
) -> NetworkModel:
    """The network without or with the game, which knows the labels of these rows alone."""
    settings: dict[str, Any] = {} if kind == "game" else {"discriminator": None}
    request = network_class(space=space, steps=NETWORK_STEPS, random_state=seed, **settings)
    known = torch.zeros(len(data), dtype=torch.bool)
    known[rows] = True
    part = replace(data, dataset=data.dataset.with_hidden_labels(~known))
    with warnings.catch_warnings(), seeded(seed):
        warnings.simplefilter("ignore", CidaWarning)  # the decision tells what a member is worth
        plan = resolve(request, part.dataset, part.layout)
        state = fit_state(plan, part, request, seed)
    game = state.game.eval()
    return NetworkModel(game.encoder, game.predictor, plan.has_index_input).requires_grad_(False)


def _decide(
    tried: Sequence[TriedCandidate], trials: Trials, data: TrainingData, space: Space
) -> tuple[Decision, list[tuple[TriedCandidate, float]]]:
    """The weight of each candidate, and those that have any."""
    is_frame = np.array([each.candidate.mixes_columns for each in tried])
    if trials.ranges:
        losses = np.array([[part.mean() for part in each.losses] for each in tried])
        prior = np.array([each.candidate.prior for each in tried])
        weights = candidate_weights(losses, is_frame, prior)
    else:
        is_plain = np.array([each.candidate.model == "linear" for each in tried]) & ~is_frame
        is_plain |= not is_plain.any()
        weights = is_plain / is_plain.sum()
    reports = []
    for each, weight in zip(tried, weights, strict=True):
        pairs = list(zip(trials.ranges, each.losses, strict=True))
        reports.append(
            CandidateReport(
                each.candidate.name,
                each.candidate.mode,
                each.candidate.is_adaptive,
                float(weight),
                {part.name: float(loss.mean()) for part, loss in pairs},
                {part.name: float(loss.std() / np.sqrt(len(loss))) for part, loss in pairs},
            )
        )
    has_classes = isinstance(data.labels, ClassLabels)
    calibration = None
    if has_classes and trials.rule == "leave-range-out":
        calibration = calibrate_committee(tried, trials.ranges, data.dataset, space)
    metric = "log_loss" if has_classes else "squared_error"
    decision = Decision(tuple(reports), trials.rule, metric, calibration)
    used = [(each, float(w)) for each, w in zip(tried, weights, strict=True) if w > 0]
    return decision, used


def _make_state(
    plan: Plan,
    data: TrainingData,
    options: CIDAEstimator,
    used: Sequence[tuple[TriedCandidate, float]],
    decision: Decision,
) -> FittedState:
    members, weights = zip(*used, strict=True)
    committee = Committee([each.module for each in members], weights).eval()
    loss = type(data.labels).loss
    game = SourceOnly(committee, nn.Identity(), plan.space, loss, plan.has_index).eval()
    return FittedState(
        plan=plan,
        members=(game,),
        index_values=sample_index_values(data.dataset),
        encoding_width=data.labels.output_width,
        summary=summarize_fit(plan, options, data.dataset, game, data.labels),
        custom_modules=("encoder",),
        decision=decision,
        **{f.name: getattr(data, f.name) for f in fields(InputFormat)},
    )
