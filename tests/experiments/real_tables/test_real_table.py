"""Text tables are read cell by cell, and a wrong cell is named."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cida.experiments.real_tables.table_data import TextTable, read_text_table


@pytest.fixture
def written(tmp_path):
    def write(content):
        (tmp_path / "some.csv").write_bytes(content)
        return tmp_path / "some.csv"

    return write


def test_numbers_have_nan_and_categories_none_where_a_cell_is_empty(written):
    table = read_text_table(written(b"a,b,c\n1, x ,\n,,\n-2.5e1,y z,3\n"), ["c", "a", "b"])
    np.testing.assert_array_equal(table.parse_numbers("a"), [1, np.nan, -25])
    np.testing.assert_array_equal(table.parse_numbers("c"), [np.nan, np.nan, 3])
    assert table.parse_numbers("a").dtype == np.float64
    assert table.parse_categories("b").tolist() == ["x", None, "y z"]
    assert table.parse_categories("b").dtype == object


@given(
    st.lists(
        st.tuples(
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
            st.none() | st.text("ab,\t\"'", min_size=1).filter(str.strip).map(str.strip),
        ),
        min_size=1,
    ),
    st.sampled_from(",\t"),
)
def test_what_pandas_writes_is_read_back(tmp_path_factory, rows, delimiter):
    frame = pd.DataFrame(rows, columns=["number", "word"])
    path = tmp_path_factory.mktemp("table") / "some.csv"
    frame.to_csv(path, index=False, sep=delimiter)
    table = read_text_table(path, ["word", "number"], delimiter)
    numbers = [np.nan if number is None else number for number, _ in rows]
    np.testing.assert_array_equal(table.parse_numbers("number"), numbers)
    assert table.parse_categories("word").tolist() == [word for _, word in rows]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "some.csv has no column a in its first line; take the file away"),
        (b"a,c\n1,2\n", "some.csv has no column b in its first line"),
        (b"a,b\n1,2\n3\n", "some.csv has 1 cells in line 3 instead of 2"),
        (b"a,b\n1,2,3\n", "some.csv has 3 cells in line 2 instead of 2"),
        (b"a,b\n1,\xff\n", "some.csv is no table of text: .*take the file away"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused_in_one_sentence(written, content, words):
    with pytest.raises(ValueError, match=words):
        read_text_table(written(content), ["a", "b"])


@pytest.mark.parametrize("cell", ["x", "1,5", "inf", "-inf", "--1"])
def test_a_cell_that_is_no_number_is_named(cell):
    table = TextTable("some.csv", {"a": ("1", "", cell, "oops")})
    words = f"some.csv has {cell!r} in column a, line 4: this is no number; correct the line."
    with pytest.raises(ValueError, match=re.escape(words)):
        table.parse_numbers("a")


def test_a_gap_is_refused_where_every_row_needs_a_number():
    table = TextTable("some.csv", {"a": ("1", "", "2")})
    assert np.isnan(table.parse_numbers("a")[1])
    with pytest.raises(ValueError, match=r"some.csv has '' in column a, line 3"):
        table.parse_numbers("a", required=True)


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(" ", max_size=3))
def test_numbers_are_exact_whatever_space_is_around(value, space):
    cells = (f"{space}{value!r}{space}", space)
    first, second = TextTable("some.csv", {"a": cells}).parse_numbers("a")
    assert first == value
    assert np.isnan(second)
