"""How x is expressed given the index: layers for networks, transformers for any other model."""

from cida.coordinates.moving_frame import MAX_FRAME_FEATURES, MovingFrameLayer, can_use_moving_frame
from cida.coordinates.transformers import IndexCentering, IndexWindows, MovingFrame, PrincipalAxes
from cida.coordinates.windows import CenteringLayer, SupportsFitIndex, WindowsLayer

__all__ = [
    "MAX_FRAME_FEATURES",
    "CenteringLayer",
    "IndexCentering",
    "IndexWindows",
    "MovingFrame",
    "MovingFrameLayer",
    "PrincipalAxes",
    "SupportsFitIndex",
    "WindowsLayer",
    "can_use_moving_frame",
]
