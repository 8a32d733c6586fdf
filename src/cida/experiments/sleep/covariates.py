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
    texts: dict[str, dict[str, str]] = {}  # of each subject, by index
    # Names and numbers are ASCII; a letter of another encoding in a comment must not stop us.
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file)
        try:
            names = [name.strip().lower() for name in next(lines, [])]
            column_numbers = _find_columns(names, study, columns, path)
            id_number = _find_column(names, study.id_column, path)
            for cells in lines:
                if not _cell(cells, id_number):
                    continue
                subject = strip_leading_zeros(_cell(cells, id_number))
                if subject in texts:
                    place = f"again in line {lines.line_num}"
                    raise ValueError(f"{path} has subject {subject} twice ({place}); keep one.")
                texts[subject] = {index: _cell(cells, n) for index, n in column_numbers.items()}
        except csv.Error as error:
            raise ValueError(f"{path} is not a CSV table ({error}); download it again.") from None
    unknown = {index: study.constants.get(index, math.nan) for index in INDEX_NAMES}
    covariates = {
        subject: unknown | {index: _parse_index(index, text, study) for index, text in own.items()}
        for subject, own in texts.items()
    }
    for index, number in column_numbers.items():
        # Words where numbers were meant point to a wrong column, not to unknown values.
        present = [own[index] for own in texts.values() if own[index]]
        words = [text for text in present if not MISSING_VALUE_PATTERN.fullmatch(text)]
        if words and all(math.isnan(indices[index]) for indices in covariates.values()):
            problem = f"{words[0]!r} and no value for {index} in column {names[number]}"
            raise ValueError(f"{path} has {problem}.")
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
        elif known := [name for name in study.columns.get(index, ()) if name in names]:
            column_numbers[index] = names.index(known[0])
    if "age" not in column_numbers:
        ages = " or ".join(study.columns["age"])
        raise ValueError(f"{path} has no column {ages}; name the one with the age in columns.")
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


def _parse_index(index: str, text: str, study: Study) -> float:
    """NaN for SAS's ``.`` and ``.M``, for NA and whatever else is no number or no gender."""
    if index == "gender":
        return study.gender_codes.get(text.lower().removesuffix(".0"), math.nan)
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
