"""The estimators that play the game: everything but the meaning of y."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from cida.array_types import Array
from cida.data import IndexedDataset
from cida.discriminators import make_discriminator
from cida.errors import warn_user
from cida.estimators import parameters, validation
from cida.estimators.fitted_estimator import FittedEstimator
from cida.estimators.fitting import fit_state
from cida.estimators.summarize import warn_label_shift
from cida.estimators.validation import FitArguments, TrainingData
from cida.games import get_game_class
from cida.policy import FitRequest, resolve
from cida.training import seeded

__all__ = ["CIDAEstimator"]


@dataclass(eq=False, repr=False)
class CIDAEstimator(FittedEstimator, FitRequest):
    """The common half of `CIDAClassifier` and `CIDARegressor`; use those."""

    __metadata_request__fit: ClassVar = {"domain_index": True, "source": True}

    def fit(
        self,
        X: Any,
        y: Any = None,
        domain_index: Any = None,
        source: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit on labelled source rows and, where there is an index, on unlabelled target rows.

        Parameters
        ----------
        X : array-like, frame, mapping of columns, or path
            Rows of numbers (numpy, pandas, polars, torch); images or signals; or a table with
            numbers, texts, dates and missing values (pandas, polars, pyarrow, a mapping of
            columns, or the path of a .csv, .parquet or .npz file).
        y : array-like or str
            Labels, or the name of the table's label column. NaN, None or an empty cell is
            unlabelled; so is -1 in the integer labels of a classifier when ``domain_index`` is
            given and ``source`` is not. Otherwise -1 is a class.
        domain_index : array-like, str or sequence of str, optional
            The index u, one number or one row of numbers for each row of X, or the names of index
            columns of the table. Without it this is a plain classifier or regressor.
        source : array-like of bool, optional
            Where given, labels outside it are never read.
        sample_weight : array-like, optional
            Weights of the prediction loss alone.

        Returns
        -------
        self
            The fitted estimator; a fit that fails leaves it as it was.
        """
        given = FitArguments(X, y, domain_index, source, sample_weight)
        return self.fit_data(self.read_training_data(given))

    def fit_dataset(self, dataset: IndexedDataset) -> Self:
        """Fit on an `IndexedDataset` as it is: rows made on the fly, or larger than memory.

        Parameters
        ----------
        dataset : IndexedDataset
            Inputs are not scaled, and labels must be as the game wants them: classes 0 .. K - 1,
            or numbers of about unit size. Rows that are no vectors need an encoder of your own.

        Returns
        -------
        self
            The fitted estimator.
        """
        parameters.check_parameters(self.get_params(deep=False), len(dataset))
        if getattr(self, "class_weight", None) is not None:
            raise ValueError(
                f"class_weight is {self.class_weight!r}, which fit_dataset does not read; give "
                "the data set's rows their weight."
            )
        return self.fit_data(validation.dataset_training_data(self, dataset), warns_of_shift=False)

    def fit_data(self, data: TrainingData, warns_of_shift: bool = True) -> Self:
        """Fit on data that was read and checked already.

        Parameters
        ----------
        data : TrainingData
            From `cida.estimators.validation.training_data`.
        warns_of_shift : bool
            Whether to warn where the balance of source labels moves along the index.

        Returns
        -------
        self
            The fitted estimator.
        """
        parameters.check_parameters(self.get_params(deep=False), len(data))
        game = get_game_class(self.game)  # a misspelt name is told even where none plays
        if self.discriminator not in (None, "auto"):
            make_discriminator(self.discriminator)
        can_adapt = data.layout.has_index and self.discriminator is not None and warns_of_shift
        if can_adapt and len(data.dataset.source_rows) == len(data):
            warn_user(
                f"y has no unlabelled row among its {len(data)}, so there is no target to adapt "
                "to; training on the source alone."
            )
        seed = self._draw_seed()
        with seeded(seed):  # a look-up of rows may draw, and that must not be felt outside
            plan = resolve(self, data.dataset, data.layout)
            hides_index = not game.conditional if plan.is_adapting else plan.standardizes_along_u
            if hides_index and warns_of_shift:
                warn_label_shift(plan.space, data.dataset)
            self.state_ = fit_state(plan, data, self, seed)
        return self

    def read_training_data(self, given: FitArguments) -> TrainingData:
        """Read and check the arguments of a fit, without fitting."""
        parameters.check_static(self.get_params(deep=False))
        unfitted = copy.copy(self)
        unfitted.__dict__.pop("state_", None)  # names of a former fit must not be taken for these
        return validation.training_data(unfitted, given)

    def _outputs(self, X: Any, domain_index: Any) -> Array:
        parameters.check_minimum("n_draws", self.n_draws)  # it may change after the fit
        return super()._outputs(X, domain_index)
