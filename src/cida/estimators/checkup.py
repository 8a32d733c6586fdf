"""A look at a model that was just fitted: what is known of it, what is amiss, and a warning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cida.batch import Rows
from cida.diagnostics.alignment import explained_share
from cida.diagnostics.doctor import Finding, examine
from cida.diagnostics.facts import (
    Facts,
    blind_loss,
    index_columns,
    neighbours_loss,
    share_in_sight,
)
from cida.estimators.balance import shift_words
from cida.estimators.inputs import CidaWarning, outside
from cida.games import Game, named_game
from cida.plain import from_words
from cida.scratch import places
from cida.space import Space, thinned
from cida.training.health import FAR_SHARE, same_share

if TYPE_CHECKING:
    from cida.estimators.base import CIDAEstimator

__all__ = ["check_up", "collect", "facts_in", "findings_in", "settings_of"]

MOST_ROWS = 2000  # go through the networks once more, and no more than a hundredth of training
FEWEST_ROWS = 64
MOST_PLACES = 20_000  # of u, where all that is asked is how far they are
WIDEST = 4096  # numbers a row, beyond which neighbours are not looked for
FEWEST_FAR = 15  # target rows, of which one class would be no chance
CHUNK = 256


def check_up(model: CIDAEstimator, rows: Rows) -> None:
    """Sets ``facts_`` and ``findings_`` and warns of each finding.

    The shift of labels was warned of when training began.
    """
    model.facts_ = collect(model, rows)
    model.findings_ = examine(model.history_, model.facts_)
    for finding in model.findings_:
        if finding.fault != "label-shift":
            warnings.warn(str(finding), CidaWarning, stacklevel=outside())


def settings_of(
    parameters: Mapping[str, Any], choices: Mapping[str, Any], indexed: bool, steps: int
) -> dict[str, Any]:
    """The settings that the doctor reads: of a fitted model, or of a file's header alone.

    A header does not say what a game of the user's own is.
    """
    own = parameters["game"] is None
    game = Game if own else named_game(parameters["game"])
    return {
        "game": "own" if own else game.__name__,
        "indexed": indexed,
        "adapts": parameters["discriminator"] is not None,
        "conditional": game.conditional,
        "uses_head": game.uses_head,
        "usual_lambda": game.usual_lambda,
        "lambda_d": float(choices["lambda_d"]),
        "discriminator_steps": int(parameters["discriminator_steps"]),
        "ceiling": bool(parameters["ceiling"]),
        "curriculum": float(choices["curriculum"]),
        "steps": steps,
        "learning_rate": float(parameters["learning_rate"]),
        "weight_decay": float(parameters["weight_decay"]),
        "own_encoder": parameters["encoder"] is not None,
        "index_mode": str(parameters["index_in_encoder"]),
    }


def facts_in(header: Mapping[str, Any]) -> Facts:
    """The facts in a model file's header; of an older file, the settings alone."""
    if header.get("facts") is not None:
        return Facts.from_words(header["facts"])
    indexed = header["index_width"] is not None
    settings = settings_of(header["parameters"], header["choices"], indexed, header["steps"])
    return from_words(Facts, settings)


def findings_in(header: Mapping[str, Any]) -> list[Finding]:
    """The findings in a model file's header."""
    return [from_words(Finding, words) for words in header.get("findings") or ()]


@torch.no_grad()
def collect(model: CIDAEstimator, rows: Rows) -> Facts:
    """What is known of the rows and of the end of training, from at most a few thousand rows."""
    parameters, indexed = model.get_params(deep=False), model.index_width_ is not None
    settings = settings_of(parameters, vars(model.choices_), indexed, model.n_steps_)
    sources, targets = rows.sources, places(lambda part: ~rows.labelled[part], len(rows))
    settings["adapts"] = settings["adapts"] and 0 < len(sources) < len(rows)
    if not indexed:
        return Facts(**settings)
    source = rows[_thin(sources, MOST_ROWS // 2)]
    facts: dict[str, Any] = {
        "source_rows": len(sources),
        "target_rows": len(targets),
        "classes": model._output_width() if source.has_classes else None,
        "index": index_columns(model.space_, rows.u),
        "label_shift": shift_words(model.space_, rows),
        "blind_loss": blind_loss(source.y, source.weight),
        "neighbours_loss": _neighbours(source.x, source.y),
    }
    count = min(MOST_ROWS, max(FEWEST_ROWS, model.n_steps_ * CHUNK // 100))
    return Facts(**settings, **facts, **_encodings(model, rows, count), **_predictions(
        model, rows, targets, count
    ))  # fmt: skip


def _thin(rows: Tensor, most: int) -> Tensor:
    return rows[thinned(len(rows), most)] if len(rows) else rows


def _neighbours(x: Tensor, y: Tensor) -> float | None:
    if len(x) < FEWEST_ROWS or not 0 < x[0].numel() <= WIDEST:
        return None
    return neighbours_loss(x, y)


def _through(
    network: Callable[[Tensor, Tensor], Tensor], rows: Rows, some: Tensor
) -> tuple[Tensor, Tensor]:
    """What the network gives for these rows, and their index as it was dealt."""
    outputs, index = [], []
    for part in torch.split(some, CHUNK):
        batch = rows[part]
        outputs.append(network(batch.x, batch.u))
        index.append(batch.u)
    return torch.cat(outputs), torch.cat(index)


def _encodings(model: CIDAEstimator, rows: Rows, count: int) -> dict[str, Any]:
    z, u = _through(model.game_.encode, rows, thinned(len(rows), count))
    z = z.double()
    if not bool(z.isfinite().all()):
        return {}
    found = {
        "encoding_spread": float(z.var(0, correction=0).mean().sqrt()),
        "encoding_size": float(z.square().mean().sqrt()),
    }
    if len(z) >= FEWEST_ROWS:
        encoding, index = z.numpy(), model.space_.embed(u).double().numpy()
        share = explained_share(encoding, index)
        found["index_explained"] = share if math.isfinite(share) else 0.0
        found["index_in_sight"] = share_in_sight(encoding, index)
    return found


def _predictions(model: CIDAEstimator, rows: Rows, targets: Tensor, count: int) -> dict[str, Any]:
    """How much of the source, and of the far target, is predicted as one class."""
    if rows.y.is_floating_point() or not len(targets):
        return {}
    far = _farthest(model.space_, rows, _thin(targets, MOST_PLACES))
    if len(far) < FEWEST_FAR:
        return {}
    near, away = (
        _through(model.game_.predict, rows, _thin(part, count // 2))[0].argmax(1)
        for part in (rows.sources, far)
    )
    return {"same_source": same_share(near), "same_far": same_share(away)}


def _farthest(space: Space, rows: Rows, targets: Tensor) -> Tensor:
    """The quarter of these rows that is farthest from the source."""
    source = rows.u[_thin(rows.sources, MOST_PLACES)]
    distance = space.distance_to_set(rows.u[targets], source)
    return targets[distance.topk(max(1, int(FAR_SHARE * len(targets)))).indices.sort().values]
