"""The sequential kernels of diffusion trees in JAX: they meet the contract `cavity.models.trees.backend.Kernels`."""

from .depths import depth_moves
from .gradient import joint_gradient
from .moves import subtree_moves
from .score import score
from .sweep import sweep

__all__ = ["depth_moves", "joint_gradient", "score", "subtree_moves", "sweep"]
