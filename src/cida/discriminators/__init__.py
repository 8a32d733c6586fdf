"""The discriminators, one a file: the distributions p(u|z) that D can predict, and their loss."""

import copy

from cida.discriminators.base import Discriminator
from cida.discriminators.flow import Flow
from cida.discriminators.full_gaussian import FullGaussian
from cida.discriminators.gaussian import Gaussian
from cida.discriminators.histogram import Histogram
from cida.discriminators.mixture import Mixture
from cida.discriminators.regression import L1, L2
from cida.discriminators.skew_normal import SkewNormal
from cida.discriminators.von_mises import VonMises
from cida.discriminators.von_mises_mixture import VonMisesMixture
from cida.errors import did_you_mean

__all__ = [
    "DISCRIMINATORS",
    "L1",
    "L2",
    "Discriminator",
    "Flow",
    "FullGaussian",
    "Gaussian",
    "Histogram",
    "Mixture",
    "SkewNormal",
    "VonMises",
    "VonMisesMixture",
    "make_discriminator",
]

DISCRIMINATORS: dict[str, type[Discriminator]] = {
    "l2": L2,
    "l1": L1,
    "gaussian": Gaussian,
    "mixture": Mixture,
    "histogram": Histogram,
    "skew": SkewNormal,
    "von-mises": VonMises,
    "von-mises-mixture": VonMisesMixture,
    "full-gaussian": FullGaussian,
    "flow": Flow,
}


def make_discriminator(discriminator: object) -> Discriminator:
    """Return a new discriminator, not built yet, from a short name or an instance.

    Parameters
    ----------
    discriminator : str or Discriminator
        A name in ``DISCRIMINATORS``, such as "histogram", or an instance, which is copied.

    Returns
    -------
    Discriminator
        A discriminator that `Discriminator.build` has not been called on.

    Raises
    ------
    ValueError
        If the name is unknown, or the instance was built before.
    """
    if isinstance(discriminator, Discriminator):
        if discriminator.space is not None:
            raise ValueError(
                f"discriminator is a {type(discriminator).__name__} that was built before; give "
                "a new one, which fit builds for your data."
            )
        return copy.deepcopy(discriminator)
    if isinstance(discriminator, str) and discriminator in DISCRIMINATORS:
        return DISCRIMINATORS[discriminator]()
    hint = did_you_mean(discriminator, DISCRIMINATORS)
    raise ValueError(
        f"discriminator is {discriminator!r}; {hint}give one of {', '.join(DISCRIMINATORS)}, an "
        "instance such as cida.Histogram(bins=36), or None for no adversary."
    )
