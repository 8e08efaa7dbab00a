"""Random keys, and NumPy's generators from them."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import UInt32

from ...factors.arrays import Key
from ...factors.errors import ModelError


def words_of(key: Key) -> UInt32[np.ndarray, ...]:
    """The numbers that a key of `jax.random` is made of, or many keys, in the last axis. ModelError when it is none."""
    try:
        return np.asarray(jax.random.key_data(key))
    except TypeError:
        raise ModelError(
            f"key= is a key of jax.random, from which all that is random comes; found {key!r}. Give jax.random.key(0), "
            "or any other number for other draws."
        ) from None


def generator(key: Key) -> np.random.Generator:
    """The NumPy generator that belongs to a key of `jax.random`: the same key, the same draws. ModelError for none."""
    return np.random.default_rng(words_of(key).ravel())
