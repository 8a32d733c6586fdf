"""The policy: decides whatever a user leaves open in a fit, from source labels and unlabelled rows.

`resolve` is pure: the same request and data give the same `Plan`, whether they come from Python
or from the command line. Each decision is kept with its rule and its evidence; `Plan.summary`
tells them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from cida.coordinates import trial
from cida.coordinates.trial import Capacity, CoordinateMode
from cida.data import IndexedDataset, RowLayout
from cida.discriminators import Discriminator, Histogram, make_discriminator
from cida.games import Game, get_game_class
from cida.indexing import evenly_spaced
from cida.io.json_decode import decode, from_dict
from cida.plan_summary import RULE_TEXTS
from cida.selection import Validator
from cida.spaces import Periodic, Space, make_line_space, space_from_dict
from cida.spaces.space_fit import fit_space
from cida.training import Callback

__all__ = ["Capacity", "FitRequest", "Plan", "Reason", "choose_space", "resolve", "restore_head"]


MAX_HISTOGRAM_BINS = 30
MOMENT_HEAD_CURRICULUM = 0.9  # share of the steps, for a head that sees a moment or two
COMMON_PERIODS = (24.0, 360.0, 365.25, 2 * torch.pi)  # hours, degrees, days of the year, radians
N_PERIOD_SLICES = 12  # of a period, to see whether its ends meet
MIN_ROWS_PER_SLICE = 20
MAX_PLAN_ROWS = 20_000
MAX_FEW_ROWS = 20_000  # up to which chosen coordinates leave the game little to do
DEFAULT_BATCH_SIZE = 128

# A linear predictor with strong weight decay that keeps to the source rows next to the target:
# it goes on where a free network has memorized the source (docs/methods/windows.md).
LINEAR_SETTINGS: Mapping[str, Any] = {
    "encoder_hidden": (64,),
    "predictor_hidden": (),
    "proximity": 0.5,
    "weight_decay": 3.0,
    "lambda_d": 2.0,
    "curriculum": 0.0,
    "discriminator_steps": 1,
    "learning_rate": 1e-3,
    "ema_decay": 0.99,
}
MLP_SETTINGS: Mapping[str, Any] = {
    "encoder_hidden": (128, 128, 128),
    "predictor_hidden": (64,),
    "proximity": 1.0,
    "weight_decay": 0.0,
    "discriminator_steps": 2,
    "learning_rate": 5e-4,
    "ema_decay": 0.999,
}
MIN_LINEAR_STEPS, MAX_STEPS, ROWS_PER_LINEAR_STEP = 1000, 6000, 20
MIN_PLAIN_STEPS, PLAIN_PASSES = 300, 100  # without an index
FEW_ROWS_STEPS = 2000


@dataclass(eq=False, repr=False)
class FitRequest:
    """What a user has set; of what the policy decides, None or "auto" leaves it to the policy.

    Estimators are requests: these are their parameters.
    """

    discriminator: str | Discriminator | None = "auto"
    game: str | type[Game] = "adversarial"
    space: Space | None = None
    encoder: nn.Module | None = None
    predictor: nn.Module | None = None
    coordinates: CoordinateMode | Literal["auto"] = "auto"
    capacity: Capacity | Literal["auto"] = "auto"
    stochastic: Literal["gaussian", "dropout"] | None = None
    n_draws: int = 32
    encoder_hidden: Sequence[int] | None = None
    encoding_width: int = 32
    predictor_hidden: Sequence[int] | None = None
    batch_norm: bool = False
    lambda_d: float | None = None
    discriminator_steps: int | None = None
    ceiling: bool = True
    curriculum: float | None = None
    curriculum_stages: int = 20
    n_balance_bins: int = 30
    steps: int | None = None
    batch_size: int | None = None
    source_batch_size: int | None = None
    learning_rate: float | None = None
    schedule: Literal["cosine", "constant"] = "cosine"
    weight_decay: float | None = None
    ema_decay: float | None = None
    proximity: float | None = None
    standardize: bool = True
    device: str = "cpu"
    precision: Literal["float32", "bf16"] = "float32"
    compile: bool = False
    n_members: int = 1
    n_restarts: int = 1
    validator: str | Validator = "consensus"
    random_state: Any = None
    verbose: bool = False
    callbacks: Sequence[Callback] | None = None


@dataclass(frozen=True)
class Reason:
    """Why a decision was made: the code of a rule, and the figures that it went by."""

    rule: str
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Every decision of a fit, the user's or the policy's (docs/defaults.md has the rules).

    ``head`` is the discriminator to build, None where no discriminator plays; ``is_adapting`` says
    whether there is a target and a game that uses it.
    """

    space: Space
    has_index: bool
    is_adapting: bool
    coordinates: CoordinateMode
    capacity: Capacity
    head: Discriminator | None = field(compare=False)
    encoder_hidden: tuple[int, ...]
    predictor_hidden: tuple[int, ...]
    lambda_d: float
    discriminator_steps: int
    curriculum: float
    proximity: float
    steps: int
    batch_size: int
    source_batch_size: int
    learning_rate: float
    weight_decay: float
    ema_decay: float
    reasons: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def has_index_input(self) -> bool:
        """Whether the encoder takes the index as an input."""
        return self.coordinates != "raw"

    @property
    def standardizes_along_u(self) -> bool:
        """Whether coordinates alone hide the index."""
        return self.has_index and self.coordinates not in ("raw", "learned")

    def to_dict(self) -> dict[str, Any]:
        """Return the decisions as JSON values; the head is not part of a file."""
        reasons = {name: [r.rule, dict(r.evidence)] for name, r in self.reasons.items()}
        return {**vars(self), "space": self.space.to_dict(), "head": None, "reasons": reasons}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; refuses values of a wrong type."""
        pairs = decode(dict[str, tuple[str, dict[str, float]]], values["reasons"], "reasons")
        reasons = {name: {"rule": rule, "evidence": e} for name, (rule, e) in pairs.items()}
        space = space_from_dict(values["space"])
        return from_dict(cls, {**values, "space": space, "reasons": reasons})

    def summary(self) -> list[str]:
        """Tell each decision that the policy made, and why, one sentence each."""
        sentences = []
        for name, reason in self.reasons.items():
            if reason.rule == "user":
                continue
            figures = ", ".join(f"{key} {value:.4g}" for key, value in reason.evidence.items())
            because = RULE_TEXTS[reason.rule] + (f" ({figures})" if figures else "")
            value = getattr(self, name)
            value = type(value).__name__ if isinstance(value, nn.Module) else value
            sentences.append(f"{name} is {value}: {because}.")
        return sentences


def resolve(request: FitRequest, dataset: IndexedDataset, layout: RowLayout) -> Plan:
    """Decide all that the request leaves open.

    Parameters
    ----------
    request : FitRequest
        What the user has set.
    dataset : IndexedDataset
        All rows, inputs scaled, labels of the target wiped.
    layout : RowLayout
        What a row consists of: columns, an image or a signal; and whether there is an index.

    Returns
    -------
    Plan
        Every decision, with its reason.
    """
    game = get_game_class(request.game)
    has_target = 0 < len(dataset.source_rows) < len(dataset)
    is_adapting = request.discriminator is not None and has_target and layout.has_index
    reasons: dict[str, Reason] = {}
    space, reasons["space"] = _resolve_space(request, dataset, layout)
    data = (dataset, layout, space)
    coordinates, reasons["coordinates"] = _resolve_coordinates(request, *data, is_adapting)
    capacity, reasons["capacity"] = _resolve_capacity(request, *data, coordinates, has_target)
    defaults = LINEAR_SETTINGS if capacity == "linear" else MLP_SETTINGS
    settings = {**defaults, **_steps_and_batches(request, dataset, layout, coordinates, capacity)}
    head, reasons["head"] = _resolve_head(request, dataset)
    if "lambda_d" not in settings or not game.uses_head:
        settings["lambda_d"] = game.default_lambda
        reasons["lambda_d"] = Reason("game-default")
    if "curriculum" not in settings:
        folds = is_adapting and game.uses_head and head is not None and not head.aligns_all_moments
        settings["curriculum"] = MOMENT_HEAD_CURRICULUM if folds else game.min_curriculum
        reasons["curriculum"] = Reason("moment-head" if folds else "game-default")
    for name in settings:
        if (given := getattr(request, name)) is not None:
            given = tuple(map(int, given)) if name.endswith("_hidden") else given
            settings[name], reasons[name] = given, Reason("user")
        elif name not in reasons:
            counted = name in ("steps", "batch_size", "source_batch_size")
            reasons[name] = Reason("row-count" if counted else "capacity-default")
    settings["curriculum"] = settings["curriculum"] or game.min_curriculum
    return Plan(
        space=space,
        has_index=layout.has_index,
        is_adapting=is_adapting,
        coordinates=coordinates,
        capacity=capacity,
        head=head,
        reasons=reasons,
        **settings,
    )


def restore_head(plan: Plan, request: FitRequest, dataset: IndexedDataset) -> Plan:
    """Return the plan with the head that a model file leaves out, for the rows of the fit."""
    if not plan.is_adapting or plan.head is not None:
        return plan
    head, _ = _resolve_head(request, dataset)
    if head is None:
        raise ValueError(
            "discriminator was one of your own and is not stored in the file, but a second "
            "training needs it; pass it again: load(path, discriminator=...)."
        )
    return replace(plan, head=head)


def _resolve_space(
    request: FitRequest, dataset: IndexedDataset, layout: RowLayout
) -> tuple[Space, Reason]:
    if not layout.has_index:
        return make_line_space(1), Reason("no-index")
    if request.space is not None:
        return fit_space(request.space, dataset.u), Reason("user")
    space = choose_space(dataset, layout)
    rule = "periodic-index" if any(space.periods) else "no-known-period"
    return fit_space(space, dataset.u), Reason(rule)


def choose_space(dataset: IndexedDataset, layout: RowLayout) -> Space:
    """A circle where u goes once round a known period and x meets itself there; else lines."""
    if dataset.u.shape[1] == 1 and layout.kind == "columns":
        for period in COMMON_PERIODS:
            if _is_periodic(dataset, layout, period):
                return Periodic(period)
    return make_line_space(dataset.u.shape[1])


def _is_periodic(dataset: IndexedDataset, layout: RowLayout, period: float) -> bool:
    """Whether x differs no more across the seam than from slice to slice, and more further off.

    Differences are of means, in squared deviations of each column, less what chance gives.
    """
    u = dataset.u[:, 0]
    slice_width = period / N_PERIOD_SLICES
    if not (0 <= float(u.min()) < slice_width and period - slice_width < float(u.max()) < period):
        return False
    rows = evenly_spaced(len(u), MAX_PLAN_ROWS)
    x = layout.design_matrix(dataset[rows].x).double()
    slice_of_row = (u[rows] / slice_width).long().clamp(max=N_PERIOD_SLICES - 1)
    counts = slice_of_row.bincount(minlength=N_PERIOD_SLICES)
    if int(counts.min()) < MIN_ROWS_PER_SLICE:
        return False
    means = torch.stack([x[slice_of_row == k].mean(0) for k in range(N_PERIOD_SLICES)])
    variance = (x - means[slice_of_row]).var(0).clamp(min=1e-12)
    by_chance = (1 / counts[:, None] + 1 / counts[None, :]).double()
    distances = ((means[:, None] - means[None]).square() / variance).mean(-1) - by_chance
    k = torch.arange(N_PERIOD_SLICES)
    adjacent = distances[k[:-1], k[1:]]
    opposite = distances[k, (k + N_PERIOD_SLICES // 2) % N_PERIOD_SLICES]
    limit = 2 * adjacent.max().clamp(min=float(by_chance.max()))
    return bool(distances[0, -1] <= limit) and bool(opposite.median() > 3 * limit)


def _resolve_coordinates(
    request: FitRequest, dataset: IndexedDataset, layout: RowLayout, space: Space, is_adapting: bool
) -> tuple[CoordinateMode, Reason]:
    if not layout.has_index:
        return "raw", Reason("no-index")
    if request.coordinates != "auto":
        return request.coordinates, Reason("user")
    if request.encoder is not None:
        return "raw", Reason("own-encoder")
    if layout.kind != "columns":
        return "learned", Reason("row-shape")
    if not is_adapting:
        return "raw", Reason("nothing-to-adapt")
    comparison = trial.compare_coordinates(space, dataset, layout)
    return comparison.choice, Reason(comparison.rule, comparison.evidence)


def _resolve_capacity(
    request: FitRequest,
    dataset: IndexedDataset,
    layout: RowLayout,
    space: Space,
    coordinates: CoordinateMode,
    has_target: bool,
) -> tuple[Capacity, Reason]:
    if request.capacity != "auto":
        return request.capacity, Reason("user")
    if request.encoder is not None:
        return "mlp", Reason("own-encoder")
    if layout.kind != "columns":
        return "mlp", Reason("row-shape")
    if not (layout.has_index and has_target):
        return "mlp", Reason("nothing-to-adapt")
    if trial.is_frame(coordinates):
        return "mlp", Reason("moving-frame-default")
    comparison = trial.compare_capacities(space, dataset, layout, coordinates)
    return comparison.choice, Reason(comparison.rule, comparison.evidence)


def _resolve_head(
    request: FitRequest, dataset: IndexedDataset
) -> tuple[Discriminator | None, Reason]:
    """The user's head, or a histogram of as many bins as u has values, 30 at most."""
    if request.discriminator is None:
        return None, Reason("user")
    if request.discriminator != "auto":
        return make_discriminator(request.discriminator), Reason("user")
    u: Tensor = dataset.u[evenly_spaced(len(dataset), MAX_PLAN_ROWS)]
    n_values = len(torch.unique(u, dim=0))
    head = Histogram(bins=max(2, min(MAX_HISTOGRAM_BINS, n_values)))
    return head, Reason("index-values", {"n_values": float(n_values)})


