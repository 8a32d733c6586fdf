"""The model of a user's own table: schema, label, index and one or several fitted estimators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch

from cida.errors import error_summary
from cida.estimators.base import CIDAEstimator
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.header import check_network_bytes
from cida.estimators.inputs import CidaWarning, find_far_index
from cida.estimators.regressor import CIDARegressor
from cida.estimators.saving import ModelFileError
from cida.estimators.table_networks import (
    encoder_input_shape,
    make_table_encoder,
    resolve_table_settings,
)
from cida.indexing import subsample
from cida.io.files import contained_path
from cida.io.json_decode import from_dict
from cida.runs.records import RunRecord
from cida.runs.run_folder import RunFolder
from cida.spaces import Space, space_from_dict
from cida.tables import EncodedTable, MappedDataset, Schema, TableSource, write_mapped_rows
from cida.tables.cells import ColumnKind
from cida.tables.encoded_table import read_index
from cida.training import Callback

__all__ = [
    "HELD_OUT_SHARE",
    "CallbackFactory",
    "TableModel",
    "encode_rows",
    "hold_out",
]

Array = np.ndarray[Any, Any]
CallbackFactory = Callable[
    [int], AbstractContextManager[Sequence[Callback]]
]  # of one seed's training

MAX_NUMBERS_IN_MEMORY = 1 << 23  # numbers of X that are in memory at a time
MIN_X_STD = 1e-30  # below it, rows that differ so little are taken for all the same
MAX_X_STD = 1e30  # the deviation of rows in single precision, with room to square it
HELD_OUT_SHARE = 0.1  # the share of the source rows that are scored and not trained on


@dataclass(frozen=True)
class TableModel:
    """Predicts from batches of a table with the columns that it was fitted on.

    ``classes`` is None in a regression, whose labels were ``(y - center) / scale`` in training.
    Rows that are no vectors have the ``shape`` and were ``(x - center) / scale`` of ``x_scaling``.
    Several estimators predict their mean.
    """

    label: str
    index: tuple[str, ...]
    index_kinds: tuple[ColumnKind, ...]
    schema: Schema
    space: Space
    classes: tuple[str, ...] | None
    center: float
    scale: float
    shape: tuple[int, ...]
    x_scaling: tuple[float, float]
    windows: bool = True
    estimators: tuple[CIDAEstimator, ...] = ()

    # --- fitting ---------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        data: EncodedTable,
        x: Array,
        held_out: Array,
        settings: Mapping[str, Any],
        seeds: Sequence[int],
        make_callbacks: CallbackFactory,
        windows: bool = True,
    ) -> Self:
        """Trains an estimator for each seed on all rows of x but those held out.

        ``x`` is what `read_rows` gave; ``settings`` are the estimator's, None where those of tables
        are kept. Without ``windows`` columns are not standardised along the index.
        """
        is_classifier = data.classes is not None
        source_labels = np.zeros(0) if is_classifier else data.y[data.labelled & ~held_out]
        unfitted = cls(
            label=data.roles.label,
            index=data.roles.index,
            index_kinds=data.index_kinds,
            schema=data.schema,
            space=data.roles.make_space().fit(subsample(torch.from_numpy(data.u))),
            classes=data.classes,
            center=0.0 if is_classifier else float(source_labels.mean()),
            scale=1.0 if is_classifier else float(source_labels.std()) or 1.0,
            shape=encoder_input_shape(x.shape[1:]),
            x_scaling=_fit_x_scaling(data.table),
            windows=windows,
        )
        dataset = unfitted.training_dataset(data, x, held_out)
        estimators = tuple(
            unfitted._train(dataset, settings, seed, make_callbacks) for seed in seeds
        )
        return cls(**{**vars(unfitted), "estimators": estimators})

    def training_dataset(self, data: EncodedTable, x: Array, held_out: Array) -> MappedDataset:
        """What every estimator is trained on: all rows but those held out."""
        row_numbers = torch.from_numpy(np.flatnonzero(~held_out))
        y, u, labelled = (
            torch.from_numpy(values)[row_numbers] for values in (data.y, data.u, data.labelled)
        )
        if self.classes is None:
            y = ((y - self.center) / self.scale).float()[:, None]
        return MappedDataset(x, row_numbers, y, u, labelled)

    def _train(
        self,
        dataset: MappedDataset,
        settings: Mapping[str, Any],
        seed: int,
        make_callbacks: CallbackFactory,
    ) -> CIDAEstimator:
        encoder = make_table_encoder(self.shape, self.schema, self.space, seed, self.windows)
        resolved = resolve_table_settings(self.shape, len(dataset))
        resolved |= {name: value for name, value in settings.items() if value is not None}
        with make_callbacks(seed) as callbacks:
            model = self._estimator_class(
                **{"discriminator": None, **resolved},
                space=self.space,
                encoder=encoder,
                coordinates="learned",
                random_state=seed,
                callbacks=list(callbacks),
            )
            with _ignore_warnings():  # what the doctor finds is told by whoever asked for the fit
                model.fit_dataset(dataset)
        return model

    @property
    def _estimator_class(self) -> type[CIDAClassifier] | type[CIDARegressor]:
        return CIDARegressor if self.classes is None else CIDAClassifier

    # --- predicting ------------------------------------------------------------------------------

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns that a table must have to be predicted."""
        return (*self.schema.names, *self.index)

    def read_batch(self, batch: Any) -> tuple[Array, Array]:
        """Inputs and index of a pyarrow batch that has the needed columns."""
        return self.schema.encode(batch), read_index(batch, self.index, self.index_kinds)

    def scale_rows(self, rows: Array) -> Array:
        """Rows that are no vectors, as the encoder takes them."""
        return _scale_rows(rows, self.x_scaling).reshape(len(rows), *self.shape)

    def predict(self, x: Array, u: Array) -> Array:
        """The probability of each class, or the predicted number as one column."""
        predicted: Array = np.mean([self._predict_one(m, x, u) for m in self.estimators], axis=0)
        return predicted

    def is_extrapolated(self, u: Array) -> Array:
        """Which rows have an index far from all that were seen in training."""
        training_index = self.estimators[0]._training_index
        columns = [
            far.numpy()
            for far, _ in find_far_index(self.space, torch.from_numpy(u), training_index)
        ]
        far: Array = np.any(columns, axis=0)
        return far

    def encode(self, x: Array, u: Array) -> Array:
        """The encoding of the first estimator."""
        with _ignore_warnings():
            return self.estimators[0].transform(x, domain_index=u)

    def _predict_one(self, model: CIDAEstimator, x: Array, u: Array) -> Array:
        with _ignore_warnings():  # rows beyond the range are flagged one by one
            if isinstance(model, CIDAClassifier):
                return model.predict_proba(x, domain_index=u)
            return model.predict(x, domain_index=u)[:, None] * self.scale + self.center

    # --- files -----------------------------------------------------------------------------------

    def save(self, folder: Path, record: RunRecord) -> None:
        """Write the record of the run, its events and a file for each estimator."""
        table = {
            **{name: getattr(self, name) for name in _JSON_FIELDS},
            "schema": self.schema.to_dict(),
            "space": self.space.to_dict(),
            "estimators": len(self.estimators),
        }
        for number, model in enumerate(self.estimators):
            model.save(folder / _model_file_name(number))
        run_folder = RunFolder(folder)
        run_folder.write_events([model.history_ for model in self.estimators])
        run_folder.write_record(replace(record, table=table))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote."""
        run_record = _read_table_run(folder)
        try:
            table = from_dict(_TableRecord, run_record.table)
            unfitted = cls(**table.to_model_fields())
            build_encoder = partial(
                make_table_encoder,
                unfitted.shape,
                unfitted.schema,
                unfitted.space,
                0,
                unfitted.windows,
            )
            first = contained_path(folder, _model_file_name(0))
            if first.is_file():
                check_network_bytes(folder / "run.json", build_encoder, first.stat().st_size)
            encoder = build_encoder()
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{folder / 'run.json'} is not as cida writes it ({error_summary(error)})."
            ) from None
        estimator_class, numbers = unfitted._estimator_class, range(table.estimators)
        estimators = [
            estimator_class.load(contained_path(folder, _model_file_name(k)), encoder=encoder)
            for k in numbers
        ]
        for number, model in enumerate(estimators):
            _check_same_table(unfitted, model, folder / _model_file_name(number))
        return cls(**{**vars(unfitted), "estimators": tuple(estimators)})


@dataclass(frozen=True)
class _TableRecord:
    """What run.json says of the table."""

    label: str
    index: tuple[str, ...]
    index_kinds: tuple[Literal["number", "date"], ...]
    classes: tuple[str, ...] | None
    center: float
    scale: float
    shape: tuple[int, ...]
    x_scaling: tuple[float, float]
    windows: bool
    schema: dict[str, Any]
    space: dict[str, Any]
    estimators: int

    def to_model_fields(self) -> dict[str, Any]:
        """The fields of a `TableModel` without estimators; refuses what does not fit together."""
        schema, space = Schema.from_dict(self.schema), space_from_dict(self.space)
        if not len(self.index) == len(self.index_kinds) == space.width:
            raise ValueError(f"index has {len(self.index)} columns, and the space {space.width}")
        numbers = (self.center, self.scale, *self.x_scaling)
        if not np.isfinite(numbers).all() or not (self.scale > 0 and self.x_scaling[1] > MIN_X_STD):
            raise ValueError(f"its scales are {', '.join(f'{number:g}' for number in numbers)}")
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"shape is {list(self.shape)}, which is no shape of rows")
        if len(self.shape) == 1 and self.shape != (schema.width,):
            raise ValueError(f"shape is {list(self.shape)}, and the columns give {schema.width}")
        if self.estimators < 1:
            raise ValueError(f"estimators is {self.estimators}; there is one at least")
        fields = {name: getattr(self, name) for name in _JSON_FIELDS}
        return {**fields, "schema": schema, "space": space}


def _check_same_table(table: TableModel, model: CIDAEstimator, path: Path) -> None:
    """Refuses an estimator of another table."""
    outputs = 1 if table.classes is None else len(table.classes)
    shape = (model._row_shape, model.space_.width, model._output_width())
    if shape != (table.shape, table.space.width, outputs):
        raise ModelFileError(
            f"{path} is the model of another table than its run.json tells; copy the folder again."
        )


_JSON_FIELDS = (
    "label",
    "index",
    "index_kinds",
    "classes",
    "center",
    "scale",
    "shape",
    "x_scaling",
    "windows",
)


def encode_rows(data: EncodedTable, path: Path) -> Array:
    """The inputs of all rows as the encoder takes them, in a mapped file."""
    array = data.table.input_array
    if array is None:
        return write_mapped_rows(path, data.iter_encoded(), data.schema.width)
    shape, scaling = encoder_input_shape(array.shape[1:]), _fit_x_scaling(data.table)
    at_once = max(1, MAX_NUMBERS_IN_MEMORY // math.prod(shape))
    scaled = (_scale_rows(array[k : k + at_once], scaling) for k in range(0, len(array), at_once))
    return write_mapped_rows(path, scaled, math.prod(shape)).reshape(len(array), *shape)


def hold_out(data: EncodedTable, seed: int) -> Array:
    """Which source rows are held out: a tenth of them, of each class alike."""
    generator = np.random.default_rng(seed)
    held_out: Array = np.zeros(len(data), dtype=bool)
    groups = (
        [data.labelled]
        if data.classes is None
        else [data.labelled & (data.y == code) for code in range(len(data.classes))]
    )
    for group in groups:
        rows = np.flatnonzero(group)
        count = round(HELD_OUT_SHARE * len(rows))
        held_out[generator.permutation(rows)[:count]] = True
    if not held_out.any():  # few rows of each class: one of the most frequent
        rows = np.flatnonzero(max(groups, key=np.count_nonzero))
        held_out[generator.choice(rows)] = True
    return held_out


def _fit_x_scaling(table: TableSource) -> tuple[float, float]:
    if table.input_array is None:
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = _moments(table.input_array)
    if not spread < MAX_X_STD:
        raise ValueError(
            f"{table.path} has numbers as large as {np.abs(table.input_array).max():g} in X, "
            "which is "
            "beyond what can be computed with; give them in other units."
        )
    return mean, spread if spread > MIN_X_STD else 1.0


def _moments(x: Array) -> tuple[float, float]:
    """Mean and deviation of all numbers, of very many part by part."""
    if x.size <= MAX_NUMBERS_IN_MEMORY:
        mean, spread = (float(f(x, dtype=np.float64)) for f in (np.mean, np.std))
        return mean, spread
    at_once = max(1, MAX_NUMBERS_IN_MEMORY // math.prod(x.shape[1:]))
    chunks = [x[k : k + at_once] for k in range(0, len(x), at_once)]
    mean = sum(float(part.sum(dtype=np.float64)) for part in chunks) / x.size
    squares = sum(float(np.square(part - mean, dtype=np.float64).sum()) for part in chunks)
    return mean, math.sqrt(squares / x.size)


def _scale_rows(rows: Array, scaling: tuple[float, float]) -> Array:
    center, scale = scaling
    scaled = rows.astype(np.float32)
    scaled -= center
    scaled /= scale
    return scaled


@contextmanager
def _ignore_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        yield


def _model_file_name(number: int) -> str:
    return f"model-{number}.safetensors"


def _read_table_run(folder: Path) -> RunRecord:
    try:
        record = RunFolder.open(folder).record
    except FileNotFoundError:
        raise ModelFileError(
            f"RUN is {folder}, which has no run.json; give a folder that cida fit wrote."
        ) from None
    if record.table is None:
        raise ModelFileError(
            f"RUN is {folder}, a run of {record.task}; tables are predicted by runs of cida fit."
        )
    return record
