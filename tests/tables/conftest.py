"""Small tables that the tests of tables share."""

import numpy as np
import pytest

from cida.tables import open_table


@pytest.fixture
def table(tmp_path):
    """Writes text to a file and opens it as a table."""

    def make(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return open_table(path)

    return make


@pytest.fixture
def rng():
    return np.random.default_rng(0)
