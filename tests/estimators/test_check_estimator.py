"""scikit-learn's own conformance suite."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from cida import CIDAClassifier, CIDARegressor

STEPS = 100  # of the 300 that so few rows get by default: the checks are about manners


@pytest.mark.parametrize("estimator", [CIDAClassifier, CIDARegressor])
def test_scikit_learn_finds_nothing_to_object_to(estimator):
    results = check_estimator(estimator(steps=STEPS), on_fail=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 30
