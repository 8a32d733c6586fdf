"""A fitted model as one torch module of raw inputs, in operations that ONNX has too."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels, NumberLabels
from cida.export.onnx_layers import (
    IndexEmbedding,
    LabelScaling,
    check_exportable,
    freeze_draws,
    make_traceable,
    to_double_tensor,
)
from cida.games import Game
from cida.networks import StochasticLayer, TabularEncoder, is_stochastic

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

    def __init__(self, state: FittedState, game: Game, n_draws: int) -> None:
        super().__init__()
        self.embed, self.uses_index = IndexEmbedding(state.plan.space), state.plan.has_index_input
        self.register_buffer("mean", torch.as_tensor(state.scaler.mean).double())
        self.register_buffer("scale", torch.as_tensor(state.scaler.scale).double())
        self.to_label: LabelScaling | None = None
        if isinstance(state.labels, NumberLabels):
            codec = state.labels
            self.to_label = LabelScaling(codec.scale, codec.mean, codec.residual_variance or 0.0)
        players = nn.ModuleList([game.encoder, game.predictor])
        check_exportable(players)
        self.n_draws = n_draws if is_stochastic(players) else 0
        self.players = copy.deepcopy(players).eval().requires_grad_(False)
        if self.n_draws:
            shapes = self._noise_shapes(make_example_x(state), make_example_u(state))
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
    """A model of arrays: X, and u if it was fitted with an index; the mean of its members."""

    def __init__(self, state: FittedState, n_draws: int) -> None:
        super().__init__()
        self.members = nn.ModuleList(
            [EstimatorModule(state, game, n_draws) for game in state.members]
        )
        self.is_classifier = isinstance(state.labels, ClassLabels)

    def forward(self, inputs: list[Tensor]) -> Outputs:
        x, u = inputs[0], inputs[-1]  # of a model without an index, u is not looked at
        return self.split_outputs(self.mean_prediction(x, u), self.is_classifier)

    def mean_prediction(self, x: Tensor, u: Tensor) -> Tensor:
        """The mean of what the members predict."""
        predictions = torch.stack([member(x, u) for member in self.members])
        return predictions.mean(0) if len(self.members) > 1 else predictions[0]


class TableGraph(EstimatorGraph):
    """A model of a table: its numbers (NaN where missing), codes of categories, and the index.

    Rows that are no vectors take the place of numbers and codes.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, state: FittedState, n_draws: int) -> None:
        super().__init__(state, n_draws)
        assert state.table is not None
        schema = state.table.schema
        numeric = [column for column in schema.columns if column.is_numeric]
        self.n_numeric, self.indicators = len(numeric), list(schema.missing_indicators)
        self.index_width = len(state.table.index)
        self.register_buffer("centre", to_double_tensor([column.center for column in numeric]))
        self.register_buffer("spread", to_double_tensor([column.scale for column in numeric]))
        self.has_columns = state.layout.kind == "columns"

    def forward(self, inputs: list[Tensor]) -> Outputs:
        columns, index = inputs[: -self.index_width], inputs[-self.index_width :]
        x = self._encode_columns(columns) if self.has_columns else columns[0]
        predictions = self.mean_prediction(x, torch.stack(index, dim=1))
        return self.split_outputs(predictions, self.is_classifier)

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


def make_synthetic_x(state: FittedState, n_rows: int, generator: np.random.Generator) -> Array:
    """Rows about the mean of those fitted on, as the scaler takes them; codes are known ones."""
    layout = state.layout
    noise = generator.normal(size=(n_rows, *layout.shape))
    n_numbers, sizes = layout.n_numbers, list(layout.category_sizes)
    n_indicators = len(layout.missing_indicators)
    encoder = next((m for m in state.members[0].modules() if isinstance(m, TabularEncoder)), None)
    if encoder is not None and layout.shape == (sum(encoder.split_sizes),):
        # Of an array the encoder alone knows which columns are codes.
        n_numbers, n_indicators, _ = encoder.split_sizes
        sizes = [table.num_embeddings for table in encoder.embedding_tables()]
    sizes = [2] * n_indicators + sizes
    if sizes:
        noise[:, n_numbers:] = generator.integers(0, sizes, (n_rows, len(sizes)))
    x: Array = state.scaler.mean + state.scaler.scale * noise
    return x if len(layout.shape) == 1 else x.astype(np.float32)


def make_example_x(state: FittedState) -> Tensor:
    """A few such rows."""
    return torch.from_numpy(make_synthetic_x(state, N_EXAMPLE_ROWS, np.random.default_rng(0)))


def make_example_u(state: FittedState) -> Tensor:
    """As many values of the index as there are rows in `make_example_x`, of those seen."""
    values: Tensor = state.index_values.double()
    return values[torch.linspace(0, len(values) - 1, N_EXAMPLE_ROWS).long()]