def _steps_and_batches(
    request: FitRequest,
    dataset: IndexedDataset,
    layout: RowLayout,
    coordinates: CoordinateMode,
    capacity: Capacity,
) -> dict[str, int]:
    """Steps and batch sizes where the user has not set them.

    A linear capacity takes a step for every 20 rows, between 1,000 and 6,000. A network takes
    6,000, or 2,000 where coordinates were chosen that leave the game little to do; without an
    index 100 passes over the rows, between 300 and 6,000 steps.
    """
    n_rows = len(dataset)
    batch = request.batch_size or min(DEFAULT_BATCH_SIZE, n_rows)
    source_batch = batch
    if not layout.has_index:
        steps = min(MAX_STEPS, max(MIN_PLAIN_STEPS, PLAIN_PASSES * n_rows // batch))
    elif capacity == "linear":
        steps = min(MAX_STEPS, max(MIN_LINEAR_STEPS, n_rows // ROWS_PER_LINEAR_STEP))
    else:
        is_easy = request.coordinates == "auto" and coordinates not in ("raw", "learned")
        steps = FEW_ROWS_STEPS if is_easy and n_rows <= MAX_FEW_ROWS else MAX_STEPS
        source_batch = max(1, batch // 2)
    return {"steps": steps, "batch_size": batch, "source_batch_size": source_batch}
