"""What every game must do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from cida.batch import Batch, Rows
from cida.check.findings import ENCODING_WIDTH, LEARNED, FaultError, Finding, finding
from cida.discriminators import Histogram
from cida.games import Game, Move, Parts
from cida.networks import IndexedEncoder
from cida.space import Line
from cida.training import isolated

__all__ = ["check_game"]


def check_game(kind: type[Game]) -> list[Finding]:
    """Every check on a small world; the game is made by its ``assemble``."""
    with isolated(0):
        return [finding(test, "small world", partial(test, kind)) for test in GAME_CHECKS]


def _world() -> Rows:
    """Two clouds that drift with u; rows below the middle are labelled."""
    u = torch.linspace(0, 1, 256, dtype=torch.float64)[:, None]
    y = torch.arange(256) % 2
    x = torch.randn(256, 2) * 0.3 + torch.stack([2 * u[:, 0].float(), y.float()], dim=1)
    return Rows(x, y, u, u[:, 0] < 0.5)


def _game(kind: type[Game]) -> tuple[Game, Rows]:
    rows = _world()
    parts = Parts(
        encoder=IndexedEncoder(2, 1, [32, 32], ENCODING_WIDTH),
        predictor=nn.Linear(ENCODING_WIDTH, 2),
        space=Line().fit(rows.u),
        u=rows.u,
        encoding_width=ENCODING_WIDTH,
        output_width=2,
        discriminator=Histogram(),
    )
    game = kind.assemble(parts)
    game.enter_stage(rows, torch.arange(len(rows)), torch.ones(len(rows)))
    return game, rows


def _batches(rows: Rows) -> tuple[Batch, Batch]:
    return rows[rows.sources], rows[torch.arange(len(rows))]


def _play(game: Game, rows: Rows, movers: set[str], rounds: int = 200) -> list[Move]:
    """Plays rounds in which only ``movers`` step; gives the moves of one more round."""
    optimisers = {
        name: torch.optim.Adam(parameters, lr=3e-3, fused=True)
        for name, parameters in game.players().items()
    }
    for number in range(rounds):
        game.progress(number / rounds)
        for move in game.moves(*_batches(rows)):
            if move.player in movers:
                optimisers[move.player].zero_grad()
                move.total.backward()  # type: ignore[no-untyped-call]
                optimisers[move.player].step()
    return list(game.moves(*_batches(rows)))


def deals_finite_moves_to_its_players(kind: type[Game]) -> None:
    game, rows = _game(kind)
    for source, everyone in (_batches(rows), (rows[rows.sources[:1]], rows[rows.sources[:1]])):
        moves = list(game.moves(source, everyone))
        unknown = {move.player for move in moves} - set(game.players())
        if unknown:
            raise FaultError(
                f"it deals moves to {', '.join(sorted(unknown))}, not one of its players"
            )
        for move in moves:
            if move.total.dim() != 0 or not bool(move.total.isfinite()):
                raise FaultError(
                    f"the {move.player}'s loss on {len(everyone)} rows is not one number"
                )


def every_player_can_move(kind: type[Game]) -> None:
    game, rows = _game(kind)
    before = {name: [p.clone() for p in ps] for name, ps in game.players().items()}
    _play(game, rows, set(before), rounds=2)
    for name, parameters in game.players().items():
        if all(torch.equal(a, b) for a, b in zip(before[name], parameters, strict=True)):
            raise FaultError(f"two rounds leave the {name} where it was")


def the_adversary_learns_and_the_encoder_feels_it(kind: type[Game]) -> None:
    game, rows = _game(kind)
    adversaries = set(game.players()) - {"encoder"}
    if not adversaries:
        return
    last = _play(game, rows, adversaries)[-1]
    for name, ceiling in last.ceilings.items():
        below = float(ceiling - last.figures[name].detach())
        if not below > LEARNED:
            raise FaultError(
                f"against a still encoder the {name} gets only {below:.3g} below its ceiling"
            )
    if "encoder" not in last.losses:
        raise FaultError("its last move has no loss named 'encoder', the adversarial one")
    changes = _changes_after_a_step(game, rows, last)
    for name in last.ceilings:
        if not changes[name] > 0:
            raise FaultError(f"the encoder's adversarial step does not raise the {name}'s loss")


def a_penalty_lowers_what_it_is_for(kind: type[Game]) -> None:
    game, rows = _game(kind)
    last = list(game.moves(*_batches(rows)))[-1]
    if set(game.players()) != {"encoder"} or "encoder" not in last.losses:
        return
    changes = _changes_after_a_step(game, rows, last)
    paid_for = set(changes) - {"prediction"}
    if not paid_for or any(changes[name] >= 0 for name in paid_for):
        raise FaultError("the step of its 'encoder' loss lowers no figure beside 'prediction'")


def _changes_after_a_step(game: Game, rows: Rows, last: Move) -> dict[str, float]:
    """By how much each figure changes when the encoder steps down on its own loss alone."""
    parameters = [p for p in game.encoder.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(last.losses["encoder"], parameters, materialize_grads=True)
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
    if not norm > 1e-6:
        raise FaultError("the gradient of the 'encoder' loss that reaches the encoder is zero")
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(gradient * (1e-4 / norm))  # small: beliefs are sharp
    moved = list(game.moves(*_batches(rows)))[-1].figures
    return {name: float(moved[name].detach() - last.figures[name].detach()) for name in moved}


def target_labels_are_never_read(kind: type[Game]) -> None:
    game, rows = _game(kind)
    source, everyone = _batches(rows)
    other = torch.where(everyone.labelled, everyone.y, 1 - everyone.y)
    poisoned = replace(everyone, y=other)
    for done in (0.0, 0.9):  # a game may change its ways half-way
        game.progress(done)
        totals = []
        for batch in (everyone, poisoned):
            with isolated(1):
                totals.append([float(move.total.detach()) for move in game.moves(source, batch)])
        if totals[0] != totals[1]:
            raise FaultError("other labels on the target rows change its losses")


def the_predictor_learns(kind: type[Game]) -> None:
    game, rows = _game(kind)
    _play(game, rows, set(game.players()), rounds=150)
    source = rows[rows.sources]
    right = float((game.predict(source.x, source.u).argmax(1) == source.y).float().mean())
    if not right > 0.9:
        raise FaultError(f"it is right on only {right:.0%} of an easy source after 150 rounds")


GAME_CHECKS: list[Callable[[type[Game]], None]] = [
    deals_finite_moves_to_its_players,
    every_player_can_move,
    the_adversary_learns_and_the_encoder_feels_it,
    target_labels_are_never_read,
    the_predictor_learns,
    a_penalty_lowers_what_it_is_for,
]
