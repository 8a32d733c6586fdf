"""How x is expressed given the index before the encoder sees it: windows, moving frames."""

from cida.coordinates.moving_frame import MAX_FRAME_FEATURES, MovingFrame, can_use_moving_frame
from cida.coordinates.windows import IndexWindows, SupportsFitIndex

__all__ = [
    "MAX_FRAME_FEATURES",
    "IndexWindows",
    "MovingFrame",
    "SupportsFitIndex",
    "can_use_moving_frame",
]
