"""The three-player game behind scikit-learn's contract."""

from cida.errors import CidaWarning
from cida.estimators.adaptive import AdaptiveClassifier, AdaptiveRegressor
from cida.estimators.classifier import CIDAClassifier
from cida.estimators.regressor import CIDARegressor
from cida.estimators.search import CIDASearch

__all__ = [
    "AdaptiveClassifier",
    "AdaptiveRegressor",
    "CIDAClassifier",
    "CIDARegressor",
    "CIDASearch",
    "CidaWarning",
]
