"""Where chains begin: at draws from beliefs about the variables, or at values that are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...factors.arrays import Key
from ...factors.errors import DataError, ModelError
from ..answers.marginal import Marginal
from .choose import Drawn, with_given
from .conditionals.discrete import as_values
from .joint import Joint, Values


def starts_of(joint: Joint, start: Mapping[str, Any]) -> Drawn:
    """What draws the variables that `start` knows; ModelError and DataError for what fits none."""
    if not isinstance(start, Mapping):
        raise ModelError(
            f"sample(start={start!r}): it is a posterior from cv.infer, or a dictionary of values or marginals by name."
        )
    known = [name for name in joint.variables if name in start]
    if not known:
        raise DataError(
            f"sample(start=) has none of the variables that are sampled, {', '.join(joint.variables)}. Give a "
            "posterior of this model, or a dictionary with some of these names."
        )
    draws = {name: _drawn(joint, name, start[name]) for name in known}

    def drawn(key: Key) -> Values:
        return {name: draw(jax.random.fold_in(key, number)) for number, (name, draw) in enumerate(draws.items())}

    return drawn


def _drawn(joint: Joint, name: str, given: Any) -> Callable[[Key], jax.Array]:
    variable = joint.variables[name]
    shape = tuple(joint.contents.shape(variable))

    def checked(found: Any) -> jax.Array:
        array = np.asarray(found)
        if array.shape != shape:
            raise DataError(
                f"sample(start=): '{name}' has the shape {array.shape} there and {shape} here. Leave it out, or "
                "give it for the elements of these data."
            )
        own = as_values(variable, jnp.asarray(array, int)) if variable.domain.is_discrete else jnp.asarray(array, float)
        return with_given(joint, name, own)

    if isinstance(given, Marginal):
        return lambda key: checked(given.sample(key))
    value = checked(given)
    return lambda key: value
