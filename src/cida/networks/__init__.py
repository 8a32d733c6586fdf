"""Networks that can take the place of the encoder, the predictor or a discriminator's body."""

from cida.networks.frame import FramedEncoder, MovingFrame, can_frame
from cida.networks.mlp import MLP, IndexedEncoder, PlainEncoder

__all__ = ["MLP", "FramedEncoder", "IndexedEncoder", "MovingFrame", "PlainEncoder", "can_frame"]
