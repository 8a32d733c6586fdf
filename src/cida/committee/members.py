"""The models of a committee as torch modules, so that one file and one graph hold all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from cida.coordinates import CenteringLayer, MovingFrameLayer, WindowsLayer
from cida.data import RowLayout
from cida.networks.serialization import configurable

__all__ = [
    "Committee",
    "CommitteeMember",
    "FeatureMode",
    "Features",
    "LinearModel",
    "NetworkModel",
    "TreeEnsemble",
]

FeatureMode = Literal["raw", "index", "centered", "windows", "moving-frame", "principal-axes"]

MAX_TREE_VALUE = 60_000.0  # that half precision holds


@configurable
class Features(nn.Module):
    """Encoded rows to the columns of a model: numbers in coordinates along u, indicators, one-hot.

    Parameters
    ----------
    numbers : int
        Number of numeric columns.
    indicators : sequence of int
        Which numeric columns have an indicator of missing values.
    sizes : sequence of int
        Number of values of each category column.
    index_width : int
        Number of columns of the embedded index.
    mode : str
        The coordinates; "index" leaves x as it is and adds the embedded index.
    for_trees : bool, default False
        Whether a missing number is NaN and all keep eleven bits, so that no tree can be grown on
        differences that another library rounds away; else a missing number is 0, the mean.
    """

    index_limits: Tensor

    def __init__(
        self,
        numbers: int,
        indicators: Sequence[int],
        sizes: Sequence[int],
        index_width: int,
        mode: FeatureMode,
        for_trees: bool = False,
    ) -> None:
        super().__init__()
        width = numbers + len(indicators) + len(sizes)
        self.row_layout = RowLayout("columns", (width,), tuple(indicators), tuple(sizes))
        self.mode, self.for_trees = mode, for_trees
        self.layer: nn.Module | None = None
        if numbers and mode in ("centered", "windows"):
            kind = CenteringLayer if mode == "centered" else WindowsLayer
            self.layer = kind(numbers, index_width)
        elif mode in ("moving-frame", "principal-axes"):
            self.layer = MovingFrameLayer(numbers, "axes" if mode == "principal-axes" else "path")
        self.width = self.row_layout.n_encoded_columns + (index_width if mode == "index" else 0)
        if mode == "index":
            limits = torch.tensor([[-math.inf], [math.inf]]).expand(2, index_width)
            self.register_buffer("index_limits", limits.clone())

    def limit_index(self, lower: Tensor, upper: Tensor) -> None:
        """Hold the index feature between these bounds: no trend goes on for ever."""
        self.index_limits = torch.stack([lower, upper]).float()

    def fit(self, x: Tensor, index: Tensor) -> None:
        """Find the coordinates in all rows; labels are not used."""
        numbers, missing, _ = self.row_layout.split(x)
        if isinstance(self.layer, WindowsLayer):
            self.layer.fit(numbers, index, ~missing)
        elif isinstance(self.layer, MovingFrameLayer):
            self.layer.fit(numbers, index)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        numbers, missing, _ = self.row_layout.split(x)
        if self.layer is not None:
            numbers = self.layer(numbers, index)
        if self.for_trees:
            numbers = numbers.clamp(-MAX_TREE_VALUE, MAX_TREE_VALUE).half().float()
        filled = numbers.masked_fill(missing, math.nan if self.for_trees else 0.0)
        columns = self.row_layout.design_matrix(x, filled)
        if self.mode != "index":
            return columns
        lower, upper = self.index_limits
        # Not clamp, of whose two bounds ONNX's optimiser loses one.
        index = index + (lower - index).relu() - (index - upper).relu()
        return torch.cat([columns, index], dim=1)


@configurable
class LinearModel(nn.Module):
    """``log softmax(W (x - m) / s + b)`` for classes, the sum alone for a number.

    Parameters
    ----------
    inputs : int
        Number of columns.
    outputs : int
        Number of classes, or 1 for a number.
    """

    mean: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        for name, shape in {"mean": (inputs,), "weight": (outputs, inputs)}.items():
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(inputs, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros(outputs, dtype=torch.float64))

    def forward(self, columns: Tensor) -> Tensor:
        scaled = (columns.double() - self.mean) / self.scale
        outputs = scaled @ self.weight.T + self.bias
        return outputs if outputs.shape[1] == 1 else outputs.log_softmax(1)


@configurable
class TreeEnsemble(nn.Module):
    """Boosted trees: a row goes down all trees at once, one level a step.

    A leaf is its own child. A missing number (NaN) goes where the tree was grown to send it.

    Parameters
    ----------
    trees : int
        Number of trees; those of one round stand side by side, one for each output.
    nodes : int
        Number of nodes of the largest tree.
    depth : int
        Number of levels below the root.
    outputs : int
        Number of classes (2 of which share one score), or 1 for a number.
    """

    feature: Tensor
    threshold: Tensor
    missing_left: Tensor
    child: Tensor
    value: Tensor
    baseline: Tensor

    def __init__(self, trees: int, nodes: int, depth: int, outputs: int) -> None:
        super().__init__()
        if not 0 <= depth <= nodes:
            raise ValueError(f"depth is {depth}, which trees of {nodes} nodes cannot have")
        self.depth, self.n_outputs = depth, outputs
        self.n_scores = 1 if outputs <= 2 else outputs
        shape = (trees, nodes)
        self.register_buffer("feature", torch.zeros(shape, dtype=torch.int64))
        self.register_buffer("threshold", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("missing_left", torch.zeros(shape, dtype=torch.bool))
        self.register_buffer("child", torch.zeros((trees, nodes, 2), dtype=torch.int64))
        self.register_buffer("value", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("baseline", torch.zeros(self.n_scores, dtype=torch.float64))

    def forward(self, columns: Tensor) -> Tensor:
        columns = columns.double()
        trees, nodes = self.feature.shape
        start = (torch.arange(trees, device=columns.device) * nodes)[None]
        place = start.expand(columns.shape[0], trees)
        feature, threshold = self.feature.reshape(-1), self.threshold.reshape(-1)
        missing_left, child = self.missing_left.reshape(-1), self.child.reshape(-1)
        for _ in range(self.depth):
            number = columns.gather(1, feature[place])
            is_sent_left = number.isnan() & missing_left[place]  # NaN is not below anything
            goes_left = is_sent_left | (number <= threshold[place])
            place = start + child[2 * place + (~goes_left).long()]
        leaves = self.value.reshape(-1)[place]
        scores = leaves.view(columns.shape[0], -1, self.n_scores).sum(1) + self.baseline
        if self.n_outputs == 1:
            return scores
        if self.n_outputs == 2:
            scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
        return scores.log_softmax(1)


@configurable
class NetworkModel(nn.Module):
    """``F(E(x, u))`` of a game that was played.

    Parameters
    ----------
    encoder : torch.nn.Module
        E.
    predictor : torch.nn.Module
        F.
    takes_index : bool
        Whether E takes the embedded index.
    """

    def __init__(self, encoder: nn.Module, predictor: nn.Module, takes_index: bool) -> None:
        super().__init__()
        self.encoder, self.predictor, self.takes_index = encoder, predictor, takes_index

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        z = self.encoder(x, index) if self.takes_index else self.encoder(x)
        outputs: Tensor = self.predictor(z).double()
        return outputs if outputs.shape[1] == 1 else outputs.log_softmax(1)


@configurable
class CommitteeMember(nn.Module):
    """A model in its coordinates.

    Parameters
    ----------
    features : Features
        What the model's columns are.
    model : torch.nn.Module
        The model of these columns.
    """

    def __init__(self, features: nn.Module, model: nn.Module) -> None:
        super().__init__()
        self.features, self.model = features, model

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        outputs: Tensor = self.model(self.features(x, index))
        return outputs


@configurable
class Committee(nn.Module):
    """The weighted mean of its members: of probabilities, given as their log, or of numbers.

    Parameters
    ----------
    members : sequence of torch.nn.Module
        Modules of encoded rows and their embedded index.
    weights : sequence of float
        One for each member; their sum is 1.
    """

    def __init__(self, members: Sequence[nn.Module], weights: Sequence[float]) -> None:
        super().__init__()
        self.members, self.weights = nn.ModuleList(members), tuple(map(float, weights))
        is_share = all(w > 0 for w in self.weights) and math.isclose(sum(self.weights), 1.0)
        if len(weights) != len(members) or not is_share:
            raise ValueError(f"weights are {weights!r}; they are shares, one for each member")

    def forward(self, x: Tensor, index: Tensor | None = None) -> Tensor:
        index = x.new_zeros(len(x), 1) if index is None else index  # of a model without one
        outputs = [member(x, index) for member in self.members]
        if outputs[0].shape[1] == 1:
            return torch.stack([w * o for w, o in zip(self.weights, outputs, strict=True)]).sum(0)
        terms = [math.log(w) + o for w, o in zip(self.weights, outputs, strict=True)]
        return torch.stack(terms).logsumexp(0)
