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
from cida.networks import StochasticLayer, TabularEncoder, is_stochastic
from cida.report.onnx_layers import Embedding, Label, doubles, fix_draws, fix_layers, refuse

if TYPE_CHECKING:  # it needs pyarrow, and estimators are exported without
    from cida.estimators.table import TableModel

__all__ = [
    "EstimatorGraph",
    "Graph",
    "OneModel",
    "TableGraph",
    "example_u",
    "example_x",
    "made_up_x",
]

CLIP = 20.0  # that of `cida.tables.schema`, which needs pyarrow; a test holds them together
ROWS = 3  # of an example: neither 0 nor 1, which torch takes for constants

Array = np.ndarray[Any, Any]
Outputs = tuple[Tensor, ...]


class OneModel(nn.Module):
    """``F(E(x, u))`` of one estimator from unscaled x, in double precision where Python has it.

    A row gives the probability of each class; or a number, and its deviation where the encoder is
    probabilistic. All draws go through the networks at once, one below the other.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, model: CIDAEstimator) -> None:
        super().__init__()
        self.embed, self.sees_index = Embedding(model.space_), model._index_is_input
        self.register_buffer("mean", torch.as_tensor(model._scaling.mean).double())
        self.register_buffer("scale", torch.as_tensor(model._scaling.scale).double())
        self.to_label: Label | None = None
        if isinstance(model, CIDARegressor):
            self.to_label = Label(model._y_scale, model._y_mean, model._residual or 0.0)
        players = nn.ModuleList([model.game_.encoder, model.game_.predictor])
        refuse(players)
        self.draws = model.draws if is_stochastic(players) else 0
        self.players = copy.deepcopy(players).eval().requires_grad_(False)
        if self.draws:
            shapes = self._noise_shapes(example_x(model), example_u(model))
            fix_draws(self.players, self.draws, shapes)
        fix_layers(self.players)

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        x = ((x.double() - self.mean) / self.scale).float()
        index = [self.embed(u).to(x.dtype)] if self.sees_index else []
        if not self.draws:
            return self._labels(self._network(x, *index).double()[None])
        repeated = [one.repeat(self.draws, *(1,) * (one.dim() - 1)) for one in (x, *index)]
        output = self._network(*repeated)
        return self._labels(output.double().view(self.draws, -1, output.shape[1]))

    def _network(self, x: Tensor, *index: Tensor) -> Tensor:
        encoder, predictor = self.players
        output: Tensor = predictor(encoder(x, *index))
        return output

    def _labels(self, outputs: Tensor) -> Tensor:
        """One line a row from those of each draw."""
        if self.to_label is None:
            return outputs.softmax(2).mean(0)
        mean = outputs.mean(0)
        if not self.draws:
            return self.to_label.number(mean)
        deviation = self.to_label.deviation((outputs - mean).square().mean(0))
        return torch.cat([self.to_label.number(mean), deviation], dim=1)

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
        self._network(x, *([self.embed(u).to(x.dtype)] if self.sees_index else []))
        for hook in hooks:
            hook.remove()
        return shapes


class Graph(nn.Module):
    """What is exported: a list of raw inputs to the outputs of the file."""

    def outputs(self, found: Tensor, classes: bool) -> Outputs:
        """Probabilities and the number of the class; or the number, and its deviation."""
        if classes:
            return found, found.argmax(1)
        return tuple(found.unbind(1))


class EstimatorGraph(Graph):
    """An estimator: X, and u if it was fitted with an index."""

    def __init__(self, model: CIDAEstimator) -> None:
        super().__init__()
        self.model = OneModel(model)
        self.classes = isinstance(model, CIDAClassifier)

    def forward(self, inputs: list[Tensor]) -> Outputs:
        x, u = inputs[0], inputs[-1]  # of a model without an index, u is not looked at
        return self.outputs(self.model(x, u), self.classes)


class TableGraph(Graph):
    """A table's model: its numbers (NaN where missing), codes of its categories, and the index.

    Rows that are no vectors take the place of numbers and codes. Several models give their mean.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, table: TableModel) -> None:
        super().__init__()
        self.models = nn.ModuleList([OneModel(model) for model in table.estimators])
        numeric = [column for column in table.schema.columns if column.numeric]
        self.numbers, self.indicators = len(numeric), list(table.schema.indicators)
        self.index_width = len(table.index)
        self.register_buffer("centre", doubles([column.centre for column in numeric]))
        self.register_buffer("spread", doubles([column.scale for column in numeric]))
        self.rows_scaling = table.x_scaling if len(table.shape) > 1 else None
        self.classes = table.classes is not None
        self.to_label = Label(table.scale, table.centre)

    def forward(self, inputs: list[Tensor]) -> Outputs:
        columns, index = inputs[: -self.index_width], inputs[-self.index_width :]
        u = torch.stack(index, dim=1)
        x = self._encoded(columns) if self.rows_scaling is None else self._scaled(columns[0])
        found = torch.stack([model(x, u) for model in self.models]).mean(0)
        if not self.classes:
            found = self.to_label.number(found)
        return self.outputs(found, self.classes)

    def _scaled(self, rows: Tensor) -> Tensor:
        assert self.rows_scaling is not None
        centre, scale = self.rows_scaling
        return (rows - centre) / scale

    def _encoded(self, columns: Sequence[Tensor]) -> Tensor:
        """What `Schema.encode` makes of a row."""
        codes = [code.float()[:, None] for code in columns[self.numbers :]]
        if not self.numbers:
            return torch.cat(codes, dim=1)
        numbers = torch.stack(list(columns[: self.numbers]), dim=1)
        missing = numbers.isnan()
        scaled = ((numbers - self.centre) / self.spread).clamp(-CLIP, CLIP)
        scaled = torch.where(missing, 0.0, scaled).float()
        holes = [missing[:, self.indicators].float()] if self.indicators else []
        return torch.cat([scaled, *holes, *codes], dim=1)


def made_up_x(model: CIDAEstimator, rows: int, generator: np.random.Generator) -> Array:
    """Rows about the mean of those that the estimator was fitted on; codes are those it knows."""
    noise = generator.normal(size=(rows, *model._row_shape))
    encoder = next((m for m in model.game_.modules() if isinstance(m, TabularEncoder)), None)
    if encoder is not None and noise.shape[1:] == (sum(encoder.parts),):
        numbers, indicators, _ = encoder.parts
        sizes = [2] * indicators + [int(e.num_embeddings) for e in encoder._tables()]
        noise[:, numbers:] = generator.integers(0, sizes, (rows, len(sizes)))
    x: Array = model._scaling.mean + model._scaling.scale * noise
    return x if len(model._row_shape) == 1 else x.astype(np.float32)


def example_x(model: CIDAEstimator) -> Tensor:
    """A few such rows."""
    return torch.from_numpy(made_up_x(model, ROWS, np.random.default_rng(0)))


def example_u(model: CIDAEstimator) -> Tensor:
    """As many values of the index as there are rows in `example_x`, of those seen in training."""
    seen = model._seen.double()
    return seen[torch.linspace(0, len(seen) - 1, ROWS).long()]
