"""The three-player game behind scikit-learn's contract."""

from cida.estimators.classifier import CIDAClassifier
from cida.estimators.inputs import CidaWarning
from cida.estimators.regressor import CIDARegressor

__all__ = ["CIDAClassifier", "CIDARegressor", "CidaWarning"]
