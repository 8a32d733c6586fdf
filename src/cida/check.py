"""The conformance suite: does a discriminator or a game do what the theory asks of it?

A loss that falls proves nothing: a softmax over one unit has a falling loss beside it and a
gradient of exactly zero. So each check asks for behaviour: the adversary learns u from an encoding
that carries it, the encoder feels it, and no belief that ignores z beats the ceiling.

    cida check my_package.heads:MyDiscriminator
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from cida.batch import Batch, Rows
from cida.discriminators import Discriminator, Histogram
from cida.games import Game, Move, Parts
from cida.networks import IndexedEncoder
from cida.space import Line, Periodic, Product, Space
from cida.training import isolated

__all__ = ["Finding", "check", "check_discriminator", "check_game"]

ROWS = 2048
ENCODING_WIDTH = 8
LEARNED = 0.3  # how far below its ceiling a trained adversary must get; V[u] is 1 in these worlds


@dataclass(frozen=True)
class Finding:
    """One check on one subject: ``fault`` is empty when it passed."""

    check: str
    subject: str
    fault: str

    @property
    def passed(self) -> bool:
        return not self.fault


class FaultError(AssertionError):
    """What a check found wrong, in one sentence."""


def check(kind: type) -> list[Finding]:
    """Runs the suite that fits the class; it must be a `Discriminator` or a `Game`."""
    if isinstance(kind, type) and issubclass(kind, Discriminator):
        return check_discriminator(kind)
    if isinstance(kind, type) and issubclass(kind, Game):
        return check_game(kind)
    raise TypeError(
        f"{kind!r} is neither a Discriminator nor a Game; derive it from cida.Discriminator or "
        "cida.games.Game."
    )


# --- discriminators ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """One space with rows of u in it, and an encoding that gives u away."""

    name: str
    space: Space
    u: Tensor

    @property
    def informative(self) -> Tensor:
        """z that carries u, slightly blurred, and noise beside it."""
        embedding = self.space.embed(self.u).float()
        embedding = embedding + 0.1 * torch.randn_like(embedding)
        noise = torch.randn(len(self.u), ENCODING_WIDTH - embedding.shape[1])
        return torch.cat([embedding, noise], dim=1)

    def build(self, kind: type[Discriminator]) -> Discriminator:
        return kind().build(ENCODING_WIDTH, self.space, self.u)


def settings() -> Iterator[Setting]:
    """An index on a line, on a circle, and of two columns, one of each."""
    years = 20 + 60 * torch.rand(ROWS, 1, dtype=torch.float64)
    hours = 24 * torch.rand(ROWS, 1, dtype=torch.float64)
    both = torch.cat([years, hours], dim=1)
    yield Setting("line", Line().fit(years), years)
    yield Setting("circle", Periodic(24), hours)
    yield Setting("two columns", Product([Line(), Periodic(24)]).fit(both), both)


def check_discriminator(
    kind: type[Discriminator], spaces: Collection[str] = ("line", "circle", "two columns")
) -> list[Finding]:
    """Every check in every space; the class must be constructible without arguments."""
    with isolated(0):
        return [
            _finding(test, setting.name, partial(test, kind, setting))
            for setting in settings()
            if setting.name in spaces
            for test in DISCRIMINATOR_CHECKS
        ]


def gives_one_finite_number_a_row(kind: type[Discriminator], setting: Setting) -> None:
    head = setting.build(kind)
    for rows in (ROWS, 1):
        z, u = setting.informative[:rows], setting.u[:rows]
        for name, values in {"loss": head.loss(head(z), u), "ceiling": head.ceiling(u)}.items():
            if values.shape != (rows,):
                raise FaultError(
                    f"{name} of {rows} rows has shape {tuple(values.shape)}, not ({rows},)"
                )
            if not bool(values.isfinite().all()):
                raise FaultError(f"{name} of {rows} rows is not finite")
            if values.dtype != torch.float32:
                raise FaultError(f"{name} is {values.dtype}, not the float32 of the encoding")


def learns_the_index_from_an_informative_encoding(
    kind: type[Discriminator], setting: Setting
) -> None:
    head, z = setting.build(kind), setting.informative
    _train(head, z[::2], setting.u[::2])
    with torch.no_grad():
        z, u = z[1::2], setting.u[1::2]
        below = float((head.ceiling(u) - head.loss(head(z), u)).mean())
    if not below > LEARNED:
        raise FaultError(
            f"after training it is only {below:.3g} below its ceiling on held-out rows"
        )


def sends_a_gradient_against_its_own_interest(kind: type[Discriminator], setting: Setting) -> None:
    head, z = setting.build(kind), setting.informative
    _train(head, z, setting.u)
    z.requires_grad_()
    loss = head.loss(head(z), setting.u).mean()
    (gradient,) = torch.autograd.grad(loss, z)
    loss = loss.detach()
    if not float(gradient.norm()) > 1e-6:
        raise FaultError("the gradient that reaches the encoding is zero")
    with torch.no_grad():
        moved = z + gradient * (0.01 * math.sqrt(z.numel()) / gradient.norm())
        if not float(head.loss(head(moved), setting.u).mean()) > float(loss):
            raise FaultError("moving the encoding along the gradient does not raise the loss")


def no_constant_belief_beats_the_blind_one(kind: type[Discriminator], setting: Setting) -> None:
    head = setting.build(kind)
    ceiling = float(head.ceiling(setting.u).mean())
    spread = head.blind.abs().mean() + 1
    for start in (head.blind, torch.zeros_like(head.blind), spread * torch.randn_like(head.blind)):
        belief = start.clone().requires_grad_()
        optimiser = torch.optim.Adam([belief], lr=0.02)
        best = math.inf
        for _ in range(200):
            loss = head.loss(belief.expand(ROWS, -1), setting.u).mean()
            best = min(best, float(loss.detach()))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if best < ceiling - 0.01:
            raise FaultError(
                f"a constant belief scores {best:.4g}, below the ceiling of {ceiling:.4g}"
            )


def gets_no_lower_than_the_ceiling_when_the_encoding_says_nothing(
    kind: type[Discriminator], setting: Setting
) -> None:
    head = setting.build(kind)
    nothing = torch.zeros(ROWS, ENCODING_WIDTH)
    _train(head, nothing, setting.u)
    with torch.no_grad():
        below = float((head.ceiling(setting.u) - head.loss(head(nothing), setting.u)).mean())
        blind = head.loss(head.blind.expand(ROWS, -1), setting.u)
    if below > 0.01:
        raise FaultError(f"trained on a constant encoding it gets {below:.3g} below the ceiling")
    if not torch.allclose(blind, head.ceiling(setting.u), atol=1e-5):
        raise FaultError("the ceiling of a row is not the loss of the blind belief on that row")
    belief, target = head(setting.informative), head.target(setting.u).float()
    if not torch.allclose(head.loss(belief, setting.u), head.score(belief, target), atol=1e-5):
        raise FaultError("loss(params, u) is not score(params, target(u)), which games play with")


def fits_the_blind_belief_under_weights(kind: type[Discriminator], setting: Setting) -> None:
    head = setting.build(kind)
    times = setting.u[:, 0].argsort().argsort() * 3 // ROWS  # the higher u, the more often
    head.fit_blind(setting.u, times.double())
    weighted = float(head.ceiling(setting.u) @ times.float() / times.sum())
    repeated_rows = setting.u.repeat_interleave(times, dim=0)
    head.fit_blind(repeated_rows)
    repeated = float(head.ceiling(repeated_rows).mean())
    if abs(weighted - repeated) > 0.01:
        raise FaultError(
            f"weighted rows give a ceiling of {weighted:.4g}, repeated ones {repeated:.4g}"
        )


def comes_back_from_its_state(kind: type[Discriminator], setting: Setting) -> None:
    head, z = setting.build(kind), setting.informative
    _train(head, z, setting.u, steps=5)
    twin = setting.build(kind)
    twin.load_state_dict(head.state_dict())
    same_loss = torch.equal(head.loss(head(z), setting.u), twin.loss(twin(z), setting.u))
    if not (same_loss and torch.equal(head.ceiling(setting.u), twin.ceiling(setting.u))):
        raise FaultError("a copy that loads its state_dict gives other losses or another ceiling")


DISCRIMINATOR_CHECKS: list[Callable[[type[Discriminator], Setting], None]] = [
    gives_one_finite_number_a_row,
    learns_the_index_from_an_informative_encoding,
    sends_a_gradient_against_its_own_interest,
    no_constant_belief_beats_the_blind_one,
    gets_no_lower_than_the_ceiling_when_the_encoding_says_nothing,
    fits_the_blind_belief_under_weights,
    comes_back_from_its_state,
]


def _train(head: Discriminator, z: Tensor, u: Tensor, steps: int = 300) -> None:
    optimiser = torch.optim.Adam(head.parameters(), lr=3e-3, fused=True)
    for _ in range(steps):
        rows = torch.randint(len(z), (256,))  # small batches of many rows, so that none is learned
        optimiser.zero_grad()
        head.loss(head(z[rows]), u[rows]).mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()


# --- games ---------------------------------------------------------------------------------------


def check_game(kind: type[Game]) -> list[Finding]:
    """Every check on a small world; the game is made by its ``assemble``."""
    with isolated(0):
        return [_finding(test, "small world", partial(test, kind)) for test in GAME_CHECKS]


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
        name: torch.optim.Adam(parameters, lr=3e-3) for name, parameters in game.players().items()
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


def _finding(test: Callable[..., None], subject: str, run: Callable[[], None]) -> Finding:
    fault = ""
    try:
        run()
    except FaultError as found:
        fault = str(found)
    except Exception as error:  # a plug-in may raise anything; that is a finding too
        fault = f"it raised {type(error).__name__}: {error}"
    return Finding(test.__name__.replace("_", " "), subject, fault)
