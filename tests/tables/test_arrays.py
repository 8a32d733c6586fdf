"""Arrays in an npz file as a table."""

import re

import numpy as np
import pytest

from cida.tables import ColumnRoles, open_table, read_table
from cida.tables.encoded_table import hash_table_file


@pytest.fixture
def arrays(tmp_path):
    def make(**values):
        np.savez(tmp_path / "a.npz", **values)
        return open_table(tmp_path / "a.npz")

    return make


Y = np.array([0, 1, 0, 1, -1, -1])
U = np.arange(6.0)


def test_vectors_are_columns_of_numbers(arrays, rng):
    x = rng.normal(size=(6, 2))
    x[1, 0] = np.nan
    file = arrays(X=x, y=Y, u=U)
    assert (file.column_names, file.default_index) == (("u", "y", "x0", "x1"), ("u",))
    data = read_table(file, ColumnRoles("y", ("u",)))
    assert data.schema.names == ("x0", "x1")
    assert data.schema.missing_indicators == (0,)
    assert data.labelled.tolist() == [True] * 4 + [False] * 2
    assert data.classes.tolist() == [0, 1]


def test_minus_one_is_a_number_like_any_other_in_a_regression(arrays, rng):
    y = np.array([0.5, -1, 2, np.nan, 1, np.nan])
    file = arrays(X=rng.normal(size=(6, 2)), y=y, u=np.stack([U, U], 1))
    assert file.default_index == ("u0", "u1")
    data = read_table(file, ColumnRoles("y", ("u0", "u1"), regression=True))
    assert data.labelled.sum() == 4


def test_texts_are_labels_and_other_shapes_are_kept(arrays, rng):
    x = rng.normal(size=(6, 8, 8))
    data = read_table(
        arrays(X=x, y=np.array(["a", "b", "a", "b", "", ""]), u=U), ColumnRoles("y", ("u",))
    )
    assert data.table.input_array.shape == x.shape
    assert data.classes.tolist() == ["a", "b"]
    assert data.schema.columns == ()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"X": np.ones((6, 2)), "y": Y}, "has no array u (there: X, y); it needs X and u."),
        ({"X": np.ones((5, 2)), "y": Y, "u": U}, "of different lengths (X 5, y 6, u 6)"),
        ({"X": np.array(["a"] * 6), "y": Y, "u": U}, "has X of type <U1; it must be numbers."),
        ({"X": np.ones((6, 2)), "y": Y, "u": np.ones((6, 2, 2))}, "u has the shape (6, 2, 2);"),
        ({"X": np.ones((6, 2)), "y": np.ones((6, 2)), "u": U}, "y has the shape (6, 2); give one"),
        (
            {"X": np.array([{}] * 6), "y": Y, "u": U},
            "of plain arrays (Object arrays cannot be loaded",
        ),
        ({"X": np.full((6, 2, 2), np.nan), "y": Y, "u": U}, "has NaN or infinity in 6 rows of X ("),
        ({"X": np.ones(()), "y": Y, "u": U}, "has X of type float64 and shape (); give an array"),
    ],
)
def test_arrays_that_cannot_be_read_are_one_sentence(arrays, values, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        arrays(**values)


def test_a_file_that_is_no_npz_is_one_sentence(tmp_path):
    (tmp_path / "a.npz").write_text("nothing of the kind")
    with pytest.raises(ValueError, match="is no npz file of plain arrays"):
        open_table(tmp_path / "a.npz")


# --- a folder of npy files -----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    def make(**values):
        for name, array in values.items():
            np.save(tmp_path / f"{name}.npy", array)
        return tmp_path

    return make


def test_the_arrays_of_a_folder_stay_in_their_files(folder, arrays, rng):
    x = rng.normal(size=(6, 2))
    file = open_table(folder(X=x, y=Y, u=U))
    assert all(isinstance(column.base, np.memmap) for column in file.columns.values())
    question = ColumnRoles("y", ("u",))
    data, same = read_table(file, question), read_table(arrays(X=x, y=Y, u=U), question)
    assert data.schema == same.schema
    assert np.array_equal(np.concatenate(list(data.iter_encoded())),
                          np.concatenate(list(same.iter_encoded())))  # fmt: skip
    assert np.array_equal(data.u, same.u)


def test_equal_folders_have_equal_fingerprints(folder, tmp_path):
    first = hash_table_file(folder(X=np.ones((6, 2)), y=Y, u=U))
    assert first == hash_table_file(folder(X=np.ones((6, 2)), y=Y, u=U))
    assert first != hash_table_file(folder(X=np.zeros((6, 2)), y=Y, u=U))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"X": np.ones((6, 2)), "y": Y}, "has no array u (there: X, y); it needs X and u."),
        ({"X": np.ones((5, 2)), "u": U}, "has arrays of different lengths (X 5, u 6)"),
        ({"X": np.full((6, 3, 3), np.nan), "u": U}, "NaN or infinity in 6 rows of X (first: row 1"),
        ({"X": np.array([{}] * 6), "u": U}, "is no folder of npy files of plain arrays"),
    ],
)
def test_a_folder_that_cannot_be_read_is_one_sentence(folder, values, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        open_table(folder(**values))
