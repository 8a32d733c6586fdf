"""Networks that can take the place of the encoder, the predictor or a discriminator's body."""

from cida.networks.affine import IndexAffine
from cida.networks.frame import FramedEncoder, MovingFrame, can_frame
from cida.networks.image import Convolution, ImageEncoder
from cida.networks.mlp import MLP, IndexedEncoder, PlainEncoder
from cida.networks.norm import IndexNorm, IndexTrend
from cida.networks.rotation import RotationTransformer
from cida.networks.signal import PAPER_BLOCKS, Block, SignalEncoder

__all__ = [
    "MLP",
    "PAPER_BLOCKS",
    "Block",
    "Convolution",
    "FramedEncoder",
    "ImageEncoder",
    "IndexAffine",
    "IndexNorm",
    "IndexTrend",
    "IndexedEncoder",
    "MovingFrame",
    "PlainEncoder",
    "RotationTransformer",
    "SignalEncoder",
    "can_frame",
]
