"""Networks that can take the place of the encoder, the predictor or a discriminator's body."""

from cida.networks.affine import IndexAffine
from cida.networks.frame import FramedEncoder, MovingFrame, can_frame
from cida.networks.image import Convolution, ImageEncoder
from cida.networks.mlp import MLP, IndexedEncoder, PlainEncoder
from cida.networks.norm import IndexNorm, IndexTrend
from cida.networks.rotation import RotationTransformer
from cida.networks.signal import PAPER_BLOCKS, Block, SignalEncoder
from cida.networks.stochastic import (
    GaussianCode,
    GaussianEncoder,
    MonteCarloDropout,
    StochasticLayer,
    drawing,
    is_stochastic,
    monte_carlo,
)
from cida.networks.tabular import TabularEncoder
from cida.networks.windows import FollowsIndex, IndexWindows
from cida.networks.words import make_network, network_words

__all__ = [
    "MLP",
    "PAPER_BLOCKS",
    "Block",
    "Convolution",
    "FollowsIndex",
    "FramedEncoder",
    "GaussianCode",
    "GaussianEncoder",
    "ImageEncoder",
    "IndexAffine",
    "IndexNorm",
    "IndexTrend",
    "IndexWindows",
    "IndexedEncoder",
    "MonteCarloDropout",
    "MovingFrame",
    "PlainEncoder",
    "RotationTransformer",
    "SignalEncoder",
    "StochasticLayer",
    "TabularEncoder",
    "can_frame",
    "drawing",
    "is_stochastic",
    "make_network",
    "monte_carlo",
    "network_words",
]
