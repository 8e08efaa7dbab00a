"""What a run recorded at each sweep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Trace(NamedTuple):
    """What was recorded at each sweep.

    The evidence (NaN where not recorded, or where the sweep was dropped) and the residual in posterior standard
    deviations.
    """

    evidence: np.ndarray
    residual: np.ndarray
