"""The model of a user's own table: schema, label, index and one or several fitted estimators."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from cida.estimators.base import CIDAEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.header import check_size
from cida.estimators.inputs import CidaWarning, far_index
from cida.estimators.loading import read_run
from cida.estimators.regressor import CIDARegressor
from cida.estimators.saving import ModelFileError, versions
from cida.estimators.table_networks import make_table_encoder, network_shape, table_settings
from cida.files import own_file, write_atomically
from cida.plain import from_words
from cida.scratch import MANY, few, filled, parts, places, room
from cida.space import Space, space_from_dict
from cida.tables import Schema, StoredRows, TableData, TableFile, store_rows
from cida.tables.cells import Kind
from cida.tables.frame import index_values
from cida.training import Callback
from cida.words import one_line

__all__ = ["HELD_OUT", "WORLD", "TableModel", "Watch", "hold_out", "read_rows"]

Array = np.ndarray[Any, Any]
Watch = Callable[[int], AbstractContextManager[Sequence[Callback]]]  # of one seed's training

WORLD = "table"  # what run.json says a run of `cida fit` is of
AT_ONCE = 1 << 23  # numbers of X that are in memory at a time
SMALLEST = 1e-30  # below it, rows that differ so little are taken for all the same
LARGEST = 1e30  # the deviation of rows in single precision, with room to square it
HELD_OUT = 0.1  # the share of the source rows that are scored and not trained on


@dataclass(frozen=True)
class TableModel:
    """Predicts from batches of a table with the columns that it was fitted on.

    ``classes`` is None in a regression, whose labels were ``(y - centre) / scale`` in training.
    Rows that are no vectors have the ``shape`` and were ``(x - centre) / scale`` of ``x_scaling``.
    Several estimators predict their mean.
    """

    label: str
    index: tuple[str, ...]
    index_kinds: tuple[Kind, ...]
    schema: Schema
    space: Space
    classes: tuple[str, ...] | None
    centre: float
    scale: float
    shape: tuple[int, ...]
    x_scaling: tuple[float, float]
    windows: bool = True
    estimators: tuple[CIDAEstimator, ...] = ()

    # --- fitting ---------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        data: TableData,
        x: Array,
        held: Array,
        settings: Mapping[str, Any],
        seeds: Sequence[int],
        watch: Watch,
        windows: bool = True,
    ) -> Self:
        """Trains an estimator for each seed on all rows of x but those held out.

        ``x`` is what `read_rows` gave; ``settings`` are the estimator's, None where those of tables
        are kept. Without ``windows`` columns are not standardised along the index.
        """
        plain = data.classes is not None
        known = np.zeros(0) if plain else data.y[data.labelled & ~held]
        blank = cls(
            label=data.question.label,
            index=data.question.index,
            index_kinds=data.index_kinds,
            schema=data.schema,
            space=data.question.space().fit(few(torch.from_numpy(data.u))),
            classes=data.classes,
            centre=0.0 if plain else float(known.mean()),
            scale=1.0 if plain else float(known.std()) or 1.0,
            shape=network_shape(x.shape[1:]),
            x_scaling=_x_scaling(data.file),
            windows=windows,
        )
        rows = blank.training_rows(data, x, held)
        estimators = tuple(blank._train(rows, settings, seed, watch) for seed in seeds)
        return cls(**{**vars(blank), "estimators": estimators})

    def training_rows(self, data: TableData, x: Array, held: Array) -> StoredRows:
        """What every estimator is trained on: all rows but those held out."""
        place = places(lambda part: torch.from_numpy(~held[part]), len(data))

        def at(values: Array) -> Tensor:
            whole = torch.from_numpy(values)
            return filled(len(place), lambda part: whole[place[part]])

        y = at(data.y)
        if self.classes is None:
            y = ((y - self.centre) / self.scale).float()[:, None]
        return StoredRows(x, place, y, at(data.u), at(data.labelled))

    def _train(
        self, rows: StoredRows, settings: Mapping[str, Any], seed: int, watch: Watch
    ) -> CIDAEstimator:
        encoder = make_table_encoder(self.shape, self.schema, self.space, seed, self.windows)
        chosen = table_settings(self.shape, len(rows))
        chosen |= {name: value for name, value in settings.items() if value is not None}
        with watch(seed) as callbacks:
            model = self._kind(
                **{"discriminator": None, **chosen},
                space=self.space,
                encoder=encoder,
                index_in_encoder=True,
                random_state=seed,
                callbacks=list(callbacks),
            )
            with _quietly():  # what the doctor finds is told by whoever asked for the fit
                model.fit_rows(rows)
        return model

    @property
    def _kind(self) -> type[CIDAClassifier] | type[CIDARegressor]:
        return CIDARegressor if self.classes is None else CIDAClassifier

    # --- predicting ------------------------------------------------------------------------------

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a table must have to be predicted."""
        return (*self.schema.names, *self.index)

    def read(self, batch: Any) -> tuple[Array, Array]:
        """Inputs and index of a pyarrow batch that has the needed columns."""
        return self.schema.encode(batch), index_values(batch, self.index, self.index_kinds)

    def scaled(self, rows: Array) -> Array:
        """Rows that are no vectors, as the encoder takes them."""
        return _scaled(rows, self.x_scaling).reshape(len(rows), *self.shape)

    def predict(self, x: Array, u: Array) -> Array:
        """The probability of each class, or the predicted number as one column."""
        predicted: Array = np.mean([self._one(m, x, u) for m in self.estimators], axis=0)
        return predicted

    def beyond(self, u: Array) -> Array:
        """Which rows have an index far from all that were seen in training."""
        seen = self.estimators[0]._seen
        columns = [far.numpy() for far, _ in far_index(self.space, torch.from_numpy(u), seen)]
        far: Array = np.any(columns, axis=0)
        return far

    def encoding(self, x: Array, u: Array) -> Array:
        """The encoding of the first estimator."""
        with _quietly():
            return self.estimators[0].transform(x, domain_index=u)

    def _one(self, model: CIDAEstimator, x: Array, u: Array) -> Array:
        with _quietly():  # rows beyond the range are flagged one by one
            if isinstance(model, CIDAClassifier):
                return model.predict_proba(x, domain_index=u)
            return model.predict(x, domain_index=u)[:, None] * self.scale + self.centre

    # --- files -----------------------------------------------------------------------------------

    def save(self, folder: Path, facts: Mapping[str, Any]) -> None:
        """Writes run.json with these facts in it, events.jsonl and a file for each estimator."""
        words = {
            "schema": 1,
            "world": WORLD,
            **facts,
            "versions": versions(),
            "threads": torch.get_num_threads(),
            "table": {
                **{name: getattr(self, name) for name in _PLAIN},
                "schema": self.schema.to_dict(),
                "space": self.space.to_dict(),
                "estimators": len(self.estimators),
            },
        }
        lines = []
        for number, model in enumerate(self.estimators):
            model.save(folder / _file(number))
            events = [{"model": number, **asdict(event)} for event in model.history_]
            lines += [json.dumps(event) + "\n" for event in events]
        write_atomically(folder / "events.jsonl", "".join(lines).encode())
        write_atomically(folder / "run.json", (json.dumps(words, indent=2) + "\n").encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote."""
        words = _read_run(folder)
        try:
            table = from_words(_Table, words.get("table"))
            blank = cls(**table.values())
            make = partial(
                make_table_encoder, blank.shape, blank.schema, blank.space, 0, blank.windows
            )
            first = own_file(folder, _file(0))
            if first.is_file():
                check_size(folder / "run.json", make, first.stat().st_size)
            encoder = make()
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{folder / 'run.json'} is not as cida writes it ({one_line(error)})."
            ) from None
        kind, numbers = blank._kind, range(table.estimators)
        loaded = [kind.load(own_file(folder, _file(k)), encoder=encoder) for k in numbers]
        for number, model in enumerate(loaded):
            _check_fits(blank, model, folder / _file(number))
        return cls(**{**vars(blank), "estimators": tuple(loaded)})


@dataclass(frozen=True)
class _Table:
    """What run.json says of the table."""

    label: str
    index: tuple[str, ...]
    index_kinds: tuple[Literal["number", "date"], ...]
    classes: tuple[str, ...] | None
    centre: float
    scale: float
    shape: tuple[int, ...]
    x_scaling: tuple[float, float]
    windows: bool
    schema: dict[str, Any]
    space: dict[str, Any]
    estimators: int

    def values(self) -> dict[str, Any]:
        """The fields of a `TableModel` without estimators; refuses what does not fit together."""
        schema, space = Schema.from_dict(self.schema), space_from_dict(self.space)
        if not len(self.index) == len(self.index_kinds) == space.width:
            raise ValueError(f"index has {len(self.index)} columns, and the space {space.width}")
        numbers = (self.centre, self.scale, *self.x_scaling)
        if not np.isfinite(numbers).all() or not (self.scale > 0 and self.x_scaling[1] > SMALLEST):
            raise ValueError(f"its scales are {', '.join(f'{number:g}' for number in numbers)}")
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"shape is {list(self.shape)}, which is no shape of rows")
        if len(self.shape) == 1 and self.shape != (schema.width,):
            raise ValueError(f"shape is {list(self.shape)}, and the columns give {schema.width}")
        if self.estimators < 1:
            raise ValueError(f"estimators is {self.estimators}; there is one at least")
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {**plain, "schema": schema, "space": space}


def _check_fits(table: TableModel, model: CIDAEstimator, path: Path) -> None:
    """Refuses an estimator of another table."""
    outputs = 1 if table.classes is None else len(table.classes)
    found = (model._row_shape, model.space_.width, model._output_width())
    if found != (table.shape, table.space.width, outputs):
        raise ModelFileError(
            f"{path} is the model of another table than its run.json tells; copy the folder again."
        )


_PLAIN = (
    "label",
    "index",
    "index_kinds",
    "classes",
    "centre",
    "scale",
    "shape",
    "x_scaling",
    "windows",
)


def read_rows(data: TableData, path: Path) -> Array:
    """The inputs of all rows as the encoder takes them, in a mapped file."""
    array = data.file.array
    if array is None:
        return store_rows(path, data.encoded(), data.schema.width)
    shape, scaling = network_shape(array.shape[1:]), _x_scaling(data.file)
    at_once = max(1, AT_ONCE // math.prod(shape))
    scaled = (_scaled(array[k : k + at_once], scaling) for k in range(0, len(array), at_once))
    return store_rows(path, scaled, math.prod(shape)).reshape(len(array), *shape)


def hold_out(data: TableData, seed: int) -> Array:
    """Which source rows are held out: a tenth of them, of each class alike."""
    generator = np.random.default_rng(seed)
    held: Array = room((len(data),), torch.bool).numpy()
    if len(data) > MANY:  # no order of them all: each row by its own chance, whatever its class
        for part in parts(len(data)):
            drawn = generator.random(part.stop - part.start) < HELD_OUT
            held[part] = data.labelled[part] & drawn
        return held
    groups = [data.labelled] if data.classes is None else [
        data.labelled & (data.y == code) for code in range(len(data.classes))
    ]  # fmt: skip
    for group in groups:
        rows = np.flatnonzero(group)
        count = round(HELD_OUT * len(rows))
        held[generator.permutation(rows)[:count]] = True
    if not held.any():  # few rows of each class: one of the most frequent
        rows = np.flatnonzero(max(groups, key=np.count_nonzero))
        held[generator.choice(rows)] = True
    return held


def _x_scaling(file: TableFile) -> tuple[float, float]:
    if file.array is None:
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = _moments(file.array)
    if not spread < LARGEST:
        raise ValueError(
            f"{file.path} has numbers as large as {np.abs(file.array).max():g} in X, which is "
            "beyond what can be computed with; give them in other units."
        )
    return mean, spread if spread > SMALLEST else 1.0


def _moments(x: Array) -> tuple[float, float]:
    """Mean and deviation of all numbers, of very many part by part."""
    if x.size <= AT_ONCE:
        mean, spread = (float(f(x, dtype=np.float64)) for f in (np.mean, np.std))
        return mean, spread
    at_once = max(1, AT_ONCE // math.prod(x.shape[1:]))
    some = [x[k : k + at_once] for k in range(0, len(x), at_once)]
    mean = sum(float(part.sum(dtype=np.float64)) for part in some) / x.size
    squares = sum(float(np.square(part - mean, dtype=np.float64).sum()) for part in some)
    return mean, math.sqrt(squares / x.size)


def _scaled(rows: Array, scaling: tuple[float, float]) -> Array:
    centre, scale = scaling
    made = rows.astype(np.float32)
    made -= centre
    made /= scale
    return made


@contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        yield


def _file(number: int) -> str:
    return f"model-{number}.safetensors"


def _read_run(folder: Path) -> dict[str, Any]:
    try:
        words = read_run(folder)
    except FileNotFoundError:
        raise ModelFileError(
            f"RUN is {folder}, which has no run.json; give a folder that cida fit wrote."
        ) from None
    if words.get("world") != WORLD:
        raise ModelFileError(
            f"RUN is {folder}, a run of {words.get('world')}; tables are predicted by runs of cida "
            "fit."
        )
    return words
