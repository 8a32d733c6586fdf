"""A table read for a question: label, index, inputs, and what cannot be read."""

import datetime as dt
import re

import numpy as np
import pytest

from cida.tables import ColumnRoles, map_rows, read_table
from cida.tables.schema import DroppedColumn

TABLE = """age,hour,bmi,ward,outcome
20,1,22.5,A,yes
30,2,,B,no
40,3,25.1,A,yes
50,4,27,A,no
60,5,24,C,
70,6,30.3,,
"""


def ask(label="outcome", index=("age",), **more):
    return ColumnRoles(label, tuple(index), **more)


def test_rows_without_a_label_are_the_target(table):
    data = read_table(table(TABLE), ask())
    assert data.classes.tolist() == ["no", "yes"]
    assert data.labelled.tolist() == [True] * 4 + [False] * 2
    assert data.y[:4].tolist() == [1, 0, 1, 0]
    assert data.u.tolist() == [[20], [30], [40], [50], [60], [70]]
    assert data.schema.names == ("hour", "bmi", "ward")


def test_the_encoded_inputs_are_those_of_the_schema(table):
    data = read_table(table(TABLE), ask())
    (batch,) = data.table.iter_batches(data.schema.names)
    stored = map_rows(data.iter_encoded(), data.schema.width)
    assert isinstance(stored, np.memmap)
    np.testing.assert_array_equal(stored, data.schema.encode(batch))


def test_label_index_and_dropped_columns_are_no_inputs(table):
    data = read_table(table(TABLE), ask(index=("age", "hour"), drop=("ward",)))
    assert data.schema.names == ("bmi",)
    assert data.schema.dropped == (DroppedColumn("ward", "excluded"),)
    assert data.u[1].tolist() == [30, 2]


def test_no_label_is_looked_at_for_the_schema(table):
    shuffled = TABLE.replace("yes", "?").replace("no", "yes").replace("?", "no")
    a, b = (read_table(table(text), ask()).schema for text in (TABLE, shuffled))
    assert a == b


def test_an_index_of_dates_counts_days(table):
    text = "when,x,y\n2020-01-01,1,a\n2020-01-03 12:00,2,a\n2021-01-01,3,b\n2021-01-02,4,b\n,,\n"
    with pytest.raises(ValueError, match="index when is empty in line 6; every row needs"):
        read_table(table(text), ask("y", ["when"]))
    data = read_table(table(text.replace("\n,,", "\n2022-01-01,9,")), ask("y", ["when"]))
    first = (dt.date(2020, 1, 1) - dt.date(1970, 1, 1)).days
    assert data.index_kinds == ("date",)
    assert (data.u[:2, 0] - first).tolist() == [0, 2.5]


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        (["10", "9", "10", "9"], [9, 10], [1, 0, 1, 0]),
        (["1.0", "0.0", "1", "0"], [0, 1], [1, 0, 1, 0]),
        (["0.5", "1.5", "0.5", "1.5"], [0.5, 1.5], [0, 1, 0, 1]),
        (["True", "False", "True", "False"], [False, True], [1, 0, 1, 0]),
        (["TRUE", "false", "true", "False"], [False, True], [1, 0, 1, 0]),
        (["b ", " a", "b", "a"], ["a", "b"], [1, 0, 1, 0]),
    ],
)
def test_classes_are_numbers_in_order_or_texts_in_order(table, values, classes, codes):
    lines = "".join(f"{k},{k % 3},{value}\n" for k, value in enumerate([*values, ""]))
    data = read_table(table(f"u,x,y\n{lines}"), ask("y", ["u"]))
    assert data.classes.tolist() == classes
    assert data.y[:4].tolist() == codes


def test_a_regression_reads_numbers(table):
    data = read_table(table(TABLE), ask("bmi", regression=True))
    assert data.classes is None
    assert data.labelled.tolist() == [True, False, True, True, True, True]
    assert data.y[data.labelled].tolist() == [22.5, 25.1, 27, 24, 30.3]


def swap(old, new):
    return TABLE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (TABLE, ask("outcom"), "outcom, which is no column of DATA; did you mean outcome?"),
        (TABLE, ask(index=["Age"]), "index is Age, which is no column of DATA; did you mean age?"),
        (TABLE, ask(drop=("wart",)), "wart, which is no column of DATA; did you mean ward?"),
        (TABLE, ask(index=["age", "age"]), "age is named twice among label, index and drop"),
        (TABLE, ask(index=["outcome"]), "outcome is named twice among label, index and drop"),
        (swap("yes", "").replace("no", ""), ask(), "label outcome is empty in all 6 rows; fill it"),
        (swap(",\n", ",yes\n"), ask(), "label outcome is given in all 6 rows, so there is no"),
        (swap("yes", "no"), ask(), "label outcome has one class (no) among its 4 labelled rows"),
        (swap("A,yes\n30", "A,oui\n30"), ask(), "has the class 'oui' only once, in line 2;"),
        (swap("30,", "old,"), ask(), "index age has 'old' in line 3; an index must be numbers or"),
        (swap("\n60,", "\n,"), ask(), "index age is empty in line 6; every row needs its index:"),
        (swap("\n60,", "\ninf,"), ask(), "index age is infinite in line 6; every row needs its"),
        (TABLE, ask("age", ["ward"]), "index ward has 'A' in line 2; an index must be numbers or"),
        (TABLE, ask("ward", regression=True), "label ward has 'A' in line 2; a regression needs"),
        (swap("22.5", "inf"), ask("bmi", regression=True), "label bmi is infinite in line 2;"),
        ("u,x,y\n1,2,3\n2,3,3\n3,4,\n", ask("y", ["u"], regression=True), "y is 3 in all of its 2"),
        ("u,x,y\n1,2,a\n1,3,b\n1,4,\n", ask("y", ["u"]), "index u is 1 in every row; without"),
        ("u,x,y\n1,2,a\n", ask("y", ["x", "u"]), "is 2 in every row"),
        ("u,x,y\ntrue,2,a\nfalse,3,\n", ask("y", ["u"]), "index u holds true and false; an index"),
        ("u,x,y\n,2,a\n,3,\n", ask("y", ["u"]), "index u is empty in every row; every row needs"),
        ("u,x,y\n1,2,a\n2,2,a\n3,2,b\n4,2,b\n5,2,\n", ask("y", ["u"]), "; x: it is the same in"),
        ("u,x,y\n", ask("y", ["u"]), "has no rows below the names of its columns."),
        ("u,x,y\n2020-01-01,2,a\nsoon,3,\n", ask("y", ["u"]), "index u has 'soon' in line 3;"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_cannot_be_read_is_one_sentence(table, text, question, said):
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        read_table(table(text), question)
    assert str(caught.value).endswith((".", "?"))
    assert "\n" not in str(caught.value)


def test_too_many_classes_hint_at_a_regression(table):
    lines = "".join(f"{k},{k % 7},{k / 7}\n" for k in range(300))
    with pytest.raises(ValueError, match="more than 100 different values; add --regression"):
        read_table(table(f"u,x,y\n{lines}1,1,\n"), ask("y", ["u"]))
