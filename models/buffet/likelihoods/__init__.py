"""What rows with given features show: one likelihood a module, each of which serves every sampler."""

from .contract import Likelihood, Numbers, Rows
from .linear_gaussian import LinearGaussian
from .noisy_or import NoisyOr

__all__ = ["Likelihood", "LinearGaussian", "NoisyOr", "Numbers", "Rows"]
