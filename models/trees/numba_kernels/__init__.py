"""The kernels compiled by numba: the same functions and numbers as the JAX ones, several times faster."""

from .depths import depth_moves
from .gradient import joint_gradient, sweep
from .moves import subtree_moves
from .places import score
from .search import build, search

__all__ = ["build", "depth_moves", "joint_gradient", "score", "search", "subtree_moves", "sweep"]
