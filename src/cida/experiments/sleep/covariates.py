"""Age, gender and the other indices of the subjects, from a study's table."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cida.errors import did_you_mean
from cida.experiments.sleep.recording_errors import RecordingError
from cida.experiments.sleep.studies import INDEX_NAMES, Study, strip_leading_zeros

__all__ = ["Covariates", "get_covariates", "read_covariates"]

Covariates = dict[str, dict[str, float]]
NO_COLUMN_OVERRIDES: Mapping[str, str] = MappingProxyType({})
MISSING_VALUE_PATTERN = re.compile(r"\.[a-z_]?|na|n/a|nan|null|none|not reported", re.IGNORECASE)


def read_covariates(
    root: str | Path, study: Study, columns: Mapping[str, str] = NO_COLUMN_OVERRIDES
) -> Covariates:
    """For each subject of the table every index, NaN where it is not known.

    ``columns`` names the column of an index where it is another than the study's own.
    """
    path = study.find_table(root)
    covariates: Covariates = {}
    unparsed_texts: dict[str, str] = {}  # of each index, a text that is no number
    # Names and numbers are ASCII; a letter of another encoding in a comment must not stop us.
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file)
        try:
            names = [name.strip().lower() for name in next(lines, [])]
            column_numbers = _find_columns(names, study, columns, path)
            id_column_number = _find_column(names, study.id_column, path)
            for cells in lines:
                text = _cell(cells, id_column_number)
                if not text:
                    continue
                subject = strip_leading_zeros(text)
                if subject in covariates:
                    line_note = f"again in line {lines.line_num}"
                    raise ValueError(
                        f"{path} has subject {subject} twice ({line_note}); leave one."
                    )
                covariates[subject] = _parse_indices(cells, column_numbers, study, unparsed_texts)
        except csv.Error as error:
            raise ValueError(f"{path} is no table in CSV ({error}); download it again.") from None
    _check_numbers(covariates, unparsed_texts, column_numbers, names, path)
    return covariates


def get_covariates(subject: str, covariates: Covariates, path: Path) -> dict[str, float]:
    """The subject's indices; the age must be known."""
    if subject not in covariates:
        raise RecordingError(path, f"subject {subject} is not in it; add the line.")
    if math.isnan(covariates[subject]["age"]):
        raise RecordingError(path, f"subject {subject} has no age in it; fill it in.")
    return covariates[subject]


def _find_columns(
    names: Sequence[str], study: Study, columns: Mapping[str, str], path: Path
) -> dict[str, int]:
    """Where the column of each index is; without those that the table does not have."""
    for index in columns:
        if index not in INDEX_NAMES:
            raise ValueError(f"columns has {index!r}; the indices are {', '.join(INDEX_NAMES)}.")
    column_numbers = {}
    for index in INDEX_NAMES:
        if index in columns:
            column_numbers[index] = _find_column(names, columns[index], path)
            continue
        candidates = [name for name in study.columns.get(index, ()) if name in names]
        if candidates:
            column_numbers[index] = names.index(candidates[0])
    if "age" not in column_numbers:
        age_columns = " or ".join(study.columns["age"])
        raise ValueError(
            f"{path} has no column {age_columns}; name the one with the age in columns."
        )
    return column_numbers


def _find_column(names: Sequence[str], name: str, path: Path) -> int:
    if name.strip().lower() not in names:
        raise ValueError(
            f"{path} has no column {name}; {did_you_mean(name, names)}its first ones are "
            f"{', '.join(' '.join(known.split()) for known in names[:8])}."
        )
    return names.index(name.strip().lower())


def _cell(cells: Sequence[str], column_number: int) -> str:
    """Empty where the line is too short to have it."""
    return cells[column_number].strip() if column_number < len(cells) else ""


def _parse_indices(
    cells: Sequence[str],
    column_numbers: Mapping[str, int],
    study: Study,
    unparsed_texts: dict[str, str],
) -> dict[str, float]:
    values = {index: study.constants.get(index, math.nan) for index in INDEX_NAMES}
    for index, column_number in column_numbers.items():
        text = _cell(cells, column_number)
        values[index] = _parse_gender(text, study) if index == "gender" else _parse_number(text)
        if text and math.isnan(values[index]) and not MISSING_VALUE_PATTERN.fullmatch(text):
            unparsed_texts.setdefault(index, text)
    return values


def _parse_gender(text: str, study: Study) -> float:
    return study.gender_codes.get(text.lower().removesuffix(".0"), math.nan)


def _parse_number(text: str) -> float:
    """NaN for SAS's ``.`` and ``.M``, for NA and whatever else is no number."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _check_numbers(
    covariates: Covariates,
    unparsed_texts: Mapping[str, str],
    column_numbers: Mapping[str, int],
    names: Sequence[str],
    path: Path,
) -> None:
    """Words where numbers were meant point to a wrong column, not to unknown values."""
    for index, unparsed_text in unparsed_texts.items():
        if all(math.isnan(indices[index]) for indices in covariates.values()):
            column = names[column_numbers[index]]
            raise ValueError(
                f"{path} has {unparsed_text!r} and no value for {index} in column {column}."
            )
