"""Data sets that need no download, with their truth for scoring."""

from cida.datasets.toy import World, circle, sine

__all__ = ["World", "circle", "sine"]
