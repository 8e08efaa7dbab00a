"""Forked processes: a fork copies the memory of a process and one of its threads; machine code waits for the others.

So a child of a process in which JAX has started is told so where it would wait for ever. What NumPy runs needs no
threads, and works there; so does everything in a child of a process that has only imported the package.
"""

from __future__ import annotations

import os
import sys

from ...factors.errors import UnsupportedError

_left: list[bool] = [False]  # whether this process is the child of one whose threads it needs


def check_not_forked(what: str = "This computation") -> None:
    """UnsupportedError in a process that was forked from one in which JAX had started."""
    if _left[0]:
        raise UnsupportedError(
            f"{what} is machine code, and this process was forked from one in which JAX had started its threads, which "
            "a fork does not copy: it would wait for them for ever. Start processes with multiprocessing.get_context("
            "'spawn') or 'forkserver', as joblib's and Dask's do, or fork before the first inference. Small models run "
            "here with cv.infer(..., execution='interpret')."
        )


def _before() -> None:
    """Asked in the parent, where no lock can be left behind."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    _left.append(bool(getattr(bridge, "_backends", True)))


def _in_parent() -> None:
    _left.pop()


def _in_child() -> None:
    _left[:] = [any(_left)]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
