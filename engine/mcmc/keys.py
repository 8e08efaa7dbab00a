"""Random keys, and NumPy's generators from them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ...factors.errors import ModelError


def words_of(key: Any) -> np.ndarray:
    """The numbers that a key of `jax.random` is made of. ModelError when it is none."""
    try:
        return np.asarray(jax.random.key_data(key))
    except TypeError:
        raise ModelError(
            f"key= is a key of jax.random, from which all that is random comes; found {key!r}. Give jax.random.key(0), "
            "or any other number for other draws."
        ) from None


def generator(key: Any) -> np.random.Generator:
    """The NumPy generator that belongs to a key of `jax.random`: the same key, the same draws. ModelError for none."""
    return np.random.default_rng(words_of(key).ravel())
