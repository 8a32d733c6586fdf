"""A fitted model as one torch module of raw inputs, in operations that ONNX has too."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from cida.estimators.base import CIDAEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.regressor import CIDARegressor
from cida.export.onnx_layers import (
    IndexEmbedding,
    LabelScaling,
    check_exportable,
    freeze_draws,
    make_traceable,
    to_double_tensor,
)
from cida.networks import StochasticLayer, TabularEncoder, is_stochastic

if TYPE_CHECKING:  # it needs pyarrow, and estimators are exported without
    from cida.estimators.table import TableModel

__all__ = [
    "EstimatorGraph",
    "EstimatorModule",
    "ExportGraph",
    "TableGraph",
    "make_example_u",
    "make_example_x",
    "make_synthetic_x",
]

MAX_ABS_SCALED_VALUE = (
    20.0  # that of `cida.tables.schema`, which needs pyarrow; a test holds them together
)
N_EXAMPLE_ROWS = 3  # of an example: neither 0 nor 1, which torch takes for constants

Array = np.ndarray[Any, Any]
Outputs = tuple[Tensor, ...]


class EstimatorModule(nn.Module):
    """``F(E(x, u))`` of one estimator from unscaled x, in double precision where Python has it.

    A row gives the probability of each class; or a number, and its deviation where the encoder is
    probabilistic. All draws go through the networks at once, one below the other.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, model: CIDAEstimator) -> None:
        super().__init__()
        self.embed, self.uses_index = IndexEmbedding(model.space_), model._has_index_input
        self.register_buffer("mean", torch.as_tensor(model._scaler.mean).double())
        self.register_buffer("scale", torch.as_tensor(model._scaler.scale).double())
        self.to_label: LabelScaling | None = None
        if isinstance(model, CIDARegressor):
            self.to_label = LabelScaling(
                model._y_scale, model._y_mean, model._residual_variance or 0.0
            )
        players = nn.ModuleList([model.game_.encoder, model.game_.predictor])
        check_exportable(players)
        self.n_draws = model.n_draws if is_stochastic(players) else 0
        self.players = copy.deepcopy(players).eval().requires_grad_(False)
        if self.n_draws:
            shapes = self._noise_shapes(make_example_x(model), make_example_u(model))
            freeze_draws(self.players, self.n_draws, shapes)
        make_traceable(self.players)

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        x = ((x.double() - self.mean) / self.scale).float()
        index = [self.embed(u).to(x.dtype)] if self.uses_index else []
        if not self.n_draws:
            return self._to_predictions(self._run_networks(x, *index).double()[None])
        repeated = [one.repeat(self.n_draws, *(1,) * (one.dim() - 1)) for one in (x, *index)]
        output = self._run_networks(*repeated)
        return self._to_predictions(output.double().view(self.n_draws, -1, output.shape[1]))

    def _run_networks(self, x: Tensor, *index: Tensor) -> Tensor:
        encoder, predictor = self.players
        output: Tensor = predictor(encoder(x, *index))
        return output

    def _to_predictions(self, outputs: Tensor) -> Tensor:
        """One line a row from those of each draw."""
        if self.to_label is None:
            return outputs.softmax(2).mean(0)
        mean = outputs.mean(0)
        if not self.n_draws:
            return self.to_label.to_label_units(mean)
        deviation = self.to_label.to_label_deviation((outputs - mean).square().mean(0))
        return torch.cat([self.to_label.to_label_units(mean), deviation], dim=1)

    @torch.no_grad()
    def _noise_shapes(self, x: Tensor, u: Tensor) -> dict[nn.Module, tuple[int, ...]]:
        """The shape of the rows that come to each stochastic layer."""
        shapes: dict[nn.Module, tuple[int, ...]] = {}
        layers = [layer for layer in self.players.modules() if isinstance(layer, StochasticLayer)]
        hooks = [
            layer.register_forward_pre_hook(
                lambda module, given: shapes.update({module: tuple(given[0].shape[1:])})
            )
            for layer in layers
        ]
        x = ((x.double() - self.mean) / self.scale).float()
        self._run_networks(x, *([self.embed(u).to(x.dtype)] if self.uses_index else []))
        for hook in hooks:
            hook.remove()
        return shapes


class ExportGraph(nn.Module):
    """What is exported: a list of raw inputs to the outputs of the file."""

    def split_outputs(self, predictions: Tensor, is_classifier: bool) -> Outputs:
        """Probabilities and the number of the class; or the number, and its deviation."""
        if is_classifier:
            return predictions, predictions.argmax(1)
        return tuple(predictions.unbind(1))


