"""What families of arrays are asked outside a trace: functions that NumPy runs, made once for each family and shape.

Run operation by operation, JAX would compile each of them, and an inverse would cost a millisecond.
"""

from __future__ import annotations

import functools
from typing import Any

import jax

from .compiled import Call, compiled

mean = compiled("mean", (), lambda family: family.mean())
variance = compiled("variance", (), lambda family: family.variance())
covariance = compiled("covariance", (), lambda family: family.covariance())
mode = compiled("mode", (), lambda family: family.mode())
states = compiled("states", (), lambda family: jax.nn.softmax(family.logits_by_state(), axis=-1))
moments = compiled("moments", (), lambda family: family.moments())
is_proper = compiled("is proper", (), lambda family: family.is_proper())
log_density = compiled("log density", (), lambda family, x: family.log_density(x))

_parameters = compiled("parameters", (), lambda family: family.parameters())


def parameters(family: Any) -> dict[str, Any]:
    """The family's own parameters by name, in its order, which nested arrays do not keep."""
    names: list[str] = []
    jax.eval_shape(lambda own: names.extend(own.parameters()), family)
    found = _parameters(family)
    return {name: found[name] for name in names}


@functools.lru_cache(maxsize=64)
def sample(shape: tuple[int, ...]) -> Call:
    """Draws of a family by the words of a key."""
    return compiled("sample", (shape,), lambda family, key: family.sample(jax.random.wrap_key_data(key), shape))
