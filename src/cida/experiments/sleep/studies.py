"""SHHS, MESA and SOF: where NSRR puts their files, and what it calls belts and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cida.io.json_decode import decode, parse_json

# Left in the root by the simulator, so that nobody takes its people for patients.
SIMULATED_MARKER = "SIMULATED.txt"

ID_PLACEHOLDER = re.compile(r"\{id:0\d+d\}")


@dataclass(frozen=True)
class Recording:
    """The files of one subject's night."""

    subject: str
    edf: Path
    annotation: Path


@dataclass(frozen=True)
class Study:
    """A study as NSRR lays it out; paths are below its root, ``{id:04d}`` is the subject's number.

    ``columns`` has the candidates for each index that the study knows, the first one present
    counts. ``genders`` tells what the table writes for a man (1) and for a woman (2).
    """

    name: str
    title: str
    edf_pattern: str
    annotation_pattern: str
    table_pattern: str
    id_column: str
    columns: Mapping[str, tuple[str, ...]]
    gender_codes: Mapping[str, float]
    constants: Mapping[str, float] = field(default_factory=dict)

    def recording_paths(self, root: str | Path, number: int) -> Recording:
        """Where the files of this subject belong, whether they are there or not."""
        patterns = (self.edf_pattern, self.annotation_pattern)
        return Recording(str(number), *(Path(root, name.format(id=number)) for name in patterns))

    def find_recordings(self, root: str | Path) -> list[Recording]:
        """Every EDF file with the annotation that belongs to it, in order of the subject's number.

        The annotation may be missing on disk; that is for its reader to say.
        """
        root = _check_study_folder(root)
        head, tail = ID_PLACEHOLDER.split(self.edf_pattern)
        name = re.compile(f"{re.escape(head)}([0-9]+){re.escape(tail)}")
        recording_by_number: dict[int, Recording] = {}
        for edf in sorted(root.glob(f"{head}*{tail}")):
            match = name.fullmatch(edf.relative_to(root).as_posix())
            if match is None:
                continue
            number = int(match[1])
            if number in recording_by_number:
                first = recording_by_number[number].edf
                raise ValueError(f"root has subject {number} twice: {first} and {edf}.")
            annotation = root / ID_PLACEHOLDER.sub(match[1], self.annotation_pattern)
            recording_by_number[number] = Recording(str(number), edf, annotation)
        if not recording_by_number:
            raise ValueError(
                f"root is {root}, which has no {ID_PLACEHOLDER.sub('*', self.edf_pattern)}; give "
                f"the folder of {self.title} that has NSRR's polysomnography/ and datasets/."
            )
        return [recording_by_number[number] for number in sorted(recording_by_number)]

    def find_table(self, root: str | Path) -> Path:
        """The table of covariates; of several versions the newest."""
        table_paths = list(_check_study_folder(root).glob(self.table_pattern))
        if not table_paths:
            raise ValueError(
                f"root is {root}, which has no {self.table_pattern}; download the table of "
                f"{self.title} with the age of its subjects too."
            )
        return max(table_paths, key=lambda path: [*map(int, re.findall(r"\d+", path.stem))])


@dataclass(frozen=True)
class CohortSpec:
    """Who is in a study, and how it records: each belt's names, and the rates, in Hz.

    The usual name and rate come first; one night in eight has one of the others, as in studies
    that ran for years. Scorers of ``stage_4`` part deep sleep in two, as rules did before 2007.
    """

    age_range: tuple[int, int]
    mean_age: float
    age_std: float
    share_women: float
    rates_hz: tuple[int, ...]
    belt_names: tuple[tuple[str, str], ...]
    first_id: int
    table_path: str
    has_stage_4: bool


def is_simulated(root: str | Path) -> bool:
    """Whether the simulator wrote this folder."""
    return Path(root, SIMULATED_MARKER).exists()


def strip_leading_zeros(text: str) -> str:
    """The id without leading zeros: file names have them, tables do not."""
    return text.strip().lstrip("0") or "0"


def normalize_label(label: str) -> str:
    """A channel's label for comparison: ``THOR RES``, ``Thor_Res`` and ``thor.res`` are one."""
    return "".join(letter for letter in label.casefold() if letter.isalnum())


def _check_study_folder(root: str | Path) -> Path:
    root = Path(root).expanduser()
    if not root.is_dir():
        raise ValueError(f"root is {root}, which is not a folder; give that of a study from NSRR.")
    return root


_CONTENT = parse_json(Path(__file__).with_name("studies.json").read_bytes())

# The 11 domain indices of the paper (its supplement, "Experiment on the Healthcare Datasets").
INDEX_NAMES: tuple[str, ...] = decode(tuple[str, ...], _CONTENT["index_names"], "index_names")

# In order of preference: the chest moves less when a sleeper turns than the belly does.
BELT_ALIASES: tuple[str, ...] = decode(tuple[str, ...], _CONTENT["belt_aliases"], "belt_aliases")

# The heart rate of SHHS is that of its 12-lead ECG at rest, lying down. SOF has women only, whom
# its releases code in several ways.
STUDIES: dict[str, Study] = decode(dict[str, Study], _CONTENT["studies"], "studies")

# Ranges as in section 5.4 of the paper, shapes after its histograms: SHHS in middle age, MESA a
# little older, SOF women of about eighty.
Cohorts = dict[str, CohortSpec]
SIMULATED_COHORTS: Cohorts = decode(Cohorts, _CONTENT["simulated_cohorts"], "simulated_cohorts")