class EstimatorGraph(ExportGraph):
    """An estimator: X, and u if it was fitted with an index."""

    def __init__(self, model: CIDAEstimator) -> None:
        super().__init__()
        self.model = EstimatorModule(model)
        self.is_classifier = isinstance(model, CIDAClassifier)

    def forward(self, inputs: list[Tensor]) -> Outputs:
        x, u = inputs[0], inputs[-1]  # of a model without an index, u is not looked at
        return self.split_outputs(self.model(x, u), self.is_classifier)


class TableGraph(ExportGraph):
    """A table's model: its numbers (NaN where missing), codes of its categories, and the index.

    Rows that are no vectors take the place of numbers and codes. Several models give their mean.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, table: TableModel) -> None:
        super().__init__()
        self.models = nn.ModuleList([EstimatorModule(model) for model in table.estimators])
        numeric = [column for column in table.schema.columns if column.is_numeric]
        self.n_numeric, self.indicators = len(numeric), list(table.schema.missing_indicators)
        self.index_width = len(table.index)
        self.register_buffer("centre", to_double_tensor([column.center for column in numeric]))
        self.register_buffer("spread", to_double_tensor([column.scale for column in numeric]))
        self.rows_scaling = table.x_scaling if len(table.shape) > 1 else None
        self.is_classifier = table.classes is not None
        self.to_label = LabelScaling(table.scale, table.center)

    def forward(self, inputs: list[Tensor]) -> Outputs:
        columns, index = inputs[: -self.index_width], inputs[-self.index_width :]
        u = torch.stack(index, dim=1)
        x = (
            self._encode_columns(columns)
            if self.rows_scaling is None
            else self._scale_rows(columns[0])
        )
        predictions = torch.stack([model(x, u) for model in self.models]).mean(0)
        if not self.is_classifier:
            predictions = self.to_label.to_label_units(predictions)
        return self.split_outputs(predictions, self.is_classifier)

    def _scale_rows(self, rows: Tensor) -> Tensor:
        assert self.rows_scaling is not None
        centre, scale = self.rows_scaling
        return (rows - centre) / scale

    def _encode_columns(self, columns: Sequence[Tensor]) -> Tensor:
        """What `Schema.encode` makes of a row."""
        codes = [code.float()[:, None] for code in columns[self.n_numeric :]]
        if not self.n_numeric:
            return torch.cat(codes, dim=1)
        numbers = torch.stack(list(columns[: self.n_numeric]), dim=1)
        missing = numbers.isnan()
        scaled = ((numbers - self.centre) / self.spread).clamp(
            -MAX_ABS_SCALED_VALUE, MAX_ABS_SCALED_VALUE
        )
        scaled = torch.where(missing, 0.0, scaled).float()
        missing_indicators = [missing[:, self.indicators].float()] if self.indicators else []
        return torch.cat([scaled, *missing_indicators, *codes], dim=1)


def make_synthetic_x(model: CIDAEstimator, n_rows: int, generator: np.random.Generator) -> Array:
    """Rows about the mean of those that the estimator was fitted on; codes are those it knows."""
    noise = generator.normal(size=(n_rows, *model._row_shape))
    encoder = next((m for m in model.game_.modules() if isinstance(m, TabularEncoder)), None)
    if encoder is not None and noise.shape[1:] == (sum(encoder.split_sizes),):
        numbers, indicators, _ = encoder.split_sizes
        sizes = [2] * indicators + [int(e.num_embeddings) for e in encoder._embedding_tables()]
        noise[:, numbers:] = generator.integers(0, sizes, (n_rows, len(sizes)))
    x: Array = model._scaler.mean + model._scaler.scale * noise
    return x if len(model._row_shape) == 1 else x.astype(np.float32)


def make_example_x(model: CIDAEstimator) -> Tensor:
    """A few such rows."""
    return torch.from_numpy(make_synthetic_x(model, N_EXAMPLE_ROWS, np.random.default_rng(0)))


def make_example_u(model: CIDAEstimator) -> Tensor:
    """As many values of the index as there are rows in `example_x`, of those seen in training."""
    training_index = model._training_index.double()
    return training_index[torch.linspace(0, len(training_index) - 1, N_EXAMPLE_ROWS).long()]
