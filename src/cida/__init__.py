"""cida: continuously indexed domain adaptation.

Labels exist for some values of a continuous index u (age, angle, depth, time); the model must be
right at the others, where there are none.

>>> import cida
>>> model = cida.CIDAClassifier()  # .fit(X, y, domain_index=u)
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cida.version import __version__

if TYPE_CHECKING:
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
    from cida.distributed import process_group
    from cida.estimators import (
        AdaptiveClassifier,
        AdaptiveRegressor,
        CIDAClassifier,
        CIDARegressor,
        CIDASearch,
        CidaWarning,
    )
    from cida.estimators.model_file import ModelFileError, load
    from cida.spaces import Line, Periodic, Product, Space
    from cida.training import resumable

__all__ = [
    "L1",
    "L2",
    "AdaptiveClassifier",
    "AdaptiveRegressor",
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
    "process_group",
    "resumable",
]

# Where each name is at home. It is fetched when it is first asked for, since torch takes seconds to
# import, and ``cida --help`` has no need of it.
_HOMES = {
    "cida.estimators": (
        "AdaptiveClassifier",
        "AdaptiveRegressor",
        "CIDAClassifier",
        "CIDARegressor",
        "CIDASearch",
        "CidaWarning",
    ),
    "cida.estimators.model_file": ("ModelFileError", "load"),
    "cida.distributed": ("process_group",),
    "cida.training": ("resumable",),
    "cida.spaces": ("Line", "Periodic", "Product", "Space"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((h for h, names in _HOMES.items() if name in names), "cida.discriminators")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


logging.getLogger("cida").addHandler(logging.NullHandler())
