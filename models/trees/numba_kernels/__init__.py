"""The kernels compiled by numba: the same functions and numbers as the JAX ones, several times faster."""

from .gradient import joint_gradient, sweep

__all__ = ["joint_gradient", "sweep"]
