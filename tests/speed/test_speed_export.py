"""The time that deployed models take."""

import time

import numpy as np
import pytest

from benchmarks.export import EXPORT_BATCH_ROWS, build_models, build_predictors, measure_predictors


def test_times_are_those_of_one_row_and_of_many():
    def waits(rows):
        time.sleep(0.001 if rows == 1 else 0.02)

    slow, none = measure_predictors("model", {"slow": waits, "none": lambda rows: None}, rounds=2)
    assert slow.name == "model, slow"
    assert 1 <= slow.p50_ms <= slow.p95_ms
    assert slow.rows_per_second <= EXPORT_BATCH_ROWS / 0.02
    assert none.p50_ms < slow.p50_ms
    assert none.rows_per_second > slow.rows_per_second


@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
def test_all_ways_of_a_tables_model_predict_the_same():
    ways = build_predictors(build_models()["table of 10 columns"]())
    want = ways["Python"](EXPORT_BATCH_ROWS)
    assert want.shape == (EXPORT_BATCH_ROWS, 2)
    for way in ("torch module", "ONNX"):
        assert np.abs(np.asarray(ways[way](EXPORT_BATCH_ROWS)[0]) - want).max() < 1e-5
