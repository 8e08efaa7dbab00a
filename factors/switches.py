"""JAX's switches: what a user sets for the own code of a process must not decide what this package computes.

The engine computes in float64, lets NumPy's rules promote types and axes, passes NaN on where a formula means to (a
branch that is not taken, an evidence that was not recorded), moves arrays to where they are used, and draws by
Threefry, so that a seed gives the same numbers for everyone. All of that holds within `double_precision()` alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax

from .errors import UnsupportedError

_OURS: dict[str, tuple[Any, Callable[[Any], AbstractContextManager[Any]]]] = {
    "jax_debug_nans": (False, jax.debug_nans),
    "jax_debug_infs": (False, jax.debug_infs),
    "jax_numpy_dtype_promotion": ("standard", jax.numpy_dtype_promotion),
    "jax_numpy_rank_promotion": ("allow", jax.numpy_rank_promotion),
    "jax_transfer_guard_host_to_device": (None, jax.transfer_guard_host_to_device),
    "jax_transfer_guard_device_to_device": (None, jax.transfer_guard_device_to_device),
    "jax_transfer_guard_device_to_host": (None, jax.transfer_guard_device_to_host),
    "jax_default_prng_impl": ("threefry2x32", jax.default_prng_impl),
}
"""By the name of a switch what it is here, and what sets it for a block; None lets transfers pass."""

_started: list[bool] = []  # once a platform was found


def double_precision() -> AbstractContextManager[Any]:
    """Within it JAX computes in float64, by switches of its own. UnsupportedError where JAX has no platform."""
    if not _started:
        _find_platform()
    changed = [name for name, (ours, _) in _OURS.items() if getattr(jax.config, name, ours) != ours]
    if not changed:
        return jax.enable_x64(True)
    stack = contextlib.ExitStack()
    stack.enter_context(jax.enable_x64(True))
    for name in changed:
        ours, switch = _OURS[name]
        stack.enter_context(switch("allow" if ours is None else ours))
    return stack


def _find_platform() -> None:
    try:
        jax.default_backend()
    except Exception as problem:
        asked = jax.config.jax_platforms or "none"  # type: ignore[attr-defined]
        raise UnsupportedError(
            f"JAX found no platform to compute on (JAX_PLATFORMS or jax_platforms: {asked}): "
            f"{str(problem) or type(problem).__name__}. Set JAX_PLATFORMS=cpu before Python starts, or install the "
            "build of JAX for that device."
        ) from problem
    _started.append(True)
