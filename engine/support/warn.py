"""Warnings that point at the line of the user's code that asked."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

import jax

from ...factors.errors import CavityWarning

_ROOT = Path(__file__).parents[2]
_LIBRARY = (  # and what calls its functions that are wrapped in a context or compiled
    *(str(_ROOT / room) for room in ("factors", "compiler", "engine", "models")),
    contextlib.__file__,
    str(Path(jax.__file__).parent),
)


def warn(message: str) -> None:
    """A `CavityWarning` at the innermost line that is not the library's own."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CavityWarning, stacklevel=level)
