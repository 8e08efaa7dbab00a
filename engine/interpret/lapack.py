"""Routines of LAPACK and BLAS that NumPy has not, through SciPy's wrappers.

All of `scipy.linalg` takes a tenth of a second to load, as long as all else that a small program needs; the wrappers
alone take a hundredth of that. They are the same ones.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Any

WRAPPERS = {"potrf": "_flapack", "getrf": "_flapack", "trsm": "_fblas"}


@functools.cache
def routine(name: str) -> Callable[..., Any]:
    """The routine of this name for double precision."""
    return getattr(_library(WRAPPERS[name]), f"d{name}")


@functools.cache
def _library(name: str) -> Any:
    """A library of `scipy.linalg`, without the package; with it where this release of SciPy keeps it elsewhere."""
    import scipy

    spec = PathFinder.find_spec(name, [f"{folder}/linalg" for folder in scipy.__path__])
    if spec is None or spec.loader is None:
        return importlib.import_module("scipy.linalg.lapack" if name == "_flapack" else "scipy.linalg.blas")
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    return library
