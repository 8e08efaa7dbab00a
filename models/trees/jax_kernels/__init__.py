"""The sequential kernels of diffusion trees in JAX: they meet the contract `cavity.models.trees.backend.Kernels`."""

from .depths import depth_moves
from .gradient import joint_gradient
from .moves import subtree_moves
from .score import score
from .search import build, search
from .sweep import sweep

__all__ = ["build", "depth_moves", "joint_gradient", "score", "search", "subtree_moves", "sweep"]
