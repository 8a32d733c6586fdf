"""Age, gender and the other indices of the subjects, from a study's table."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cida.datasets.sleep.errors import RecordingError
from cida.datasets.sleep.studies import INDICES, Study, subject_id
from cida.words import did_you_mean

__all__ = ["Covariates", "covariates_of", "read_covariates"]

Covariates = dict[str, dict[str, float]]
NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
UNKNOWN = re.compile(r"\.[a-z_]?|na|n/a|nan|null|none|not reported", re.IGNORECASE)


def read_covariates(
    root: str | Path, study: Study, columns: Mapping[str, str] = NO_COLUMNS
) -> Covariates:
    """For each subject of the table every index, NaN where it is not known.

    ``columns`` names the column of an index where it is another than the study's own.
    """
    path = study.table_path(root)
    found: Covariates = {}
    words: dict[str, str] = {}  # of each index, a text that is no number
    # Names and numbers are ASCII; a letter of another encoding in a comment must not stop us.
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file)
        try:
            names = [name.strip().lower() for name in next(lines, [])]
            places = _places(names, study, columns, path)
            id_place = _place(names, study.id_column, path)
            for cells in lines:
                text = _cell(cells, id_place)
                if not text:
                    continue
                subject = subject_id(text)
                if subject in found:
                    again = f"again in line {lines.line_num}"
                    raise ValueError(f"{path} has subject {subject} twice ({again}); leave one.")
                found[subject] = _indices(cells, places, study, words)
        except csv.Error as error:
            raise ValueError(f"{path} is no table in CSV ({error}); download it again.") from None
    _check_numbers(found, words, places, names, path)
    return found


def covariates_of(subject: str, covariates: Covariates, path: Path) -> dict[str, float]:
    """The subject's indices; the age must be known."""
    if subject not in covariates:
        raise RecordingError(path, f"subject {subject} is not in it; add the line.")
    if math.isnan(covariates[subject]["age"]):
        raise RecordingError(path, f"subject {subject} has no age in it; fill it in.")
    return covariates[subject]


def _places(
    names: Sequence[str], study: Study, columns: Mapping[str, str], path: Path
) -> dict[str, int]:
    """Where the column of each index is; without those that the table does not have."""
    for index in columns:
        if index not in INDICES:
            raise ValueError(f"columns has {index!r}; the indices are {', '.join(INDICES)}.")
    places = {}
    for index in INDICES:
        if index in columns:
            places[index] = _place(names, columns[index], path)
            continue
        here = [name for name in study.columns.get(index, ()) if name in names]
        if here:
            places[index] = names.index(here[0])
    if "age" not in places:
        wanted = " or ".join(study.columns["age"])
        raise ValueError(f"{path} has no column {wanted}; name the one with the age in columns.")
    return places


def _place(names: Sequence[str], name: str, path: Path) -> int:
    if name.strip().lower() not in names:
        raise ValueError(
            f"{path} has no column {name}; {did_you_mean(name, names)}its first ones are "
            f"{', '.join(' '.join(known.split()) for known in names[:8])}."
        )
    return names.index(name.strip().lower())


def _cell(cells: Sequence[str], place: int) -> str:
    """Empty where the line is too short to have it."""
    return cells[place].strip() if place < len(cells) else ""


def _indices(
    cells: Sequence[str], places: Mapping[str, int], study: Study, words: dict[str, str]
) -> dict[str, float]:
    found = {index: study.constants.get(index, math.nan) for index in INDICES}
    for index, place in places.items():
        text = _cell(cells, place)
        found[index] = _gender(text, study) if index == "gender" else _number(text)
        if text and math.isnan(found[index]) and not UNKNOWN.fullmatch(text):
            words.setdefault(index, text)
    return found


def _gender(text: str, study: Study) -> float:
    return study.genders.get(text.lower().removesuffix(".0"), math.nan)


def _number(text: str) -> float:
    """NaN for SAS's ``.`` and ``.M``, for NA and whatever else is no number."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _check_numbers(
    found: Covariates,
    words: Mapping[str, str],
    places: Mapping[str, int],
    names: Sequence[str],
    path: Path,
) -> None:
    """Words where numbers were meant point to a wrong column, not to unknown values."""
    for index, word in words.items():
        if all(math.isnan(indices[index]) for indices in found.values()):
            column = names[places[index]]
            raise ValueError(f"{path} has {word!r} and no value for {index} in column {column}.")
