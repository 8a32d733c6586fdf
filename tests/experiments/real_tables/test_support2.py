"""SUPPORT2: what is read of the file, and who counts as dead."""

import numpy as np
import pandas as pd
import pytest

from cida.experiments.real_tables.table_data import (
    CATEGORY_COLUMNS,
    NUMERIC_COLUMNS,
    SUPPORT2_DATASET,
    fetch_support2,
)

LATER = {
    "hospdead", "slos", "death", "d.time", "charges", "totcst", "totmcst", "avtisst", "sps", "aps",
    "surv2m", "surv6m", "prg2m", "prg6m", "dnr", "dnrday", "sfdm2", "hday",
}  # fmt: skip
HEADER = ["sno", "age", "death", "d.time", *NUMERIC_COLUMNS, *CATEGORY_COLUMNS, "hospdead"]


def csv(*patients):
    usual = dict.fromkeys(NUMERIC_COLUMNS, " 2.5") | dict.fromkeys(CATEGORY_COLUMNS, "white")
    rows = [{"sno": 1, "hospdead": 0} | usual | patient for patient in patients]
    lines = [HEADER, *([str(row[name]) for name in HEADER] for row in rows)]
    return "".join(",".join(line) + "\n" for line in lines)


def test_dead_within_180_days_is_counted_from_the_day_and_the_death(small):
    known = [(1, 4), (1, 180), (1, 181), (0, 180), (0, 2029)]
    patients = [{"age": 60 + death, "death": death, "d.time": day} for death, day in known]
    data = fetch_support2(small(SUPPORT2_DATASET, csv(*patients)))
    assert data.y.tolist() == [1, 1, 0, 0, 0]
    assert data.u.tolist() == [[61], [61], [61], [60], [60]]
    assert (data.y.dtype, data.u.dtype, data.index_names) == (np.int64, np.float64, ("age",))


def test_categories_are_words_and_numbers_are_numbers(small):
    patient = {"age": " 62.84998", "death": 0, "d.time": 999, "alb": "", "income": "$11-$25k"}
    data = fetch_support2(small(SUPPORT2_DATASET, csv(patient, patient | {"income": "", "alb": 3})))
    assert data.columns["income"].tolist() == ["$11-$25k", None]
    np.testing.assert_array_equal(data.columns["alb"], [np.nan, 3])
    assert data.columns["hrt"].tolist() == [2.5, 2.5]
    assert data.u[0, 0] == 62.84998


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"death": 2}, "has '2' in column death, line 2: this is neither 0 nor 1"),
        ({"death": 0, "d.time": 179}, "has '179' in column d.time, line 2: this is less than the"),
        ({"d.time": ""}, "has '' in column d.time, line 2: this is no number"),
        ({"age": ""}, "has '' in column age, line 2"),
        ({"hrt": "fast"}, "has 'fast' in column hrt, line 2"),
    ],
)
def test_a_wrong_cell_is_named(small, change, words):
    patient = {"age": 60, "death": 1, "d.time": 5} | change
    with pytest.raises(ValueError, match=f"support2.csv {words}"):
        fetch_support2(small(SUPPORT2_DATASET, csv(patient)))


def test_the_real_file_is_as_pandas_reads_it(real):
    frame = pd.read_csv(real(SUPPORT2_DATASET))
    data = fetch_support2()
    assert len(data.y) == 9105
    # Every column is used, or is the index, a number of the row, or named as what comes later.
    assert set(frame) - set(data.columns) - LATER == {"sno", "age"}
    assert not LATER & set(data.columns)
    np.testing.assert_array_equal(data.y, (frame["death"] == 1) & (frame["d.time"] <= 180))
    np.testing.assert_allclose(data.u[:, 0], frame["age"], rtol=1e-14)
    for name in NUMERIC_COLUMNS:
        np.testing.assert_allclose(data.columns[name], frame[name], rtol=1e-14)
    for name in CATEGORY_COLUMNS:
        words = frame[name].astype(object).where(frame[name].notna(), None)
        assert data.columns[name].tolist() == words.tolist()


def test_the_real_label_follows_age(real):
    real(SUPPORT2_DATASET)
    data = fetch_support2()
    young, old = data.u[:, 0] < 50, data.u[:, 0] >= 75
    assert data.y[young].mean() < data.y[old].mean()
