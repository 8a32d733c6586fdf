"""NHANES: what is read of the file, and who is left out."""

import numpy as np
import pandas as pd
import pytest

from cida.experiments.real_tables.table_data import (
    BODY_COLUMNS,
    METAL_COLUMNS,
    NHANES_DATASET,
    fetch_nhanes,
)

WRITTEN = [*BODY_COLUMNS.values(), *METAL_COLUMNS.values()]


def line(sex="Male", age="30", missing=(), **values):
    cells = {name: "" if name in missing else "2" for name in WRITTEN} | values
    return {"SEQN": "1"} | cells | {"Gender": sex, "AgeInYearsAtScreening": age}


def tsv(*lines):
    rows = [list(lines[0]), *(list(each.values()) for each in lines)]
    return "".join("\t".join(row) + "\n" for row in rows)


def test_values_age_and_sex_are_read_and_metals_are_logarithms(small):
    lines = [line("Male", "8.0"), line("Female", "80", ["WeightKg"], BloodLeadUgdl="0.5")]
    data = fetch_nhanes(small(NHANES_DATASET, tsv(*lines)))
    assert list(data.columns) == [*BODY_COLUMNS, *METAL_COLUMNS]
    assert len(data.columns) == 17
    np.testing.assert_array_equal(data.columns["weight_kg"], [2, np.nan])
    np.testing.assert_allclose(data.columns["log_lead"], np.log([2, 0.5]))
    np.testing.assert_array_equal(data.u, [[8], [80]])
    assert (data.name, data.index_names, data.y.tolist()) == ("nhanes", ("age",), [1, 0])
    assert (data.u.dtype, data.y.dtype) == (np.float64, np.int64)


def test_who_has_fewer_than_twelve_values_is_left_out(small):
    lines = [line(age=str(gaps), missing=WRITTEN[:gaps]) for gaps in range(18)]
    data = fetch_nhanes(small(NHANES_DATASET, tsv(*lines)))
    assert data.u[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_tiny_number_that_stands_for_zero_is_zero(small):
    lines = [line(DiastolicBloodPres2NdRdgMmHg="5.397605346934028e-79")]
    assert fetch_nhanes(small(NHANES_DATASET, tsv(*lines))).columns[
        "diastolic_2_mmhg"
    ].tolist() == [0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (line(sex=""), "has '' in column Gender, line 3: this is none of Female, Male"),
        (line(sex="male"), "has 'male' in column Gender, line 3"),
        (line(age=""), "has '' in column AgeInYearsAtScreening, line 3"),
        (line(BloodLeadUgdl="0"), "has '0' in column BloodLeadUgdl, line 3: this is no amount"),
        (line(WeightKg="heavy"), "has 'heavy' in column WeightKg, line 3: this is no number"),
    ],
)
def test_a_wrong_cell_is_named(small, wrong, words):
    with pytest.raises(ValueError, match=f"NHANES_data_2017-2018.tsv {words}"):
        fetch_nhanes(small(NHANES_DATASET, tsv(line(), wrong)))


def test_the_real_file_has_the_people_that_pandas_counts(real):
    frame = pd.read_csv(real(NHANES_DATASET), sep="\t", low_memory=False)
    frame = frame[frame[WRITTEN].notna().sum(axis=1) >= 12]
    data = fetch_nhanes()
    age = data.u[:, 0]
    assert ((age <= 20).sum(), (age > 20).sum()) == (1627, 4880)
    assert (age.min(), age.max()) == (8, 80)
    np.testing.assert_array_equal(age, frame["AgeInYearsAtScreening"])
    np.testing.assert_array_equal(data.y, frame["Gender"] == "Male")
    for name, written in BODY_COLUMNS.items():
        np.testing.assert_allclose(data.columns[name], frame[written], atol=1e-9)
    for name, written in METAL_COLUMNS.items():
        np.testing.assert_allclose(data.columns[name], np.log(frame[written]))
