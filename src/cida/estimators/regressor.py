"""The regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

from cida.array_checks import Array
from cida.estimators.base import CIDAEstimator
from cida.estimators.fitted_estimator import FittedRegressor
from cida.estimators.labels import NumberLabels
from cida.estimators.prediction import is_probabilistic

__all__ = ["CIDARegressor"]


@dataclass(eq=False, repr=False)
class CIDARegressor(FittedRegressor, CIDAEstimator):
    """A regressor that adapts across a continuous domain index.

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

    Attributes
    ----------
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

    Examples
    --------
    >>> from cida import CIDARegressor
    >>> from cida.datasets import make_drifting_regression
    >>> data = make_drifting_regression(n_samples=200)
    >>> model = CIDARegressor(steps=20, random_state=0)
    >>> model = model.fit(data.x, data.training_labels, domain_index=data.u)
    >>> model.predict(data.x, domain_index=data.u).shape
    (200,)
    """

    __metadata_request__predict: ClassVar = {"domain_index": True, "return_std": True}

    @overload
    def predict(
        self, X: Any, domain_index: Any = None, return_std: Literal[False] = False
    ) -> Array: ...

    @overload
    def predict(
        self, X: Any, domain_index: Any = None, *, return_std: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: Any, domain_index: Any = None, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """The predicted number of each row: where the encoder is probabilistic, its mean.

        Parameters
        ----------
        X : array-like or table
            Rows as in `fit`.
        domain_index : array-like, optional
            The index of each row; a table has its own.
        return_std : bool
            Also give the deviation of each row: ``std^2`` is the variance over draws of the
            encoder, plus the mean squared error on the source rows of the fit, one number. So far
            from the source only the first part can grow, and noise that differs along u is not
            seen.

        Returns
        -------
        ndarray, or a tuple of two
            The predictions, and the deviations if asked for.
        """
        outputs = self._outputs(X, domain_index)
        codec = self.state_.labels
        assert isinstance(codec, NumberLabels)
        if not return_std:
            return codec.decode(outputs)
        if codec.residual_variance is None or not is_probabilistic(self.game_):
            raise ValueError(
                "return_std is True, but the model was fitted with no probabilistic encoder; fit "
                "it with stochastic='gaussian' or stochastic='dropout'."
            )
        return codec.decode(outputs), codec.deviation(outputs)
