"""Names for the arrays that the metrics take and give."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "FloatArray", "IntArray"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
