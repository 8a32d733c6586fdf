"""King County: houses sold from 2014 to 2015, their prices, and where they stand (the index)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from cida.datasets.download import Dataset, Wanted
from cida.datasets.package import wheel
from cida.datasets.table import RealTable, read_text_table

__all__ = [
    "KING_COUNTY",
    "above_median",
    "dear_for_neighbourhood",
    "load_king_county",
    "log_price_ratio",
    "neighbourhood_median",
]

Array = np.ndarray[Any, Any]

KM_PER_DEGREE = 40_030 / 360  # of latitude: the earth's mean circumference by its degrees
ROWS_AT_ONCE = 2048  # 400 neighbours of so many houses are a few megabytes

FEATURES = (
    "bedrooms", "bathrooms", "sqft_living", "sqft_lot", "floors", "waterfront", "view",
    "condition", "grade", "sqft_above", "sqft_basement", "year_built", "year_renovated",
)  # fmt: skip
PLACE = ("latitude", "longitude")


def load_king_county(dataset: Dataset | None = None) -> RealTable:
    """13 facts about 21613 houses; y is the price in dollars; u is latitude and longitude.

    No column tells where a house is: neither the postcode nor what the neighbours' houses are like.
    ``year_renovated`` is 0 where a house never was. Labels are made of price and place:
    ``above_median(data.y)``, ``dear_for_neighbourhood(data.y, data.u)`` and, for regression,
    ``log_price_ratio(data.y, data.u)``. Fetched at first use, then kept.
    """
    dataset = dataset or KING_COUNTY
    dataset.fetch()
    table = read_text_table(dataset.folder / FILE, [*FEATURES, *PLACE, "price"])
    columns = {name: table.numbers(name) for name in FEATURES}
    place = np.stack([table.numbers(name, every_row=True) for name in PLACE], axis=1)
    price = table.numbers("price", every_row=True)
    return RealTable("king-county", columns, place, price, PLACE)


def above_median(price: Array) -> Array:
    """1 where a house costs more than the median of all, else 0."""
    price = np.asarray(price, np.float64)
    return np.where(price > np.median(price), 1, 0)


def dear_for_neighbourhood(price: Array, place: Array, neighbours: int = 400) -> Array:
    """1 where a house costs more than the median of its neighbourhood, else 0."""
    median = neighbourhood_median(price, place, neighbours)
    return np.where(np.asarray(price) > median, 1, 0)


def log_price_ratio(price: Array, place: Array, neighbours: int = 400) -> Array:
    """log(price / median price of the neighbourhood)."""
    if np.min(price) <= 0:
        raise ValueError(f"price holds {np.min(price)}; a logarithm needs prices above 0.")
    return np.log(np.asarray(price) / neighbourhood_median(price, place, neighbours))


def neighbourhood_median(price: Array, place: Array, neighbours: int = 400) -> Array:
    """The median price of the nearest houses, the house itself among them.

    ``place`` is latitude and longitude in degrees; distances are on the plane that touches the
    earth at their mean, which is exact enough for a county.
    """
    price, place = np.asarray(price, np.float64), np.asarray(place, np.float64)
    _check(price, place, neighbours)
    points = _kilometres(place)
    tree = cKDTree(points)
    median = np.empty(len(price))
    for start in range(0, len(price), ROWS_AT_ONCE):
        here = slice(start, start + ROWS_AT_ONCE)
        _, nearest = tree.query(points[here], k=range(1, neighbours + 1))
        median[here] = np.median(price[nearest], axis=1)
    return median


def _kilometres(place: Array) -> Array:
    """Places on a plane: a degree of longitude is shorter the further north it is."""
    shrink = np.cos(np.deg2rad(place[:, 0].mean()))
    return np.multiply(place, [KM_PER_DEGREE, KM_PER_DEGREE * shrink])


def _check(price: Array, place: Array, neighbours: int) -> None:
    if price.ndim != 1 or place.shape != (len(price), 2):
        raise ValueError(
            f"price has shape {price.shape} and place {place.shape}; give one price and one "
            f"latitude and longitude a row."
        )
    for name, values in (("price", price), ("place", place)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinity; leave these rows out.")
    if not isinstance(neighbours, int | np.integer) or not 1 <= neighbours <= len(price):
        raise ValueError(
            f"neighbours is {neighbours}; use a whole number from 1 to {len(price)}, the houses."
        )


FILE = "house_sales.csv"

KING_COUNTY = Dataset(
    "king-county",
    (Wanted(FILE, 2088210, "d662a1398dfe3ce7fcf87074d98d9257"),),
    (
        wheel(
            name="safe-ds-datasets",
            version="0.19.0",
            archive="safe_ds_datasets-0.19.0-py3-none-any.whl",
            members={FILE: f"safeds_datasets/tabular/_house_sales/data/{FILE}"},
        ),
    ),
)
