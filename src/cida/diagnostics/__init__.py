"""What can be said about a fitted model."""

from cida.diagnostics.accuracy import BinScore, accuracy, root_mean_squared_error, score_by_bin

__all__ = ["BinScore", "accuracy", "root_mean_squared_error", "score_by_bin"]
