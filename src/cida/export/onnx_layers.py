"""Layers of ours in operations that ONNX has too, with the same numbers as result.

Numbers are tensors in all of them: of a plain number torch's exporter keeps 24 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from cida.coordinates import IndexWindows
from cida.networks import GaussianCode, IndexTrend, MonteCarloDropout, StochasticLayer, fixed_draw
from cida.networks.norm import IndexMoments
from cida.spaces import Line, Periodic, Space
from cida.spaces.base import TWO_PI

__all__ = [
    "IndexEmbedding",
    "LabelScaling",
    "check_exportable",
    "freeze_draws",
    "make_traceable",
    "to_double_tensor",
]


class IndexEmbedding(nn.Module):
    """What `Space.embed` does, column by column, in double precision."""

    first: Tensor
    second: Tensor

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.periodic: list[bool] = []
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
            self.periodic.append(isinstance(column, Periodic))
        self.register_buffer("first", to_double_tensor([first for first, _ in pairs]))
        self.register_buffer("second", to_double_tensor([second for _, second in pairs]))

    def forward(self, u: Tensor) -> Tensor:
        parts = []
        for k, periodic in enumerate(self.periodic):
            column, first, second = u[:, k : k + 1], self.first[k], self.second[k]
            if periodic:
                angle = torch.remainder(column, first) * second
                parts += [angle.cos(), angle.sin()]
            else:
                parts.append((column - first) / second)
        return torch.cat(parts, dim=1)


class LabelScaling(nn.Module):
    """``scale y + centre`` of a number that was trained on, and ``scale sqrt(v + residual)``."""

    scale: Tensor
    centre: Tensor
    residual: Tensor

    def __init__(self, scale: float, centre: float, residual: float = 0.0) -> None:
        super().__init__()
        for name, value in {"scale": scale, "centre": centre, "residual": residual}.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))

    def to_label_units(self, y: Tensor) -> Tensor:
        return y * self.scale + self.centre

    def to_label_deviation(self, variance: Tensor) -> Tensor:
        return (variance + self.residual).sqrt() * self.scale


class _TraceableTrend(nn.Module):
    """`IndexTrend` in evaluation: the inverse of the covariance is one matrix."""

    centre: Tensor
    inverse: Tensor

    def __init__(self, trend: IndexTrend) -> None:
        super().__init__()
        fitted_trend = trend.eval()(trend.centre[None])
        self.register_buffer("centre", trend.centre)
        self.register_buffer("inverse", fitted_trend.inverse)

    def forward(self, index: Tensor) -> IndexMoments:
        return IndexMoments(index - self.centre, self.inverse)


class _TraceableWindows(IndexWindows):
    """`IndexWindows` with the product by which `torch.cdist` finds its distances written out.

    Its digits decide between places that are nearly as near, so they are to be the same; and torch
    would trace it for few rows alone.
    """

    product: Tensor

    def __init__(self, windows: IndexWindows) -> None:
        super().__init__(windows.mean.shape[1], windows.places.shape[1])
        self.load_state_dict(windows.state_dict())
        lengths = self.places.square().sum(1, keepdim=True)
        product = torch.cat([self.places, torch.ones_like(lengths), lengths], dim=1).T
        self.register_buffer("product", product.contiguous())

    def distances_to_windows(self, index: Tensor) -> Tensor:
        squares = (index * index).unbind(1)  # not square: onnxruntime rounds its powers otherwise
        lengths = sum(squares[1:], start=squares[0])[:, None]
        padded = torch.cat([-2 * index, lengths, torch.ones_like(lengths)], dim=1)
        return (padded @ self.product).clamp(min=0).sqrt()


class _FrozenDraws(nn.Module):
    """A stochastic layer whose draws are fixed numbers, of shape ``(draws, 1, ...)``."""

    draws: Tensor

    def __init__(self, draws: Tensor) -> None:
        super().__init__()
        self.register_buffer("draws", draws[:, None].float())

    def split_by_draw(self, rows: Tensor) -> Tensor:
        return rows.view(len(self.draws), -1, *rows.shape[1:])


class _FrozenGaussianCode(_FrozenDraws):
    """`GaussianCode`, each draw with its own noise."""

    def __init__(self, layer: GaussianCode, draws: Tensor) -> None:
        super().__init__(draws)
        self.shift = layer.shift

    def forward(self, x: Tensor) -> Tensor:
        mean, raw = self.split_by_draw(x).chunk(2, dim=-1)
        deviation = nn.functional.softplus(raw + self.shift)
        return (mean + deviation * self.draws).flatten(0, 1)


class _FrozenDropout(_FrozenDraws):
    """`MonteCarloDropout`, each draw with its own mask."""

    def forward(self, x: Tensor) -> Tensor:
        return (self.split_by_draw(x) * self.draws).flatten(0, 1)


def _traceable_layer(layer: nn.Module) -> nn.Module | None:
    if isinstance(layer, IndexTrend):
        return _TraceableTrend(layer)
    return _TraceableWindows(layer) if type(layer) is IndexWindows else None


def _frozen_layer(layer: nn.Module, noise: Mapping[nn.Module, Tensor]) -> nn.Module | None:
    if isinstance(layer, GaussianCode):
        return _FrozenGaussianCode(layer, noise[layer])
    if isinstance(layer, MonteCarloDropout):
        return _FrozenDropout(noise[layer])
    return None


def freeze_draws(
    players: nn.Module, n_draws: int, shapes: Mapping[nn.Module, tuple[int, ...]]
) -> None:
    """Puts layers with the numbers of all draws in the place of stochastic ones."""
    noise = _draw_noise(players, n_draws, shapes)
    _replace_layers(players, lambda layer: _frozen_layer(layer, noise))


def make_traceable(players: nn.Module) -> None:
    """Puts layers that can be traced in the place of those that cannot."""
    _replace_layers(players, _traceable_layer)


def _draw_noise(
    players: nn.Module, n_draws: int, shapes: Mapping[nn.Module, tuple[int, ...]]
) -> dict[nn.Module, Tensor]:
    """The numbers of each draw and layer: those of `drawing`."""
    noise_by_layer: dict[nn.Module, list[Tensor]] = {layer: [] for layer in shapes}
    for draw in range(n_draws):
        with fixed_draw(players, draw):
            for layer, shape in shapes.items():
                assert isinstance(layer, StochasticLayer)
                generator = layer.draw_generator()
                assert generator is not None
                has_mean_and_scale = isinstance(layer, GaussianCode)
                noise_shape = (*shape[:-1], shape[-1] // 2) if has_mean_and_scale else shape
                noise_by_layer[layer].append(layer.sample_noise(noise_shape, generator))
    return {layer: torch.stack(numbers) for layer, numbers in noise_by_layer.items()}


def _replace_layers(
    module: nn.Module, make_replacement: Callable[[nn.Module], nn.Module | None]
) -> None:
    """Puts another layer in the place of each for which there is one; a shared one stays shared."""
    replacements: dict[nn.Module, nn.Module] = {}
    for parent in list(module.modules()):
        for name, layer in list(parent._modules.items()):  # not named_children: it tells one once
            replacement = (
                None if layer is None else replacements.get(layer) or make_replacement(layer)
            )
            if replacement is not None and layer is not None:
                replacements[layer] = replacement
                setattr(parent, name, replacement)


def check_exportable(players: nn.Module) -> None:
    """Tells of layers that an ONNX file would not repeat."""
    for layer in players.modules():
        if getattr(layer, "in_bfloat16", False):
            raise ValueError(
                "encoder computes in bfloat16, which an ONNX file would not repeat; set "
                "in_bfloat16 = False on it first."
            )
        supported_layers = GaussianCode | MonteCarloDropout
        if isinstance(layer, StochasticLayer) and not isinstance(layer, supported_layers):
            raise ValueError(
                f"encoder has a {type(layer).__name__}, whose draws an ONNX file cannot hold; use "
                "GaussianCode or MonteCarloDropout."
            )


def to_double_tensor(values: Sequence[float]) -> Tensor:
    """The numbers in double precision."""
    return torch.tensor(values, dtype=torch.float64)
