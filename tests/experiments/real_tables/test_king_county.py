"""King County: what is read of the file, and labels by neighbourhood."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import haversine_distances

from cida.experiments.real_tables import table_data
from cida.experiments.real_tables.table_data import (
    FEATURE_COLUMNS,
    KING_COUNTY_DATASET,
    fetch_king_county,
    label_above_median,
    label_above_neighborhood_median,
    log_price_ratio,
    neighborhood_median,
)

HEADER = ["id", "zipcode", "longitude", *FEATURE_COLUMNS, "latitude", "sqft_lot_15nn", "price"]


def csv(*rows):
    return "".join(",".join(map(str, row)) + "\n" for row in (HEADER, *rows))


def county(rows, seed=0):
    random = np.random.default_rng(seed)
    place = random.uniform([47.1, -122.6], [47.8, -121.3], (rows, 2))
    return np.exp(random.normal(13, 0.5, rows)), place


def test_features_place_and_price_are_read_by_name(small):
    rows = [
        [7, 98001, -122.5, *range(13), 47.25, 5, 300000],
        [8, 98002, -122.25, *range(1, 13), "", 47.5, 5, 450000.5],
    ]
    data = fetch_king_county(small(KING_COUNTY_DATASET, csv(*rows)))
    assert tuple(data.columns) == FEATURE_COLUMNS
    assert data.columns["bedrooms"].tolist() == [0, 1]
    np.testing.assert_array_equal(data.columns["year_renovated"], [12, np.nan])
    assert data.u.tolist() == [[47.25, -122.5], [47.5, -122.25]]
    assert data.index_names == ("latitude", "longitude")
    assert data.y.tolist() == [300000, 450000.5]
    assert data.name == KING_COUNTY_DATASET.name


@pytest.mark.parametrize("column", ["latitude", "longitude", "price"])
def test_a_house_without_price_or_place_is_refused(small, column):
    row = dict(zip(HEADER, range(len(HEADER)), strict=True)) | {column: ""}
    with pytest.raises(ValueError, match=f"house_sales.csv has '' in column {column}, line 2"):
        fetch_king_county(small(KING_COUNTY_DATASET, csv(row.values())))


@pytest.mark.parametrize("neighbours", [1, 2, 7, 40, 300])
def test_the_median_is_that_of_the_nearest_by_great_circle(neighbours, monkeypatch):
    monkeypatch.setattr(table_data, "QUERY_CHUNK_ROWS", 64)
    random = np.random.default_rng(3)
    # A few kilometres across, where a plane and the globe order the distances alike.
    place = random.uniform([47.6, -122.3], [47.61, -122.28], (300, 2))
    price = np.exp(random.normal(13, 0.5, 300))
    nearest = haversine_distances(np.deg2rad(place)).argsort(axis=1)[:, :neighbours]
    expected = np.median(price[nearest], axis=1)
    found = neighborhood_median(price, place, neighbours)
    assert (found == expected).mean() > 0.98
    np.testing.assert_allclose(np.log(found / expected), 0, atol=0.3)


def test_a_house_is_its_own_neighbour_and_all_houses_have_one_median():
    price, place = county(50)
    np.testing.assert_array_equal(neighborhood_median(price, place, 1), price)
    np.testing.assert_array_equal(neighborhood_median(price, place, 50), np.median(price))


def test_a_degree_of_longitude_is_shorter_than_one_of_latitude():
    place = np.array([[47.5, -122.0], [47.5, -122.01], [47.508, -122.0]])
    price = np.array([1.0, 10.0, 100.0])
    assert neighborhood_median(price, place, 2)[0] == np.median([1, 10])
    place[:, 0] -= 47.5  # on the equator they are equal, and the other house is nearer
    assert neighborhood_median(price, place, 2)[0] == np.median([1, 100])


@given(st.integers(0, 99), st.integers(1, 60), st.floats(0.01, 100))
def test_the_labels_know_no_currency_and_follow_their_house(seed, neighbours, rate):
    price, place = county(60, seed)
    order = np.random.default_rng(seed).permutation(60)
    ratio = log_price_ratio(price, place, neighbours)
    np.testing.assert_allclose(log_price_ratio(rate * price, place, neighbours), ratio, atol=1e-9)
    np.testing.assert_array_equal(
        label_above_neighborhood_median(price[order], place[order], neighbours), (ratio > 0)[order]
    )


def test_above_the_median_is_half_of_all_houses():
    price, _ = county(100)
    assert label_above_median(price).sum() == 50
    assert label_above_median(price).dtype == np.int64
    assert label_above_median([3, 1, 2]).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_neighbors": 0}, "n_neighbors is 0; use a whole number from 1 to 10"),
        ({"n_neighbors": 11}, "n_neighbors is 11; use a whole number from 1 to 10"),
        ({"n_neighbors": 2.5}, "n_neighbors is 2.5"),
        ({"price": np.ones(9)}, r"price has shape \(9,\) and location \(10, 2\)"),
        ({"location": np.ones((10, 3))}, r"location \(10, 3\)"),
        ({"price": np.full(10, np.nan)}, "price holds NaN"),
        ({"location": np.full((10, 2), np.inf)}, "location holds NaN or infinity"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, words):
    price, place = county(10)
    with pytest.raises(ValueError, match=words):
        neighborhood_median(**{"price": price, "location": place, "n_neighbors": 3} | change)


def test_a_logarithm_needs_prices_above_zero():
    price, place = county(10)
    price[4] = 0
    with pytest.raises(ValueError, match=r"price holds 0\.0; a logarithm"):
        log_price_ratio(price, place, 3)


def test_the_real_file_is_as_pandas_reads_it(real):
    frame = pd.read_csv(real(KING_COUNTY_DATASET))
    data = fetch_king_county()
    assert len(data.y) == 21613
    np.testing.assert_array_equal(
        np.stack([*data.columns.values()], 1), frame[list(FEATURE_COLUMNS)]
    )
    np.testing.assert_array_equal(data.u, frame[["latitude", "longitude"]])
    np.testing.assert_array_equal(data.y, frame["price"])
    median = neighborhood_median(data.y, data.u)
    assert np.mean(data.y > median) == pytest.approx(0.5167, abs=1e-3)
    assert label_above_median(data.y).mean() == pytest.approx(0.5, abs=0.01)
    km = (data.u - data.u[777]) * np.deg2rad(6371 * np.array([1, np.cos(np.deg2rad(47.56))]))
    nearest = np.argsort(np.linalg.norm(km, axis=1))[:400]
    assert median[777] == pytest.approx(np.median(data.y[nearest]), rel=0.01)
