"""Small data sets that the tests of the estimators share."""

import pytest

from cida import CIDAClassifier, CIDARegressor
from cida.datasets import IndexedData, make_circle


@pytest.fixture(scope="session")
def world() -> IndexedData:
    """Six discs of twelve points; u is 0, 0.2 ... 1, the first two are the source."""
    return make_circle(n_domains=6, n_per_domain=12, n_source_domains=2)


@pytest.fixture(params=[CIDAClassifier, CIDARegressor])
def kind(request):
    return request.param


@pytest.fixture
def data(world):
    return {"X": world.x, "y": world.training_labels, "domain_index": world.u}
