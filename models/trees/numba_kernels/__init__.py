"""The kernels compiled by numba: the same functions and numbers as the JAX ones, several times faster."""

from .gradient import joint_gradient, sweep
from .places import score
from .search import build, search

__all__ = ["build", "joint_gradient", "score", "search", "sweep"]
