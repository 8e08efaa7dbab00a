"""Random numbers of the samplers on the host."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def generator(key: Any) -> np.random.Generator:
    """The NumPy generator that belongs to a key of `jax.random`: the same key, the same draws."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
