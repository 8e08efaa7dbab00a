"""What rows with given features show: one likelihood a module, each of which serves every sampler."""

from .contract import Likelihood, Numbers, Rows
from .detection import Detection
from .exponential_gaussian import ExponentialGaussian
from .laplace_ica import LaplaceICA
from .linear_gaussian import LinearGaussian
from .noisy_or import NoisyOr
from .poisson_gamma import PoissonGamma

__all__ = [
    "Detection",
    "ExponentialGaussian",
    "LaplaceICA",
    "Likelihood",
    "LinearGaussian",
    "NoisyOr",
    "Numbers",
    "PoissonGamma",
    "Rows",
]
