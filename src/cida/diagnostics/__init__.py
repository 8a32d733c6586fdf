"""What can be said about a fitted model."""

from cida.diagnostics.accuracy import BinScore, accuracy, root_mean_squared_error, score_by_bin
from cida.diagnostics.alignment import Support, explained_share, target_support
from cida.diagnostics.label_shift import LabelShift, label_shift

__all__ = [
    "BinScore",
    "LabelShift",
    "Support",
    "accuracy",
    "explained_share",
    "label_shift",
    "root_mean_squared_error",
    "score_by_bin",
    "target_support",
]
