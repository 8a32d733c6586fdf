"""Tables as streams: kinds judged by all rows, faults named by their line."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.tables import open_table
from cida.tables.cells import CellError, normalize_text, to_numbers
from cida.tables.sources import MAX_BATCH_ROWS, check_column_names, closest_match


def column(file, name):
    """All cells of a column: numbers with NaN, or texts with None."""
    kind = file.infer_kinds([name])[name]
    parts = [batch.column(0) for batch in file.iter_batches([name])]
    if kind in (None, "category"):
        return [text for part in parts for text in normalize_text(part).to_pylist()]
    return np.concatenate([to_numbers(name, kind, part) for part in parts])


def read_all(table, text):
    file = table(text)
    return list(file.iter_batches(file.column_names))


def test_each_column_has_its_kind(table):
    file = table(
        "a,b,c,d,e,f\n1,true,x,2020-01-02,,2020-01-02T03:04:05Z\n2.5,False,7,2021-03-04 05:06,NA,\n"
    )
    assert file.infer_kinds(file.column_names) == {
        "a": "number", "b": "boolean", "c": "category", "d": "date", "e": None, "f": "date",
    }  # fmt: skip
    assert column(file, "b").tolist() == [1, 0]
    epoch = dt.datetime(1970, 1, 1)
    days = (dt.datetime(2021, 3, 4, 5, 6) - epoch) / dt.timedelta(days=1)
    assert column(file, "d").tolist() == pytest.approx([18263, days])


def test_a_kind_is_judged_by_all_rows_not_by_the_first_ones(table):
    numbers = "".join(f"{k},{k}\n" for k in range(100_000))
    file = table(f"a,b\n{numbers}7,two\n")
    assert file.infer_kinds(file.column_names) == {"a": "number", "b": "category"}
    assert column(file, "b")[-2:] == ["99999", "two"]


def test_the_odd_cell_may_be_in_a_later_block(table, monkeypatch):
    monkeypatch.setattr("cida.tables.sources.CSV_BLOCK_BYTES", 1 << 12)
    file = table("a\n" + "1\n" * 20_000 + "x\n")
    assert len(list(file.iter_batches(["a"]))) > 5
    assert file.infer_kinds(["a"]) == {"a": "category"}


@pytest.mark.parametrize("word", ["", "NA", "NaN", "nan", "null", "None", "N/A", " ", " NA "])
def test_words_for_nothing_are_missing(table, word):
    file = table(f"a,b\n1,x\n{word},{word}\n3,y\n")
    assert np.isnan(column(file, "a")).tolist() == [False, True, False]
    assert column(file, "b") == ["x", None, "y"]


CELLS = {
    "number": st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e300, 1e300)),
    "boolean": st.booleans(),
    "category": st.text(st.characters(categories=["L"]), min_size=1, max_size=6).filter(
        lambda text: text.lower() not in ("na", "nan", "null", "none", "true", "false", "inf",
                                          "infinity")
    ),
}  # fmt: skip


@st.composite
def frames(draw):
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    columns = {}
    for number, kind in enumerate(kinds):
        cell = st.one_of(st.none(), CELLS[kind])
        columns[f"{kind}{number}"] = draw(st.lists(cell, min_size=rows, max_size=rows))
    # One column without holes: a line with nothing in it is no row, here and in pandas.
    columns["row"] = list(range(rows))
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


@settings(max_examples=60, deadline=None)
@given(frames())
def test_random_tables_are_read_as_pandas_reads_them(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("random") / "table.csv"
    frame.to_csv(path, index=False)
    file, wanted = open_table(path), pd.read_csv(path)
    for name, kind in file.infer_kinds(file.column_names).items():
        mine, theirs = column(file, name), wanted[name]
        if theirs.isna().all():
            assert kind is None
        elif kind in ("number", "boolean"):
            assert name.startswith(kind) or name == "row"
            values = theirs.map(float, na_action="ignore").to_numpy(dtype=float)
            np.testing.assert_allclose(mine, values, rtol=1e-15)
        else:
            assert kind == "category"
            assert mine == [None if pd.isna(text) else text for text in theirs]


def test_quoted_cells_may_hold_commas_and_lines_and_places_count_lines(table):
    file = table('a,b\n"x,1","two\nlines"\n\ny,2\n')
    assert column(file, "a") == ["x,1", "y"]
    assert [file.describe_row(0), file.describe_row(1)] == ["line 2", "line 5"]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_tabs_separate_where_the_first_line_has_no_comma(table, mark):
    file = table(f"a{mark}b\n1{mark}2\n")
    assert file.column_names == ("a", "b")
    assert column(file, "b").tolist() == [2]


def test_a_mark_of_the_byte_order_and_windows_line_ends_are_no_content(table):
    file = table(b"\xef\xbb\xbfage,b\r\n1,2\r\n")
    assert file.column_names == ("age", "b")
    assert column(file, "age").tolist() == [1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3\n4,5\n", "has 1 cell in line 3 and 2 columns in its first line; correct"),
        ("a,b\n1,2\n\n3,4,5\n", "has 3 cells in line 4 and 2 columns in its first line; correct"),
        ('a,b\n1,2\n3,"4\n5,6\n7,8,9\n', "has a quote in line 3 that is not closed; close it"),
        (
            "a,b\n1,2\n3,é\n".encode() + "4,é\n".encode("latin-1"),
            "has bytes in line 4 that are not",
        ),
        ("a,b\n1,2\n".encode("utf-16"), "has bytes in line 1 that are not UTF-8 (b'\\xff')"),
        ("a,é\n".encode("latin-1"), "has bytes in line 1 that are not UTF-8"),
    ],
)
def test_a_broken_csv_file_is_named_with_its_line(table, text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        read_all(table, text)


def test_a_quote_that_is_not_closed_is_named_where_it_opens(table):
    file = table('a,b\n1,2\n"3,4\n5,6\n')
    with pytest.raises(ValueError, match=r"in line 3 .* perhaps for a quote that is not closed"):
        list(file.iter_batches(["a"]))


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is empty; its first line"), ("a,b,a\n", "has two columns named 'a'; rename one")],
)
def test_a_file_without_usable_names_is_refused(table, text, said):
    with pytest.raises(ValueError, match=said):
        table(text)


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\n\n\n"])
def test_a_file_of_names_alone_has_no_rows(table, text):
    file = table(text)
    assert list(file.iter_batches(["a"])) == []
    assert file.infer_kinds(["a"]) == {"a": None}


def test_unknown_suffixes_and_absent_files_are_refused(table, tmp_path):
    with pytest.raises(ValueError, match=r"\.xlsx is not read; give a \.csv"):
        table("a\n", "table.xlsx")
    with pytest.raises(ValueError, match=r"which is no file; give a \.csv"):
        open_table(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match=r"which is no file; give a \.csv"):
        open_table(tmp_path / "no such folder" / "absent.csv")


def test_of_an_absent_file_the_nearest_name_beside_it_is_told(tmp_path):
    for name in ("machines.csv", "machine.xlsx", "patients.parquet"):
        (tmp_path / name).touch()
    words = f"which is no file; did you mean {tmp_path / 'machines.csv'}? give a .csv"
    with pytest.raises(ValueError, match=re.escape(words)):
        open_table(tmp_path / "machine.csv")


def test_a_csv_file_is_never_in_memory_whole(tmp_path):
    path = tmp_path / "large.csv"
    lines = "".join(f"{k},{k / 7:.6f},word{k % 50},{k % 3}\n" for k in range(40_000))
    with path.open("w") as file:
        file.write("a,b,c,d\n")
        for _ in range(120):
            file.write(lines)
    size, before, most, rows = path.stat().st_size, pa.total_allocated_bytes(), 0, 0
    for batch in open_table(path).iter_batches(["a", "b", "c", "d"]):
        most, rows = max(most, pa.total_allocated_bytes() - before), rows + len(batch)
    assert rows == 4_800_000
    assert most < size / 2


def test_parquet_comes_in_batches_with_its_own_types(tmp_path, rng):
    rows = 2 * MAX_BATCH_ROWS + 5
    columns = {
        "whole": pa.array(range(rows), pa.int32()),
        "real": pa.array(rng.normal(size=rows)),
        "money": pa.array([Decimal("1.50")] * rows),
        "flag": pa.array([True, None, False] * (rows // 3) + [True] * (rows % 3)),
        "text": pa.array(["7", "8"] * (rows // 2) + ["9"] * (rows % 2)),
        "kind": pa.array(["x"] * rows).dictionary_encode(),
        "day": pa.array([dt.date(2020, 1, 2)] * rows),
        "moment": pa.array([dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC)] * rows),
        "clock": pa.array([dt.time(0, 0, 1)] * rows),
        "list": pa.array([[1]] * rows),
        "nothing": pa.nulls(rows),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    file = open_table(tmp_path / "t.parquet")
    assert list(file.unreadable) == ["list"]
    assert file.infer_kinds([n for n in file.column_names if n != "list"]) == {
        "whole": "number", "real": "number", "money": "number", "flag": "boolean",
        "text": "category", "kind": "category", "day": "date", "moment": "date",
        "clock": "number", "nothing": None,
    }  # fmt: skip
    assert [len(batch) for batch in file.iter_batches(["text", "whole"])] == [
        MAX_BATCH_ROWS,
        MAX_BATCH_ROWS,
        5,
    ]
    assert next(file.iter_batches(["text", "whole"])).schema.names == ["text", "whole"]
    assert column(file, "moment")[0] == 18263.5
    assert column(file, "day")[0] == 18263
    assert column(file, "clock")[0] == 1_000_000  # microseconds
    assert column(file, "kind")[:2] == ["x", "x"]
    assert column(file, "money")[0] == 1.5
    assert np.isnan(column(file, "flag")[:3]).tolist() == [False, True, False]


@pytest.mark.parametrize("keep", [0, 100, -20])
def test_a_damaged_parquet_file_is_one_sentence(tmp_path, keep):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="is no Parquet file, or is damaged"):
        open_table(path)


def test_a_cell_of_another_kind_is_found_by_its_row():
    cells = pa.array([str(k) for k in range(1000)] + ["seven", "8", "nine"])
    with pytest.raises(CellError) as caught:
        to_numbers("age", "number", cells)
    assert (caught.value.row, caught.value.text) == (1000, "seven")


def test_the_nearest_name_is_suggested():
    names = ["Age", "outcome", "length_of_stay"]
    assert closest_match("age", names) == "Age"
    assert closest_match("lengthofstay", names) == "length_of_stay"
    assert closest_match("zzz", names) is None
    with pytest.raises(ValueError, match=r"label is outcom, .* did you mean outcome\?"):
        check_column_names("label", ["outcom"], names)
    with pytest.raises(ValueError, match="its columns are Age, outcome, length_of_stay"):
        check_column_names("label", ["zzz"], names)
