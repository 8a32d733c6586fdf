"""Networks that can be the encoder, the predictor or a discriminator's body."""

from cida.networks.affine import IndexAffine
from cida.networks.framed import FramedEncoder
from cida.networks.image import Convolution, ImageEncoder
from cida.networks.mlp import MLP, IndexedEncoder, PlainEncoder
from cida.networks.norm import IndexNorm, IndexTrend
from cida.networks.rotation import RotationTransformer
from cida.networks.serialization import network_config, network_from_config
from cida.networks.signal import PAPER_BLOCKS, Block, SignalEncoder
from cida.networks.stochastic import (
    GaussianCode,
    GaussianEncoder,
    MonteCarloDropout,
    StochasticLayer,
    convert_dropout,
    fixed_draw,
    is_stochastic,
)
from cida.networks.tabular import TabularEncoder

__all__ = [
    "MLP",
    "PAPER_BLOCKS",
    "Block",
    "Convolution",
    "FramedEncoder",
    "GaussianCode",
    "GaussianEncoder",
    "ImageEncoder",
    "IndexAffine",
    "IndexNorm",
    "IndexTrend",
    "IndexedEncoder",
    "MonteCarloDropout",
    "PlainEncoder",
    "RotationTransformer",
    "SignalEncoder",
    "StochasticLayer",
    "TabularEncoder",
    "convert_dropout",
    "fixed_draw",
    "is_stochastic",
    "network_config",
    "network_from_config",
]
