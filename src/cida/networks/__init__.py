"""Networks that can take the place of the encoder, the predictor or a discriminator's body."""

from cida.networks.frame import FramedEncoder, MovingFrame, can_frame
from cida.networks.image import Convolution, ImageEncoder
from cida.networks.mlp import MLP, IndexedEncoder, PlainEncoder
from cida.networks.rotation import RotationTransformer

__all__ = [
    "MLP",
    "Convolution",
    "FramedEncoder",
    "ImageEncoder",
    "IndexedEncoder",
    "MovingFrame",
    "PlainEncoder",
    "RotationTransformer",
    "can_frame",
]
