"""cida: continuously indexed domain adaptation.

Labels exist for some values of a continuous index u (age, angle, depth, time); the model must be
right at the others, where there are none.

>>> import cida
>>> model = cida.CIDAClassifier()  # .fit(X, y, domain_index=u)
"""

import logging

from cida.discriminators import (
    L1,
    L2,
    Discriminator,
    Flow,
    FullGaussian,
    Gaussian,
    Histogram,
    Mixture,
    SkewNormal,
    VonMises,
    VonMisesMixture,
)
from cida.estimators import CIDAClassifier, CIDARegressor, CIDASearch, CidaWarning
from cida.estimators.saving import ModelFileError
from cida.estimators.saving import load_estimator as load
from cida.space import Line, Periodic, Product, Space
from cida.version import __version__

__all__ = [
    "L1",
    "L2",
    "CIDAClassifier",
    "CIDARegressor",
    "CIDASearch",
    "CidaWarning",
    "Discriminator",
    "Flow",
    "FullGaussian",
    "Gaussian",
    "Histogram",
    "Line",
    "Mixture",
    "ModelFileError",
    "Periodic",
    "Product",
    "SkewNormal",
    "Space",
    "VonMises",
    "VonMisesMixture",
    "__version__",
    "load",
]

logging.getLogger("cida").addHandler(logging.NullHandler())
