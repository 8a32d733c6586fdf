"""SHHS, MESA and SOF: where NSRR puts their files, and what it calls belts and columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "INDEX_NAMES",
    "SIMULATED_MARKER",
    "STUDIES",
    "Recording",
    "Study",
    "is_simulated",
    "normalize_label",
    "strip_leading_zeros",
]

# The 11 domain indices of the paper (its supplement, "Experiment on the Healthcare Datasets").
INDEX_NAMES = (
    "age",
    "heart_rate",
    "gender",
    "physical_functioning",
    "role_physical",
    "general_health",
    "role_emotional",
    "vitality",
    "mental_health",
    "social_functioning",
    "bodily_pain",
)

MALE, FEMALE = 1.0, 2.0

# Left in the root by the simulator, so that nobody takes its people for patients.
SIMULATED_MARKER = "SIMULATED.txt"

# In order of preference: the chest moves less when a sleeper turns than the belly does.
BELT_ALIASES = (
    "THOR RES",
    "Thor",
    "Thoracic",
    "Thorax",
    "Thor Effort",
    "Thoracic Effort",
    "Effort THO",
    "RIP Thor",
    "Thor Belt",
    "Chest",
    "Chest Effort",
    "Chest Belt",
    "ABDO RES",
    "Abdo",
    "Abdominal",
    "Abdomen",
    "Abdo Effort",
    "Abdominal Effort",
    "Effort ABD",
    "RIP Abdo",
    "Abdo Belt",
    "Belly",
)

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
    belt_aliases: tuple[str, ...] = BELT_ALIASES

    def recording_paths(self, root: str | Path, number: int) -> Recording:
        """Where the files of this subject belong, whether they are there or not."""
        edf, annotation = (
            self.edf_pattern.format(id=number),
            self.annotation_pattern.format(id=number),
        )
        return Recording(str(number), Path(root, edf), Path(root, annotation))

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
                raise ValueError(
                    f"root has subject {number} twice: {recording_by_number[number].edf} and {edf}."
                )
            annotation = root / ID_PLACEHOLDER.sub(match[1], self.annotation_pattern)
            recording_by_number[number] = Recording(str(number), edf, annotation)
        if not recording_by_number:
            raise ValueError(
                f"root is {root}, which has no {ID_PLACEHOLDER.sub('*', self.edf_pattern)}; "
                "point it at the folder "
                f"of {self.title} that NSRR's polysomnography/ and datasets/ are in."
            )
        return [recording_by_number[number] for number in sorted(recording_by_number)]

    def find_table(self, root: str | Path) -> Path:
        """The table of covariates; of several versions the newest."""
        table_paths = list(_check_study_folder(root).glob(self.table_pattern))
        if not table_paths:
            raise ValueError(
                f"root is {root}, which has no {self.table_pattern}; download the table of "
                f"{self.title} "
                f"with the age of its subjects too."
            )
        return max(
            table_paths, key=lambda path: [int(part) for part in re.findall(r"\d+", path.stem)]
        )


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
        raise ValueError(f"root is {root}, which is no folder; point it at a study from NSRR.")
    return root


STUDIES = {
    study.name: study
    for study in (
        Study(
            "shhs",
            "the Sleep Heart Health Study, visit 1",
            "polysomnography/edfs/shhs1/shhs1-{id:06d}.edf",
            "polysomnography/annotations-events-nsrr/shhs1/shhs1-{id:06d}-nsrr.xml",
            "datasets/shhs1-dataset-*.csv",
            "nsrrid",
            {
                "age": ("age_s1", "nsrr_age"),
                "heart_rate": ("ventrate",),  # of the 12-lead ECG at rest, lying down
                "gender": ("gender", "nsrr_sex"),
                "physical_functioning": ("pf_s1",),
                "role_physical": ("rp_s1",),
                "general_health": ("gh_s1",),
                "role_emotional": ("re_s1",),
                "vitality": ("vt_s1",),
                "mental_health": ("mh_s1",),
                "social_functioning": ("sf_s1",),
                "bodily_pain": ("bp_s1",),
            },
            {"1": MALE, "2": FEMALE, "male": MALE, "female": FEMALE},
        ),
        Study(
            "mesa",
            "the Multi-Ethnic Study of Atherosclerosis",
            "polysomnography/edfs/mesa-sleep-{id:04d}.edf",
            "polysomnography/annotations-events-nsrr/mesa-sleep-{id:04d}-nsrr.xml",
            "datasets/mesa-sleep-dataset-*.csv",
            "mesaid",
            {"age": ("sleepage5c", "nsrr_age"), "gender": ("gender1", "nsrr_sex")},
            {"1": MALE, "0": FEMALE, "male": MALE, "female": FEMALE},
        ),
        Study(
            "sof",
            "the Study of Osteoporotic Fractures, visit 8",
            "polysomnography/edfs/sof-visit-8-{id:05d}.edf",
            "polysomnography/annotations-events-nsrr/sof-visit-8-{id:05d}-nsrr.xml",
            "datasets/sof-visit-8-dataset-*.csv",
            "sofid",
            {"age": ("v8age", "nsrr_age")},
            {"male": MALE, "female": FEMALE},
            {"gender": FEMALE},  # women only; releases differ in how they code it
        ),
    )
}
