"""The sequential kernels of diffusion trees in JAX: they meet the contract `cavity.models.trees.backend.Kernels`."""

from .gradient import joint_gradient
from .score import score
from .sweep import sweep

__all__ = ["joint_gradient", "score", "sweep"]
