"""Columns to numbers: scaled as scikit-learn does, holes marked, categories counted."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import RobustScaler

from cida.tables import Column, Schema
from cida.tables.schema import DROP_REASONS, DroppedColumn
from cida.tables.schema_builder import SchemaBuilder, SystematicSample


def learn(columns, kinds=None, batch=7):
    """The schema of these columns, learned in small batches, and the columns as one batch."""
    whole = pa.RecordBatch.from_pydict(columns)
    kinds = kinds or dict.fromkeys(columns, "number")
    learner = SchemaBuilder(kinds, ())
    for start in range(0, len(whole), batch):
        learner.add(whole.slice(start, batch))
    return learner.build(), whole


def test_numbers_are_scaled_as_the_robust_scaler_does(rng):
    x = rng.normal(3, 5, (501, 3)) ** 3
    schema, batch = learn({f"x{k}": x[:, k] for k in range(3)})
    wanted = RobustScaler(unit_variance=True).fit_transform(x)
    assert schema.encode(batch).dtype == np.float32
    np.testing.assert_allclose(schema.encode(batch), wanted.clip(-20, 20), rtol=1e-4, atol=1e-5)


def test_a_column_whose_quartiles_agree_is_scaled_by_its_spread():
    flag = [False] * 90 + [True] * 10
    schema, batch = learn({"a": flag}, {"a": "boolean"})
    assert schema.columns[0].scale == pytest.approx(0.3)
    assert schema.encode(batch)[-1, 0] == pytest.approx(1 / 0.3)


def test_wild_values_are_clipped(rng):
    values = np.append(rng.normal(size=100), [1e12, np.inf, -np.inf])
    schema, batch = learn({"a": values})
    assert np.abs(schema.columns[0].center) < 1
    assert schema.encode(batch)[-3:, 0].tolist() == [20, 20, -20]


def test_holes_become_zero_and_an_indicator():
    columns = {"a": [1.0, 2, 3, 4], "b": [1.0, None, 5, None], "c": [None, 2.0, 3, 5]}
    schema, batch = learn(columns)
    assert (schema.n_numeric, schema.missing_indicators, schema.category_sizes) == (3, (1, 2), ())
    encoded = schema.encode(batch)
    assert encoded.shape == (4, schema.width) == (4, 5)
    assert encoded[:, 3].tolist() == [0, 1, 0, 1]
    assert encoded[:, 4].tolist() == [1, 0, 0, 0]
    assert encoded[[1, 3], 1].tolist() == [0, 0]


def test_numbers_come_first_and_categories_last_whatever_their_order_in_the_file():
    columns = {"c": ["x", "y", "x"], "a": [1.0, None, 2.0], "d": ["u", None, "v"]}
    schema, batch = learn(columns, {"c": "category", "a": "number", "d": "category"})
    assert schema.names == ("a", "c", "d")
    assert schema.category_sizes == (3, 3)
    assert schema.encode(batch)[:, 1:].tolist() == [[0, 1, 1], [1, 2, 0], [0, 1, 2]]


def test_categories_are_ranked_by_frequency_and_the_rare_ones_share_the_zero(rng):
    words = [f"w{k:03d}" for k in range(300) for _ in range(301 - k)]
    rng.shuffle(words)
    schema, batch = learn({"c": words}, {"c": "category"}, batch=5000)
    assert schema.columns[0].categories == tuple(f"w{k:03d}" for k in range(200))
    counts = pd.Series(words).value_counts()
    assert (schema.encode(batch)[:, 0] == 0).sum() == counts.to_numpy()[200:].sum()


def test_a_new_category_is_zero_and_counted():
    schema, _ = learn({"c": ["x", "y", "x", "y"]}, {"c": "category"})
    new = pa.RecordBatch.from_pydict({"c": ["y", "z", None, "", "q"]})
    assert schema.encode(new)[:, 0].tolist() == [2, 0, 0, 0, 0]
    assert schema.unknown_categories(new) == {"c": 2}


def test_what_cannot_help_is_dropped_with_its_reason():
    columns = {
        "same": [5.0] * 40,
        "one": ["x"] * 40,
        "empty": [None] * 40,
        "void": [np.nan] * 40,
        "id": [f"p{k}" for k in range(40)],
        "mark": ["x"] * 20 + [None] * 20,
        "flag": [1.0] * 20 + [None] * 20,
    }
    kinds = {"same": "number", "one": "category", "empty": None, "void": "number",
             "id": "category", "mark": "category", "flag": "number"}  # fmt: skip
    schema, batch = learn(columns, kinds)
    assert {column.name: column.summary() for column in schema.dropped} == {
        "same": "it is the same in every row",
        "one": "it is the same in every row",
        "empty": "it is empty",
        "void": "it is empty",
        "id": "its texts differ in nearly every row, as those of an id do",
    }
    # That a cell is there may tell something even where what it holds does not.
    assert schema.names == ("flag", "mark")
    assert schema.encode(batch)[[0, -1]].tolist() == [[0, 0, 1], [0, 1, 0]]


def test_an_id_is_known_even_where_it_has_more_texts_than_are_counted(monkeypatch):
    monkeypatch.setattr("cida.tables.schema_builder.MAX_COUNTED_TEXTS", 100)
    ids = [f"p{k}" for k in range(2000)]
    usual = [f"w{k % 150}" if k % 2 else "most" for k in range(2000)]
    kinds = {"id": "category", "usual": "category"}
    schema, _ = learn({"id": ids, "usual": usual}, kinds, batch=50)
    assert [(column.name, column.reason) for column in schema.dropped] == [("id", "identifier")]
    assert schema.columns[0].categories[0] == "most"


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 40))
def test_a_thinned_stream_keeps_evenly_spaced_rows(lengths, most):
    sample, start = SystematicSample(most), 0
    sample.add(np.zeros(0, dtype=int))
    for length in lengths:
        sample.add(np.arange(start, start + length))
        start += length
    kept = sample.to_array()
    assert len(kept) <= most
    assert kept.tolist() == list(range(0, start, sample.stride))
    assert sample.stride == 1 or 2 * len(kept) >= most - 1


NAMES = st.text(max_size=5)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COLUMNS = st.builds(
    Column,
    NAMES,
    st.sampled_from(["number", "boolean", "date", "category"]),
    NUMBERS,
    st.floats(0, exclude_min=True, allow_infinity=False),
    st.booleans(),
    st.lists(NAMES, max_size=3).map(tuple),
)


@given(
    st.lists(COLUMNS, max_size=5, unique_by=lambda column: column.name),
    st.lists(st.builds(DroppedColumn, NAMES, st.sampled_from([*DROP_REASONS]), NAMES), max_size=2),
)
def test_a_schema_goes_through_json_unchanged(columns, dropped):
    schema = Schema(tuple(columns), tuple(dropped))
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert (
        again.width
        == schema.width
        == again.n_numeric + len(again.missing_indicators) + len(again.category_sizes)
    )
