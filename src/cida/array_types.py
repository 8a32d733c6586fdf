"""The type of numpy arrays in signatures."""

from typing import Any

import numpy as np

__all__ = ["Array"]

Array = np.ndarray[Any, Any]
