"""Predictions in files: streamed, whole or not there."""

import numpy as np
import pandas as pd
import pytest

from cida.tables import open_writer

READ = {".csv": pd.read_csv, ".parquet": pd.read_parquet}


def columns(first):
    rows = np.arange(first, first + 3)
    return {"row": rows, "a, b": np.array(['x"y', "p,q", "z"], dtype=object), "p": rows / 8}


@pytest.mark.parametrize("suffix", READ)
def test_batches_are_appended(tmp_path, suffix):
    path = tmp_path / f"made/out{suffix}"
    with open_writer(path) as write:
        write(columns(1))
        assert not path.exists()
        write(columns(4))
    found = READ[suffix](path)
    assert found["row"].tolist() == [1, 2, 3, 4, 5, 6]
    assert found["a, b"].tolist() == ['x"y', "p,q", "z"] * 2
    assert found["p"].tolist() == [k / 8 for k in range(1, 7)]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", READ)
def test_what_fails_half_way_leaves_nothing(tmp_path, suffix):
    def fail():
        with open_writer(tmp_path / f"made/out{suffix}") as write:
            write(columns(1))
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        fail()
    assert list(tmp_path.iterdir()) == []
