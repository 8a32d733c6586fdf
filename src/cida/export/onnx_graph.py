"""A fitted model as one torch module of raw inputs, in operations that ONNX has too.

Numbers are tensors in it: of a plain number torch's exporter keeps 24 bits.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cida.coordinates import WindowsLayer
from cida.estimators.fitted_state import FittedState
from cida.estimators.labels import ClassLabels, NumberLabels
from cida.games import Game
from cida.networks import GaussianCode, IndexTrend, MonteCarloDropout, StochasticLayer
from cida.networks.stochastic import freeze_draws, is_stochastic
from cida.spaces import Line, Periodic, Space
from cida.spaces.base import TWO_PI

MAX_ABS_SCALED_VALUE = 20.0  # of `cida.tables.schema`, which needs pyarrow; a test compares them


class _IndexEmbedding(nn.Module):
    """What `Space.embed` does, column by column, in double precision."""

    constants: Tensor

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.is_periodic = [isinstance(column, Periodic) for column in space.column_spaces]
        pairs: list[tuple[float, float]] = []
        for column in space.column_spaces:
            if isinstance(column, Periodic):
                pairs.append((column.period, TWO_PI / column.period))
            elif isinstance(column, Line):
                pairs.append((column.centre, column.scale))
            else:
                raise ValueError(
                    f"space has a {type(column).__name__}, which an ONNX file cannot hold; use "
                    "Line, Periodic or Product."
                )
        self.register_buffer("constants", torch.tensor(pairs, dtype=torch.float64))

    def forward(self, u: Tensor) -> Tensor:
        parts = []
        for k, is_periodic in enumerate(self.is_periodic):
            column, (first, second) = u[:, k : k + 1], self.constants[k].unbind()
            if is_periodic:
                angle = torch.remainder(column, first) * second
                parts += [angle.cos(), angle.sin()]
            else:
                parts.append((column - first) / second)
        return torch.cat(parts, dim=1)


class _MemberModule(nn.Module):
    """``F(E(x, u))`` of one member from unscaled x, in double precision where Python has it.

    A row gives the probability of each class; or a number, and its deviation where the encoder is
    probabilistic. All draws go through the networks at once, one below the other.
    """

    mean: Tensor
    scale: Tensor
    label_moments: Tensor | None

    def __init__(self, state: FittedState, game: Game, n_draws: int) -> None:
        super().__init__()
        self.embed, self.uses_index = _IndexEmbedding(state.plan.space), state.plan.has_index_input
        self.register_buffer("mean", torch.as_tensor(state.scaler.mean).double())
        self.register_buffer("scale", torch.as_tensor(state.scaler.scale).double())
        moments = None
        if isinstance(codec := state.labels, NumberLabels):
            numbers = [codec.mean, codec.scale, codec.residual_variance or 0.0]
            moments = torch.tensor(numbers, dtype=torch.float64)
        self.register_buffer("label_moments", moments)
        players = nn.ModuleList([game.encoder, game.predictor])
        _check_exportable(players)
        self.n_draws = n_draws if is_stochastic(players) else 0
        self.players = copy.deepcopy(players).eval().requires_grad_(False)
        freeze_draws(self.players, self.n_draws)
        for layer in self.players.modules():
            if isinstance(layer, IndexTrend | WindowsLayer):
                layer.make_traceable()

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        x = ((x.double() - self.mean) / self.scale).float()
        inputs = [x, self.embed(u).to(x.dtype)] if self.uses_index else [x]
        if self.n_draws:
            inputs = [each.repeat(self.n_draws, *(1,) * (each.dim() - 1)) for each in inputs]
        encoder, predictor = self.players
        output: Tensor = predictor(encoder(*inputs)).double()
        outputs = output.view(self.n_draws or 1, -1, output.shape[1])
        if self.label_moments is None:
            return outputs.softmax(2).mean(0)
        mean, scale, residual_variance = self.label_moments.unbind()
        center = outputs.mean(0)
        prediction = center * scale + mean
        if not self.n_draws:
            return prediction
        variance = (outputs - center).square().mean(0) + residual_variance
        return torch.cat([prediction, variance.sqrt() * scale], dim=1)


class EstimatorGraph(nn.Module):
    """What is exported of a model of arrays: the mean of its members, from X, and u if it has one.

    It takes the list of inputs and gives those outputs that the file has.
    """

    def __init__(self, state: FittedState, n_draws: int) -> None:
        super().__init__()
        members = [_MemberModule(state, game, n_draws) for game in state.members]
        self.members = nn.ModuleList(members)
        self.is_classifier = isinstance(state.labels, ClassLabels)

    def forward(self, inputs: list[Tensor]) -> tuple[Tensor, ...]:
        x, u = self.read_inputs(inputs)
        predictions = torch.stack([member(x, u) for member in self.members])
        mean = predictions.mean(0) if len(self.members) > 1 else predictions[0]
        return (mean, mean.argmax(1)) if self.is_classifier else tuple(mean.unbind(1))

    def read_inputs(self, inputs: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Rows as the scaler takes them, and the index; of a model without, it is not looked at."""
        return inputs[0], inputs[-1]


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
        self.index_width, self.has_columns = len(state.table.index), state.layout.kind == "columns"
        for name, values in {
            "centre": [column.center for column in numeric],
            "spread": [column.scale for column in numeric],
        }.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.float64))

    def read_inputs(self, inputs: list[Tensor]) -> tuple[Tensor, Tensor]:
        """What `Schema.encode` makes of a row, and the columns of the index side by side."""
        columns, index = inputs[: -self.index_width], inputs[-self.index_width :]
        x = self._encode_columns(columns) if self.has_columns else columns[0]
        return x, torch.stack(index, dim=1)

    def _encode_columns(self, columns: Sequence[Tensor]) -> Tensor:
        codes = [code.float()[:, None] for code in columns[self.n_numeric :]]
        if not self.n_numeric:
            return torch.cat(codes, dim=1)
        numbers = torch.stack(list(columns[: self.n_numeric]), dim=1)
        missing, scaled = numbers.isnan(), (numbers - self.centre) / self.spread
        scaled = scaled.clamp(-MAX_ABS_SCALED_VALUE, MAX_ABS_SCALED_VALUE)
        scaled = torch.where(missing, 0.0, scaled).float()
        missing_indicators = [missing[:, self.indicators].float()] if self.indicators else []
        return torch.cat([scaled, *missing_indicators, *codes], dim=1)


def _check_exportable(players: nn.Module) -> None:
    """Tells of layers that an ONNX file would not repeat."""
    for layer in players.modules():
        if getattr(layer, "in_bfloat16", False):
            raise ValueError(
                "encoder computes in bfloat16, which an ONNX file would not repeat; set "
                "in_bfloat16 = False on it first."
            )
        is_known = isinstance(layer, GaussianCode | MonteCarloDropout)
        if isinstance(layer, StochasticLayer) and not is_known:
            raise ValueError(
                f"encoder has a {type(layer).__name__}, whose draws an ONNX file cannot hold; use "
                "GaussianCode or MonteCarloDropout."
            )
