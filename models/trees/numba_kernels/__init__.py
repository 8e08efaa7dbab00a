"""The sequential kernels of diffusion trees in numba."""
