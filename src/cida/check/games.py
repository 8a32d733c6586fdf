"""What every game must do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from cida.check.result import ENCODING_WIDTH, MIN_LEARNED_MARGIN, CheckResult, require, run_check
from cida.data import Batch, IndexedDataset
from cida.discriminators import Histogram
from cida.games import Game, GameParts, Move
from cida.networks import IndexedEncoder
from cida.spaces import Line
from cida.training import seeded

__all__ = ["check_game"]


def check_game(kind: type[Game]) -> list[CheckResult]:
    """Run every check of a game, on a small data set.

    Parameters
    ----------
    kind : type
        A subclass of `Game`; it is made by its ``assemble``.

    Returns
    -------
    list of CheckResult
        One for each check.
    """
    with seeded(0):
        return [run_check(test, "small world", partial(test, kind)) for test in GAME_CHECKS]


def _make_dataset() -> IndexedDataset:
    """Two clouds that drift with u; rows below the middle are labelled."""
    u = torch.linspace(0, 1, 256, dtype=torch.float64)[:, None]
    y = torch.arange(256) % 2
    x = torch.randn(256, 2) * 0.3 + torch.stack([2 * u[:, 0].float(), y.float()], dim=1)
    return IndexedDataset(x, y, u, u[:, 0] < 0.5)


def _make_game(kind: type[Game]) -> tuple[Game, IndexedDataset]:
    dataset = _make_dataset()
    parts = GameParts(
        encoder=IndexedEncoder(2, 1, [32, 32], ENCODING_WIDTH),
        predictor=nn.Linear(ENCODING_WIDTH, 2),
        space=Line().fit(dataset.u),
        u=dataset.u,
        encoding_width=ENCODING_WIDTH,
        output_width=2,
        discriminator=Histogram(),
    )
    game = kind.assemble(parts)
    game.enter_stage(dataset, torch.arange(len(dataset)), torch.ones(len(dataset)))
    return game, dataset


def _make_batches(dataset: IndexedDataset) -> tuple[Batch, Batch]:
    return dataset[dataset.source_rows], dataset[torch.arange(len(dataset))]


def _play_rounds(
    game: Game, dataset: IndexedDataset, movers: set[str], rounds: int = 200
) -> list[Move]:
    """Train for some rounds in which only ``movers`` step; return the moves of one more."""
    optimizers = {
        name: torch.optim.Adam(parameters, lr=3e-3, fused=True)
        for name, parameters in game.player_parameters().items()
    }
    for number in range(rounds):
        game.set_progress(number / rounds)
        for move in game.moves(*_make_batches(dataset)):
            if move.player in movers:
                optimizers[move.player].zero_grad()
                move.total_loss.backward()  # type: ignore[no-untyped-call]
                optimizers[move.player].step()
    return list(game.moves(*_make_batches(dataset)))


def deals_finite_moves_to_its_players(kind: type[Game]) -> None:
    game, rows = _make_game(kind)
    one_row = rows[rows.source_rows[:1]]
    for source, pooled in (_make_batches(rows), (one_row, one_row)):
        moves = list(game.moves(source, pooled))
        unknown = ", ".join(sorted({move.player for move in moves} - set(game.player_parameters())))
        require(not unknown, f"it yields moves of {unknown}, not one of its players")
        for move in moves:
            is_number = move.total_loss.dim() == 0 and bool(move.total_loss.isfinite())
            failure = f"the {move.player}'s loss on {len(pooled)} rows is not one number"
            require(is_number, failure)


def every_player_can_move(kind: type[Game]) -> None:
    game, rows = _make_game(kind)
    before = {name: [p.clone() for p in ps] for name, ps in game.player_parameters().items()}
    _play_rounds(game, rows, set(before), rounds=2)
    for name, parameters in game.player_parameters().items():
        is_same = all(torch.equal(a, b) for a, b in zip(before[name], parameters, strict=True))
        require(not is_same, f"two rounds do not change the {name}")


def the_adversary_learns_and_the_encoder_feels_it(kind: type[Game]) -> None:
    game, rows = _make_game(kind)
    adversaries = set(game.player_parameters()) - {"encoder"}
    if not adversaries:
        return
    last = _play_rounds(game, rows, adversaries)[-1]
    for name, ceiling in last.ceilings.items():
        below = float(ceiling - last.metrics[name].detach())
        failure = f"against a fixed encoder the {name} gets only {below:.3g} below its ceiling"
        require(below > MIN_LEARNED_MARGIN, failure)
    failure = "its last move has no loss named 'encoder', the adversarial one"
    require("encoder" in last.losses, failure)
    changes = _metric_changes_after_step(game, rows, last)
    for name in last.ceilings:
        failure = f"the encoder's adversarial step does not raise the {name}'s loss"
        require(changes[name] > 0, failure)


def a_penalty_lowers_what_it_is_for(kind: type[Game]) -> None:
    game, rows = _make_game(kind)
    last = list(game.moves(*_make_batches(rows)))[-1]
    if set(game.player_parameters()) != {"encoder"} or "encoder" not in last.losses:
        return
    changes = _metric_changes_after_step(game, rows, last)
    penalties = [change for name, change in changes.items() if name != "prediction"]
    is_lowered = bool(penalties) and not any(change >= 0 for change in penalties)
    require(is_lowered, "the step of its 'encoder' loss lowers no metric beside 'prediction'")


def _metric_changes_after_step(game: Game, rows: IndexedDataset, last: Move) -> dict[str, float]:
    """How much each metric changes after a step of the encoder down its own loss only."""
    parameters = [p for p in game.encoder.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(last.losses["encoder"], parameters, materialize_grads=True)
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
    require(norm > 1e-6, "the gradient of the 'encoder' loss that reaches the encoder is zero")
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(gradient * (1e-4 / norm))  # small: the heads are sharp
    metrics = list(game.moves(*_make_batches(rows)))[-1].metrics
    return {name: float(metrics[name].detach() - last.metrics[name].detach()) for name in metrics}


def target_labels_are_never_read(kind: type[Game]) -> None:
    game, rows = _make_game(kind)
    source, pooled = _make_batches(rows)
    poisoned = replace(pooled, y=torch.where(pooled.labelled, pooled.y, 1 - pooled.y))
    for done in (0.0, 0.9):  # a game may have several phases
        game.set_progress(done)
        totals = []
        for batch in (pooled, poisoned):
            with seeded(1):
                moves = game.moves(source, batch)
                totals.append([float(move.total_loss.detach()) for move in moves])
        require(totals[0] == totals[1], "other labels on the target rows change its losses")


def the_predictor_learns(kind: type[Game]) -> None:
    game, rows = _make_game(kind)
    _play_rounds(game, rows, set(game.player_parameters()), rounds=150)
    source = rows[rows.source_rows]
    accuracy = float((game.predict(source.x, source.u).argmax(1) == source.y).float().mean())
    failure = f"its accuracy is only {accuracy:.0%} on an easy source after 150 rounds"
    require(accuracy > 0.9, failure)


GAME_CHECKS: list[Callable[[type[Game]], None]] = [
    deals_finite_moves_to_its_players,
    every_player_can_move,
    the_adversary_learns_and_the_encoder_feels_it,
    target_labels_are_never_read,
    the_predictor_learns,
    a_penalty_lowers_what_it_is_for,
]
